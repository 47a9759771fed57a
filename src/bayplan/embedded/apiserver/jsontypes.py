"""JSON values: objects are dicts, since the server keeps fields that it does not know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

JsonValue: TypeAlias = Any
"""Any JSON value. Requests are validated against the schema before code relies on types."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object."""

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


def clone(value: JsonValue) -> JsonValue:
    """Return a deep copy of a JSON value (several times faster than `copy.deepcopy`)."""
    if isinstance(value, dict):
        return {key: clone(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clone(item) for item in value]
    return value


MAX_DEPTH = 200
"""Limit of nesting: code that walks values is recursive."""
MAX_VALUES = 50_000
"""Limit of values in one object: each costs some ten microseconds."""


def excess(value: JsonValue, written: bytes) -> str:
    """Return which limit a value exceeds, given also its encoded form; empty if none.

    Short values, and values with few brackets, are not inspected.
    """
    if len(written) < MAX_VALUES and written.count(b"{") + written.count(b"[") <= MAX_DEPTH:
        return ""
    level, values = [value], 0
    for _ in range(MAX_DEPTH + 1):
        level = [inner for item in level for inner in _parts(item)]
        values += len(level)
        if values > MAX_VALUES:
            return f"more than {MAX_VALUES} values"
    return "exceeded max depth" if level else ""


def _parts(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def metadata_of(obj: JsonObject) -> JsonObject:
    """Return an object's metadata, created if it is absent."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        meta = obj["metadata"] = {}
    return meta


def in_go(value: JsonValue) -> str:
    """Return a value as Go prints it: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        pairs = (f"{name}:{in_go(value[name])}" for name in sorted(value))
        return f"map[{' '.join(pairs)}]"
    if isinstance(value, list):
        return f"[{' '.join(map(in_go, value))}]"
    if value is None:
        return "<nil>"
    return value if isinstance(value, str) else encode(value).decode()
