"""The four ways to say "change this" to an API server.

`merge` sets what it names and removes what it sets to None; `strategic` does the same and knows
which lists are keyed (built-in kinds only); `json_patch` is a list of operations, with `test` among
them; `apply` states the whole of what one manager wants, and conflicts with other managers' fields.

Any of them that names `metadata.resourceVersion` is refused by the server if the object has moved
on since, which also makes it safe to send again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from bayplan.client.objects import encode


@dataclass(frozen=True, slots=True)
class Patch:
    """A change, encoded, with the media type that says of which kind it is."""

    content_type: str
    body: bytes
    query: dict[str, str] = field(default_factory=dict)
    conditional: bool = False


def merge(change: Mapping[str, object]) -> Patch:
    """An RFC 7386 merge patch."""
    conditional = _names_version(change)
    return Patch("application/merge-patch+json", encode(change), conditional=conditional)


def strategic(change: Mapping[str, object]) -> Patch:
    """A merge patch that merges keyed lists by their keys."""
    conditional = _names_version(change)
    return Patch("application/strategic-merge-patch+json", encode(change), conditional=conditional)


def json_patch(operations: Sequence[Mapping[str, object]]) -> Patch:
    """An RFC 6902 list of operations."""
    tested = {op.get("path") for op in operations if op.get("op") == "test"}
    conditional = "/metadata/resourceVersion" in tested
    return Patch("application/json-patch+json", encode(operations), conditional=conditional)


def apply(wanted: object, manager: str, *, force: bool = False) -> Patch:
    """Server-side apply; sending it twice is the same as once."""
    query = {"fieldManager": manager, "force": "true"} if force else {"fieldManager": manager}
    return Patch("application/apply-patch+yaml", encode(wanted), query, conditional=True)


def _names_version(change: Mapping[str, object]) -> bool:
    meta = change.get("metadata")
    return isinstance(meta, dict) and bool(cast("dict[str, object]", meta).get("resourceVersion"))
