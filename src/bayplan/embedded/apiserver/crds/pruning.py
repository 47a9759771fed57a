"""Pruning and defaulting by a structural schema, with a limit of the work per object.

Schemas come from users: nested alternatives, patterns over long strings and defaults in long lists
can make a small request very expensive. Work is counted as it is done, and a request above the
limit is refused.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, clone, encode

MAX_STEPS = 200_000
"""Limit in steps of about five microseconds."""
MATCHED_IN_A_STEP = 1000
"""Characters times pattern instructions per step."""
CHOICES_IN_A_STEP = 100
BYTES_IN_A_STEP = 100


class WorkLimit:
    """Counts the work of one object."""

    __slots__ = ("_left",)

    def __init__(self, most: int = MAX_STEPS) -> None:
        self._left = most

    def spend(self, steps: int = 1) -> None:
        """Count some work; 400 above the limit."""
        self._left -= steps
        if self._left < 0:
            raise bad_request("the object takes too much work to be checked against its schema")


_KEEP = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_ALWAYS = ("apiVersion", "kind", "metadata")


def prune(value: JsonValue, schema: JsonObject, unknown: list[str], path: str = "") -> None:
    """Remove fields that the schema does not have, and report their paths."""
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
            continue  # a schema cannot restrict these
        if name in properties:
            prune(value[name], properties[name], unknown, place)
        elif isinstance(others, dict):
            prune(value[name], others, unknown, place)
        elif not others and not schema.get(_KEEP):
            del value[name]
            unknown.append(place)


def add_defaults(value: JsonValue, schema: JsonObject, work: WorkLimit | None = None) -> None:
    """Set absent fields that have a default; it also replaces a null that is not nullable."""
    work = work or WorkLimit()
    items, others = schema.get("items"), schema.get("additionalProperties")
    if isinstance(value, list) and isinstance(items, dict):
        for item in value:
            add_defaults(item, items, work)
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    for name, inner in properties.items():
        _default_property(value, name, inner, work)
    if isinstance(others, dict):
        for name in value.keys() - properties.keys():
            add_defaults(value[name], others, work)


def _default_property(value: JsonObject, name: str, inner: JsonObject, work: WorkLimit) -> None:
    work.spend()
    if value.get(name) is None and not (name in value and inner.get("nullable")):
        value.pop(name, None)
        if "default" in inner:
            default = inner["default"]
            if isinstance(default, dict | list):
                work.spend(len(encode(default)) // BYTES_IN_A_STEP)
            value[name] = clone(default)
    if name in value:
        add_defaults(value[name], inner, work)
