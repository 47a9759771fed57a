"""The catalog of served kinds, their selectable fields, and conversions between kinds.

`events.k8s.io` and the core group serve the same events with different field names; the versions of
a custom resource differ only in their apiVersion.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.kinds.builtin import BUILTIN
from bayplan.embedded.apiserver.kinds.model import ServedKind


class Catalog:
    """Finds kinds by the names in a URL or in an object."""

    def __init__(self) -> None:
        self.generation = 0
        """Counts changes, so that documents made from the catalog can be kept until it moves."""
        self._by_path: dict[tuple[str, str, str], ServedKind] = {}
        self._by_kind: dict[tuple[str, str], ServedKind] = {}
        self._custom: dict[str, tuple[ServedKind, ...]] = {}
        self._primary: dict[str, ServedKind] = {}
        self._by_storage: dict[str, tuple[ServedKind, ...]] = {}
        self._rebuild()

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(self._by_path.values())

    def find(self, group: str, version: str, plural: str) -> ServedKind | None:
        """Return the kind of `/apis/<group>/<version>/<plural>`."""
        return self._by_path.get((group, version, plural))

    def of_object(self, api_version: str, kind: str) -> ServedKind | None:
        """Return the kind of an apiVersion and a kind name."""
        return self._by_kind.get((api_version, kind))

    def stored(self, storage: str) -> ServedKind | None:
        """Return the kind whose form is stored under a storage name."""
        return self._primary.get(storage)

    def sharing(self, storage: str) -> tuple[ServedKind, ...]:
        """Return the kinds that share a storage name: versions, and converted kinds."""
        return self._by_storage.get(storage, ())

    def serves_group(self, group: str, version: str) -> bool:
        """Return whether any kind of a group and version is served."""
        return any(kind.group == group and kind.version == version for kind in self)

    def groups(self) -> dict[str, list[str]]:
        """Return each group's versions, preferred ones first."""
        found: dict[str, list[str]] = {}
        for kind in self:
            versions = found.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
        return found

    def storages(self) -> Iterable[ServedKind]:
        """Return one kind for each storage name."""
        return self._primary.values()

    def set_custom(self, definition: str, kinds: tuple[ServedKind, ...]) -> None:
        """Serve the kinds of a CRD in place of those before; storage version first."""
        self._custom[definition] = kinds
        self._rebuild()

    def drop_custom(self, definition: str) -> None:
        """Stop serving the kinds of a CRD."""
        if self._custom.pop(definition, None) is not None:
            self._rebuild()

    def _rebuild(self) -> None:
        kinds = [*BUILTIN, *(kind for group in self._custom.values() for kind in group)]
        self._by_path = {(kind.group, kind.version, kind.plural): kind for kind in kinds}
        self._by_kind = {(kind.api_version, kind.kind): kind for kind in kinds}
        self._primary = {}
        sharing: dict[str, list[ServedKind]] = defaultdict(list)
        for kind in self:
            sharing[kind.storage].append(kind)
        self._by_storage = {storage: tuple(found) for storage, found in sharing.items()}
        for kind in kinds:
            if kind.verbs != ("create",):
                self._primary.setdefault(kind.storage, kind)
        self.generation += 1


ALWAYS = ("metadata.name", "metadata.namespace")
_UNSET = {"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.successful": "0"}
"""Values of unset fields for selectors; elsewhere the empty string."""


def value_at(obj: JsonObject, path: str) -> JsonValue:
    """Return the value at a dotted path, or None."""
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
    """Return each path with its parts."""
    return tuple((path, _parts(path)) for path in paths)


@cache
def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def as_field(value: JsonValue) -> str:
    """Return a value as the string that selectors compare."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def read_fields(obj: JsonObject, paths: tuple[str, ...]) -> dict[str, str]:
    """Return the non-empty values at some paths."""
    found: dict[str, str] = {}
    for path, parts in _split(paths):
        value = _value(obj, parts)
        if value is not None and value != "":
            found[path] = as_field(value)
        elif path in _UNSET:
            found[path] = _UNSET[path]
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


Convert = Callable[[JsonObject], JsonObject]


class KindConversion(NamedTuple):
    """Converts between the stored and the served form."""

    shown: Convert
    kept: Convert


_EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}


def _renamed(obj: JsonObject, names: dict[str, str], api_version: str) -> JsonObject:
    renamed = {names.get(key, key): value for key, value in obj.items()}
    return {**renamed, "apiVersion": api_version}


_TO_KEPT = {shown: kept for kept, shown in _EVENT_NAMES.items()}
_REPORTED = ("reportingComponent", "reportingInstance")
"""Fields that the core group always has, and `events.k8s.io` only if they are set."""


def _shown_event(obj: JsonObject) -> JsonObject:
    fields = {name: value for name, value in obj.items() if name not in _REPORTED or value}
    return _renamed(fields, _EVENT_NAMES, "events.k8s.io/v1")


def _kept_event(obj: JsonObject) -> JsonObject:
    return {**dict.fromkeys(_REPORTED, ""), **_renamed(obj, _TO_KEPT, "v1")}


_EVENTS = KindConversion(_shown_event, _kept_event)


def conversion_of(kind: ServedKind) -> KindConversion | None:
    """Return the conversion of a kind; None if it is served as stored."""
    if kind.group == "events.k8s.io":
        return _EVENTS
    if kind.custom is not None and kind.custom.storage_version != kind.version:
        return _version_view(kind)
    return None


def _version_view(kind: ServedKind) -> KindConversion:
    kept = f"{kind.group}/{kind.custom.storage_version if kind.custom else kind.version}"
    return KindConversion(
        lambda obj: {**obj, "apiVersion": kind.api_version},
        lambda obj: {**obj, "apiVersion": kept},
    )


def to_served(kind: ServedKind, obj: JsonObject) -> JsonObject:
    """Return a stored object in the served form of a kind."""
    view = conversion_of(kind)
    return obj if view is None else view.shown(obj)


def to_stored(kind: ServedKind, obj: JsonObject) -> JsonObject:
    """Return an object of a kind in its stored form."""
    view = conversion_of(kind)
    return obj if view is None else view.kept(obj)


def stored_field(kind: ServedKind, path: str) -> str:
    """Return the stored name of a field of a kind."""
    if kind.group != "events.k8s.io":
        return path
    first, dot, rest = path.partition(".")
    return _TO_KEPT.get(first, first) + dot + rest
