"""What field selectors can ask for: a kind's selectable paths, read from its objects."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.kinds.catalog import Catalog

ALWAYS = ("metadata.name", "metadata.namespace")


def value_at(obj: JsonObject, path: str) -> JsonValue:
    """The value at a dotted path, or None."""
    found: JsonValue = obj
    for part in _parts(path):
        if not isinstance(found, dict):
            return None
        found = found.get(part)
    return found


@cache
def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def as_field(value: JsonValue) -> str:
    """A value in the form that a selector compares with."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def read_fields(obj: JsonObject, paths: Iterable[str]) -> dict[str, str]:
    """The values at some paths; only those that are set, since absent means empty."""
    found = {path: as_field(value_at(obj, path)) for path in paths}
    return {path: value for path, value in found.items() if value}


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
            found["source"] = as_field(value_at(obj, "source.component"))
        return found
