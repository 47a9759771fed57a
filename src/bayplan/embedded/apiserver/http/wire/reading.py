"""Bodies that should be objects of a kind, read, and refused in Kubernetes' words."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import ApiError, bad_request, invalid
from bayplan.embedded.apiserver.http.wire.bodies import Unreadable, decode_value
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.rest.conforming import kind_problem
from bayplan.embedded.apiserver.schema.unmarshal import TYPE_META, described
from bayplan.embedded.apiserver.validation.causes import bad_value

_SHOWN = 30


def read_object(body: bytes, media_type: str, kind: Kind, catalog: Catalog) -> JsonObject:
    """The object of a kind that a body is."""
    try:
        obj = typed(decode_value(body, media_type))
    except Unreadable as found:
        why = str(found)
        if media_type in ("", "application/json"):
            why = f"couldn't get version/kind; json parse error: {found}"
        raise _unrecognized(kind, why, body) from found
    _check_custom_kind(obj, kind)
    problem = kind_problem(obj, kind, catalog)
    if problem:
        raise bad_request(problem)
    return obj


def _check_custom_kind(obj: JsonObject, kind: Kind) -> None:
    given = obj.get("kind") or kind.kind
    if not kind.custom or obj.get("apiVersion") != kind.api_version or given == kind.kind:
        return
    meta = obj.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else ""
    problem = bad_value("kind", given, f"must be {kind.kind}")
    raise invalid(kind.group, given, name if isinstance(name, str) else "", [problem])


def typed(value: JsonValue) -> JsonObject:
    """A value that says of which kind it is, as far as it says it; Unreadable if it is none."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        told = described(value)
        raise Unreadable(f"json: cannot unmarshal {told} into Go value of type {TYPE_META}")
    for name, item in value.items():
        if name in ("apiVersion", "kind") and not isinstance(item, str | None):
            told = f"json: cannot unmarshal {described(item)} into Go struct field .{name}"
            raise Unreadable(f"{told} of type string")
    return value


def _unrecognized(kind: Kind, why: str, body: bytes) -> ApiError:
    what = f"the object provided is unrecognized (must be of type {kind.kind})"
    return bad_request(f"{what}: {why} ({_summary(body)})")


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    more = " ..." if len(body) > _SHOWN else ""
    begun = body[:_SHOWN]
    return (begun.decode("utf-8", "replace") if body[:1] == b"{" else begun.hex()) + more
