"""Everything that is served beside resources: health, version, discovery, OpenAPI, metrics."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.embedded.apiserver.discovery import aggregated, legacy
from bayplan.embedded.apiserver.discovery.version import version_info
from bayplan.embedded.apiserver.errors import PageNotFound, method_not_allowed, no_such_path
from bayplan.embedded.apiserver.http.metrics import Metrics
from bayplan.embedded.apiserver.http.wire.responses import Response, json_response
from bayplan.embedded.apiserver.jsontypes import encode
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.openapi import compact
from bayplan.embedded.apiserver.openapi.documents import OpenApi

OPEN_PATHS = frozenset(("/healthz", "/livez", "/readyz", "/version"))
"""What anybody may ask, without saying who they are."""

_TEXT = b"text/plain; charset=utf-8"
_METRICS = b"text/plain; version=0.0.4; charset=utf-8"


class Endpoints:
    """Answers about the server itself."""

    def __init__(self, catalog: Catalog, metrics: Metrics, ready: Callable[[], bool]) -> None:
        self.address = "localhost"
        """Where clients find the server; whoever listens says so."""
        self._catalog = catalog
        self._ready = ready
        self._metrics = metrics
        self._openapi = OpenApi(catalog)

    def answer(self, method: str, path: str, accept: bytes | None) -> Response:
        """The document at a path."""
        if method not in ("GET", "HEAD"):
            raise method_not_allowed()
        parts = path.split("/")[1:]
        match parts[0]:
            case "" if len(parts) == 1:
                return json_response({"paths": self._paths()})
            case "healthz" | "livez" | "readyz":
                return self._health(parts)
            case "version" if len(parts) == 1:
                return json_response(version_info())
            case "metrics" if len(parts) == 1:
                return Response(self._metrics.text(), 200, _METRICS)
            case "openapi":
                return self._document(parts[1:], accept)
        return self._discovery(parts, accept)

    def _paths(self) -> list[str]:
        """Where there is something to read."""
        groups = self._catalog.groups()
        versions = [f"/apis/{name}/{one}" for name, each in groups.items() if name for one in each]
        named = [f"/apis/{name}" for name in groups if name]
        own = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2"]
        return sorted((*own, "/openapi/v3", "/readyz", "/version", *named, *versions))

    def _health(self, parts: list[str]) -> Response:
        if len(parts) > 1:
            raise no_such_path()
        if parts[0] == "livez" or self._ready():
            return Response(b"ok", 200, _TEXT)
        return Response(b"not ready", 503, _TEXT)

    def _document(self, parts: list[str], accept: bytes | None) -> Response:
        found: bytes | None = None
        match parts:
            case ["v2"] if compact.is_wanted(accept):
                return Response(compact.head(), 200, compact.CONTENT_TYPE)
            case ["v2"]:
                found = self._openapi.v2()
            case ["v3"]:
                found = self._openapi.index()
            case ["v3", "api", version]:
                found = self._openapi.v3("", version)
            case ["v3", "apis", group, version]:
                found = self._openapi.v3(group, version)
        if found is None:
            raise no_such_path()
        return Response(found)

    def _discovery(self, parts: list[str], accept: bytes | None) -> Response:
        version = aggregated.wanted_version(accept)
        match parts:
            case ["api" | "apis"] if version is not None:
                document = aggregated.aggregated(self._catalog, version, core=parts == ["api"])
                return Response(encode(document), 200, aggregated.content_type(version))
            case ["api"]:
                return json_response(legacy.api_versions(self.address))
            case ["api", name]:
                return json_response(legacy.api_resources(self._catalog, "", name))
            case ["apis"]:
                return json_response(legacy.api_groups(self._catalog))
            case ["apis", group]:
                return json_response(legacy.api_group(self._catalog, group))
            case ["apis", group, name]:
                return json_response(legacy.api_resources(self._catalog, group, name))
        raise PageNotFound
