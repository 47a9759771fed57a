"""Small helpers to fill in what a client left out."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue


def fill(obj: JsonObject, **defaults: JsonValue) -> None:
    """Set fields that are absent."""
    for name, value in defaults.items():
        if obj.get(name) is None:
            obj[name] = value


def child(obj: JsonObject, name: str) -> JsonObject:
    """A nested object, made if it is absent."""
    found: JsonObject | None = obj.get(name)
    if found is None:
        found = obj[name] = {}
    return found


def items(obj: JsonObject, name: str) -> list[JsonObject]:
    """A nested list of objects; empty if it is absent."""
    return obj.get(name) or []
