"""What field selectors can ask for: a kind's selectable paths, read from its objects."""

from __future__ import annotations

from functools import cache

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.kinds.catalog import Catalog

ALWAYS = ("metadata.name", "metadata.namespace")
_UNSAID = {"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.successful": "0"}
"""What selectors find where nothing was said; elsewhere, nothing."""


def value_at(obj: JsonObject, path: str) -> JsonValue:
    """The value at a dotted path, or None."""
    return _value(obj, _parts(path))


def _value(obj: JsonObject, parts: tuple[str, ...]) -> JsonValue:
    found: JsonValue = obj
    for part in parts:
        found = found.get(part) if type(found) is dict else None
        if found is None:
            return None
    return found


@cache
def _split(paths: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each path with its parts."""
    return tuple((path, _parts(path)) for path in paths)


@cache
def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def as_field(value: JsonValue) -> str:
    """A value in the form that a selector compares with."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def read_fields(obj: JsonObject, paths: tuple[str, ...]) -> dict[str, str]:
    """The values at some paths; only those that are not empty, since absent means empty."""
    found: dict[str, str] = {}
    for path, parts in _split(paths):
        value = _value(obj, parts)
        if value is not None and value != "":
            found[path] = as_field(value)
        elif path in _UNSAID:
            found[path] = _UNSAID[path]
    return found


class CatalogFields:
    """Reads the selectable fields of any stored object."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __call__(self, storage: str, obj: JsonObject) -> dict[str, str]:
        """The selectable fields of an object kept under a storage name."""
        kind = self._catalog.stored(storage)
        if kind is None or not kind.fields:
            return {}
        found = read_fields(obj, kind.fields)
        if storage == "events":
            reporter = value_at(obj, "source.component") or value_at(obj, "reportingComponent")
            found["source"] = as_field(reporter)
        return found
