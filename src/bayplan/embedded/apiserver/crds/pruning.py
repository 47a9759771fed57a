"""Pruning and defaulting by a structural schema, and how much work one object may be.

Schemas are written by strangers too: alternatives in alternatives, patterns over long texts and
defaults in long lists can make a small request cost more than a server has. Work is counted as it
is done, and an object that is too much of it is refused.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, clone, encode

MOST = 200_000
"""Steps of about five microseconds."""
MATCHED_IN_A_STEP = 1000
"""Letters times instructions of a pattern."""
CHOICES_IN_A_STEP = 100
BYTES_IN_A_STEP = 100


class Effort:
    """Counts the work that an object is."""

    __slots__ = ("_left",)

    def __init__(self, most: int = MOST) -> None:
        self._left = most

    def spend(self, steps: int = 1) -> None:
        """Count some work; 400 when it has become too much."""
        self._left -= steps
        if self._left < 0:
            raise bad_request("the object takes too much work to be checked against its schema")


_KEEP = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_ALWAYS = ("apiVersion", "kind", "metadata")


def prune(value: JsonValue, schema: JsonObject, unknown: list[str], path: str = "") -> None:
    """Take out of a value what its schema does not know, and say where it was."""
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                prune(item, items, unknown, f"{path}[{index}]")
        return
    if isinstance(value, dict):
        _prune_object(value, schema, unknown, path)


def _prune_object(value: JsonObject, schema: JsonObject, unknown: list[str], path: str) -> None:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    known_always = _ALWAYS if not path or schema.get(_EMBEDDED) else ()
    for name in list(value):
        place = f"{path}.{name}" if path else name
        if name in known_always:
            continue  # a schema that names them has no say in them
        if name in properties:
            prune(value[name], properties[name], unknown, place)
        elif isinstance(others, dict):
            prune(value[name], others, unknown, place)
        elif not others and not schema.get(_KEEP):
            del value[name]
            unknown.append(place)


def add_defaults(value: JsonValue, schema: JsonObject, effort: Effort | None = None) -> None:
    """Set what is absent and has a default; a null that may not be null gives way to it too."""
    effort = effort or Effort()
    items, others = schema.get("items"), schema.get("additionalProperties")
    if isinstance(value, list) and isinstance(items, dict):
        for item in value:
            add_defaults(item, items, effort)
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    for name, inner in properties.items():
        _default_property(value, name, inner, effort)
    if isinstance(others, dict):
        for name in value.keys() - properties.keys():
            add_defaults(value[name], others, effort)


def _default_property(value: JsonObject, name: str, inner: JsonObject, effort: Effort) -> None:
    effort.spend()
    if value.get(name) is None and not (name in value and inner.get("nullable")):
        value.pop(name, None)
        if "default" in inner:
            default = inner["default"]
            if isinstance(default, dict | list):
                effort.spend(len(encode(default)) // BYTES_IN_A_STEP)
            value[name] = clone(default)
    if name in value:
        add_defaults(value[name], inner, effort)
