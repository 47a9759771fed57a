"""What a URL is about: one hand-written parser for every resource path, as Kubernetes' RequestInfo.

The path is split before it is decoded, so an encoded slash can never become a path separator.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from bayplan.embedded.apiserver.errors import no_such_path


class RequestInfo(NamedTuple):
    """A parsed path."""

    path: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    namespace: str = ""
    plural: str = ""
    name: str = ""
    subresource: str = ""


_NAMESPACE_SUBRESOURCES = ("status", "finalize")


@lru_cache(512)
def parse_path(raw: bytes) -> RequestInfo:
    """Take a path apart; 404 if it can be nobody's."""
    text = raw.decode("ascii", "replace")
    if not text.startswith("/"):
        raise no_such_path()
    parts = [_decoded(part) for part in text.split("/")[1:]]
    if parts[-1] == "":
        parts.pop()
    if "" in parts:
        raise no_such_path()
    path = "/" + "/".join(parts)
    if parts[:1] == ["api"] and len(parts) > 2:
        return _resource(path, "", parts[1], parts[2:])
    if parts[:1] == ["apis"] and len(parts) > 3:
        return _resource(path, parts[1], parts[2], parts[3:])
    return RequestInfo(path)


def _decoded(part: str) -> str:
    if "%" not in part:
        return part
    decoded = unquote(part, errors="replace")
    if "/" in decoded or "\x00" in decoded or decoded in (".", ".."):
        raise no_such_path()
    return decoded


def _resource(path: str, group: str, version: str, parts: list[str]) -> RequestInfo:
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and not (len(parts) == 3 and parts[2] in _NAMESPACE_SUBRESOURCES):
            parts = parts[2:]
        else:
            return RequestInfo(path, True, group, version, "", *_padded(parts))
    return RequestInfo(path, True, group, version, namespace, *_padded(parts))


def _padded(parts: list[str]) -> tuple[str, str, str]:
    plural, name, subresource, *rest = (*parts, "", "")[: max(3, len(parts))]
    return plural, name, "/".join((subresource, *rest)) if rest else subresource
