"""JSON as this server handles it: objects are dicts, since it must keep fields that it does not
know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

JsonValue: TypeAlias = Any
"""Any JSON value. Requests are checked against the kind's schema before code relies on a shape."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object."""

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


def clone(value: JsonValue) -> JsonValue:
    """A deep copy of a JSON value (several times faster than `copy.deepcopy`)."""
    if isinstance(value, dict):
        return {key: clone(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clone(item) for item in value]
    return value


DEEPEST = 200
"""How deeply values may be nested: code that goes through them calls itself."""
MOST_VALUES = 50_000
"""How many values may be in one: some ten microseconds of everybody's time are spent on each."""


def excess(value: JsonValue, written: bytes) -> str:
    """What is too much about a value, which is also given as it was written; empty if nothing is.

    What is short, or has few brackets, is not looked at.
    """
    if len(written) < MOST_VALUES and written.count(b"{") + written.count(b"[") <= DEEPEST:
        return ""
    level, values = [value], 0
    for _ in range(DEEPEST + 1):
        level = [inner for item in level for inner in _parts(item)]
        values += len(level)
        if values > MOST_VALUES:
            return f"more than {MOST_VALUES} values"
    return "exceeded max depth" if level else ""


def _parts(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def metadata_of(obj: JsonObject) -> JsonObject:
    """An object's metadata, made if it is absent."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        meta = obj["metadata"] = {}
    return meta


def in_go(value: JsonValue) -> str:
    """A value as Go prints it: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        pairs = (f"{name}:{in_go(value[name])}" for name in sorted(value))
        return f"map[{' '.join(pairs)}]"
    if isinstance(value, list):
        return f"[{' '.join(map(in_go, value))}]"
    if value is None:
        return "<nil>"
    return value if isinstance(value, str) else encode(value).decode()
