"""Everything that is served beside resources: health, version, discovery, metrics."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.embedded.apiserver.discovery import legacy
from bayplan.embedded.apiserver.discovery.version import version_info
from bayplan.embedded.apiserver.errors import method_not_allowed, no_such_path
from bayplan.embedded.apiserver.http.responses import Response, json_response
from bayplan.embedded.apiserver.kinds.catalog import Catalog

OPEN_PATHS = frozenset(("/healthz", "/livez", "/readyz", "/version"))
"""What anybody may ask, without saying who they are."""


class Endpoints:
    """Answers about the server itself."""

    def __init__(self, catalog: Catalog, address: str, ready: Callable[[], bool]) -> None:
        self._catalog = catalog
        self._address = address
        self._ready = ready

    def answer(self, method: str, path: str) -> Response:
        """The document at a path."""
        if method not in ("GET", "HEAD"):
            raise method_not_allowed() if path in OPEN_PATHS else no_such_path()
        if path in ("/healthz", "/livez", "/readyz"):
            return self._health(path)
        if path == "/version":
            return json_response(version_info())
        return self._discovery(path.split("/")[1:])

    def _health(self, path: str) -> Response:
        if path == "/livez" or self._ready():
            return Response(b"ok", 200, b"text/plain; charset=utf-8")
        return Response(b"not ready", 503, b"text/plain; charset=utf-8")

    def _discovery(self, parts: list[str]) -> Response:
        match parts:
            case ["api"]:
                return json_response(legacy.api_versions(self._address))
            case ["api", version]:
                return json_response(legacy.api_resources(self._catalog, "", version))
            case ["apis"]:
                return json_response(legacy.api_groups(self._catalog))
            case ["apis", group]:
                return json_response(legacy.api_group(self._catalog, group))
            case ["apis", group, version]:
                return json_response(legacy.api_resources(self._catalog, group, version))
        raise no_such_path()
