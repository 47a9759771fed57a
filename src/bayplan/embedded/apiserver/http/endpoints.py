"""Endpoints that are not resources: health, version, discovery, OpenAPI, metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from bayplan.embedded.apiserver import discovery, openapi
from bayplan.embedded.apiserver.discovery import version_info
from bayplan.embedded.apiserver.errors import PageNotFound, method_not_allowed, no_such_path
from bayplan.embedded.apiserver.http.wire.responses import Response, json_response
from bayplan.embedded.apiserver.jsontypes import encode
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.openapi import OpenApi
from bayplan.embedded.apiserver.store.store import ApiObjectStore

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_REQUEST_LABELS = ("verb", "group", "resource", "subresource", "code")
RequestKey = tuple[str, str, str, str, int]


class RequestMetrics:
    """Cheap request counters; prometheus-client is loaded when they are read."""

    def __init__(self, store: ApiObjectStore) -> None:
        self._store = store
        self._requests: dict[RequestKey, int] = defaultdict(int)
        self._seconds: dict[RequestKey, float] = defaultdict(float)
        self.in_flight = 0

    def count(self, key: RequestKey, seconds: float) -> None:
        """Count a request."""
        self._requests[key] += 1
        self._seconds[key] += seconds

    def collect(self) -> Iterator[Metric]:
        """Return the metrics, for a registry."""
        from prometheus_client.core import (  # noqa: PLC0415 - slow to import, rarely needed
            CounterMetricFamily,
            GaugeMetricFamily,
        )

        requests = CounterMetricFamily(
            "apiserver_request", "Requests answered.", labels=_REQUEST_LABELS
        )
        seconds = CounterMetricFamily(
            "apiserver_request_seconds", "Time spent on requests.", labels=_REQUEST_LABELS
        )
        for key, number in self._requests.items():
            labels = [str(part) for part in key]
            requests.add_metric(labels, number)
            seconds.add_metric(labels, self._seconds[key])
        objects = GaugeMetricFamily(
            "apiserver_storage_objects", "Objects stored.", labels=("resource",)
        )
        for storage, number in self._store.counts().items():
            objects.add_metric([storage], number)
        in_flight = GaugeMetricFamily(
            "apiserver_current_inflight_requests", "Requests being answered.", self.in_flight
        )
        revision = GaugeMetricFamily(
            "apiserver_storage_revision", "The newest resource version.", self._store.revision
        )
        yield from (requests, seconds, objects, in_flight, revision)

    def text(self) -> bytes:
        """Return the metrics in the text format."""
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415

        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)


OPEN_PATHS = frozenset(("/healthz", "/livez", "/readyz", "/version"))
"""Paths that need no authentication."""

_TEXT = b"text/plain; charset=utf-8"
_METRICS = b"text/plain; version=0.0.4; charset=utf-8"


class Endpoints:
    """Serves the endpoints of the server itself."""

    def __init__(
        self, catalog: Catalog, metrics: RequestMetrics, ready: Callable[[], bool]
    ) -> None:
        self.address = "localhost"
        """Host and port of the server; set by the listener."""
        self._catalog = catalog
        self._ready = ready
        self._metrics = metrics
        self._openapi = OpenApi(catalog)

    def answer(self, method: str, path: str, accept: bytes | None) -> Response:
        """Return the document at a path."""
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
        """Return the served paths."""
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
            case ["v2"] if openapi.is_wanted(accept):
                return Response(openapi.head(), 200, openapi.CONTENT_TYPE)
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
        version = discovery.wanted_version(accept)
        match parts:
            case ["api" | "apis"] if version is not None:
                document = discovery.aggregated(self._catalog, version, core=parts == ["api"])
                return Response(encode(document), 200, discovery.content_type(version))
            case ["api"]:
                return json_response(discovery.api_versions(self.address))
            case ["api", name]:
                return json_response(discovery.api_resources(self._catalog, "", name))
            case ["apis"]:
                return json_response(discovery.api_groups(self._catalog))
            case ["apis", group]:
                return json_response(discovery.api_group(self._catalog, group))
            case ["apis", group, name]:
                return json_response(discovery.api_resources(self._catalog, group, name))
        raise PageNotFound
