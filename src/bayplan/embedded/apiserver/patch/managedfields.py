"""Managed fields: which manager owns which fields, as in `metadata.managedFields`.

The type of a value comes from the type table for built-in kinds, and from the schema for custom
resources.

A tree maps path elements (`f:name`, `k:{"name":"a"}`, `v:"x"`, and `.` for an element itself) to
trees; an empty tree is a leaf. This is the format of `managedFields`.

Ownership is tracked from an object's first server-side apply on. Fields that existed before belong
to the manager `before-first-apply`; objects that are never applied have no managed fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, decode, encode
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.schema.types import ObjectType, require_type, root_type


class ValueType(Protocol):
    """The type of a value."""

    def child(self, name: str) -> FieldDescriptor:
        """Return the descriptor of a field."""


class FieldDescriptor(NamedTuple):
    """A field of an object."""

    value_type: ValueType
    """The type of the value, or of a list's elements."""
    keys: tuple[str, ...] = ()
    """The keys of a list of type map."""
    is_set: bool = False
    atomic: bool = False


class DeducedType:
    """No schema: objects are granular, lists atomic."""

    def child(self, name: str) -> FieldDescriptor:  # noqa: ARG002
        """Return a descriptor without a schema."""
        return FieldDescriptor(self)


UNKNOWN = DeducedType()


class BuiltinType:
    """A type of the type table."""

    def __init__(self, type_: ObjectType) -> None:
        self._type = type_

    def child(self, name: str) -> FieldDescriptor:
        """Return the descriptor of a field of the type."""
        field = self._type.fields.get(name)
        if field is None:
            return FieldDescriptor(UNKNOWN)
        inner: ValueType = BuiltinType(require_type(field.base)) if field.is_object else UNKNOWN
        if field.is_map:
            inner = MapType(FieldDescriptor(inner))
        return FieldDescriptor(
            inner, field.list_keys, field.is_set, field.atomic or field.base == "Raw"
        )


class MapType:
    """A map whose values have one type."""

    def __init__(self, descriptor: FieldDescriptor) -> None:
        self._part = descriptor

    def child(self, name: str) -> FieldDescriptor:  # noqa: ARG002
        """Return the descriptor of the values."""
        return self._part


class SchemaType:
    """A part of a custom resource's schema."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema

    def child(self, name: str) -> FieldDescriptor:
        """Return the descriptor of a property."""
        others = self._schema.get("additionalProperties")
        found = (self._schema.get("properties") or {}).get(name, others)
        if not isinstance(found, dict):
            return FieldDescriptor(UNKNOWN)
        kind = found.get("x-kubernetes-list-type")
        keys = tuple(found.get("x-kubernetes-list-map-keys") or ()) if kind == "map" else ()
        inner = found.get("items") if "items" in found else found
        atomic = found.get("x-kubernetes-map-type") == "atomic"
        return FieldDescriptor(SchemaType(inner or {}), keys, kind == "set", atomic)


class _Root:
    """The root of a custom resource, with the built-in metadata."""

    def __init__(self, rest: ValueType) -> None:
        self._rest = rest

    def child(self, name: str) -> FieldDescriptor:
        if name == "metadata":
            return FieldDescriptor(BuiltinType(require_type("meta.ObjectMeta")))
        return self._rest.child(name)


def value_type_of(kind: ServedKind) -> ValueType:
    """Return the type of a kind's objects."""
    if kind.custom is not None:
        return _Root(SchemaType(kind.custom.schema) if kind.custom.schema else UNKNOWN)
    type_ = root_type(kind.group, kind.kind)
    return BuiltinType(type_) if type_ is not None else UNKNOWN


FieldSet = dict[str, "FieldSet"]
Path = tuple[str, ...]


def fields_of(obj: JsonObject, value_type: ValueType) -> FieldSet:
    """Return the tree of all fields that an object sets."""
    return {f"f:{name}": _of_value(value, value_type.child(name)) for name, value in obj.items()}


def _of_value(value: JsonValue, descriptor: FieldDescriptor) -> FieldSet:
    if descriptor.atomic:
        return {}
    if isinstance(value, dict):
        return fields_of(value, descriptor.value_type)
    if isinstance(value, list) and (descriptor.keys or descriptor.is_set):
        return {element_key(item, descriptor): _of_element(item, descriptor) for item in value}
    return {}


def _of_element(item: JsonValue, descriptor: FieldDescriptor) -> FieldSet:
    return (
        {".": {}, **fields_of(item, descriptor.value_type)}
        if descriptor.keys and isinstance(item, dict)
        else {}
    )


def element_key(item: JsonValue, descriptor: FieldDescriptor) -> str:
    """Return the path element of a list's element."""
    if descriptor.is_set or not isinstance(item, dict):
        return "v:" + encode(item).decode()
    keys = {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in sorted(descriptor.keys)}
    return "k:" + encode({key: value for key, value in keys.items() if value is not None}).decode()


_KEY_DEFAULTS = {"protocol": "TCP"}


def leaves(fields: FieldSet, path: Path = ()) -> Iterator[Path]:
    """Return the paths of all leaves; `.` is the element's own path."""
    for name, inner in fields.items():
        if name == ".":
            yield path
        elif not inner:
            yield (*path, name)
        else:
            yield from leaves(inner, (*path, name))


def tree_of(paths: set[Path]) -> FieldSet:
    """Return the tree of given leaves."""
    root: FieldSet = {}
    for path in sorted(paths):
        inner = root
        for name in path:
            inner = inner.setdefault(name, {})
        if path[-1].startswith("k:"):
            inner.setdefault(".", {})
    return root


def values_of(obj: JsonObject, value_type: ValueType) -> dict[Path, JsonValue]:
    """Return every value of an object by its path; of equal elements the first."""
    found: dict[Path, JsonValue] = {}
    waiting: list[tuple[Path, JsonValue, FieldDescriptor]] = [
        ((), obj, FieldDescriptor(value_type))
    ]
    while waiting:
        path, value, descriptor = waiting.pop()
        if path:
            found.setdefault(path, value)
        if isinstance(value, dict):
            waiting += [
                ((*path, f"f:{name}"), item, descriptor.value_type.child(name))
                for name, item in value.items()
            ]
        elif isinstance(value, list) and (descriptor.keys or descriptor.is_set):
            elements = [((*path, element_key(item, descriptor)), item) for item in value]
            waiting += [
                (place, item, FieldDescriptor(descriptor.value_type))
                for place, item in reversed(elements)
            ]
    return found


def remove_fields(obj: JsonValue, gone: FieldSet, descriptor: FieldDescriptor) -> None:
    """Remove the leaves of a tree from an object."""
    if isinstance(obj, dict):
        for name, inner in gone.items():
            if inner and name[2:] in obj:
                remove_fields(obj[name[2:]], inner, descriptor.value_type.child(name[2:]))
            else:
                obj.pop(name[2:], None)
    elif isinstance(obj, list):
        marks = [element_key(item, descriptor) for item in obj]
        for item, mark in zip(obj, marks, strict=True):
            remove_fields(item, gone.get(mark, {}), FieldDescriptor(descriptor.value_type))
        obj[:] = [item for item, mark in zip(obj, marks, strict=True) if gone.get(mark, True)]


def is_key(path: Path) -> bool:
    """Return whether a path is a key of a list's element."""
    return (
        len(path) > 1
        and path[-2].startswith("k:")
        and path[-1][2:] in decode(path[-2][2:].encode())
    )


def format_path(path: Path) -> str:
    """Return a path as text: `.spec.containers[name="a"].image`."""
    return "".join(_spell(name) for name in path)


def _spell(name: str) -> str:
    kind, rest = name[:2], name[2:]
    if kind == "f:":
        return f".{rest}"
    if kind == "k:":
        pairs = decode(rest.encode())
        return (
            "[" + ",".join(f"{key}={encode(value).decode()}" for key, value in pairs.items()) + "]"
        )
    return f"[{rest}]"


BEFORE = "before-first-apply"
_UNOWNED = frozenset(
    ("name", "namespace", "generateName", "uid", "resourceVersion", "generation", "selfLink")
) | {"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"}


@dataclass(frozen=True, slots=True)
class FieldManager:
    """A field manager."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""


@dataclass(slots=True)
class FieldOwnership:
    """Which manager owns which fields of an object."""

    owned: dict[FieldManager, set[Path]] = field(default_factory=dict)
    times: dict[FieldManager, str] = field(default_factory=dict)

    @classmethod
    def read(cls, obj: JsonObject) -> FieldOwnership:
        """Read the managed fields of an object."""
        ownership = cls()
        for entry in obj["metadata"].get("managedFields") or ():
            manager = FieldManager(
                entry.get("manager") or "",
                entry.get("operation") or "Update",
                entry.get("apiVersion") or "",
                entry.get("subresource") or "",
            )
            ownership.owned[manager] = set(leaves(entry.get("fieldsV1") or {}))
            ownership.times[manager] = entry.get("time") or ""
        return ownership

    def write(self, obj: JsonObject) -> None:
        """Write the managed fields of an object."""
        entries = [self._entry(manager, paths) for manager, paths in self.owned.items() if paths]
        if entries:
            obj["metadata"]["managedFields"] = entries
        else:
            obj["metadata"].pop("managedFields", None)

    def _entry(self, manager: FieldManager, paths: set[Path]) -> JsonObject:
        entry: JsonObject = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": manager.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": tree_of(paths),
        }
        if self.times.get(manager):
            entry["time"] = self.times[manager]
        if manager.subresource:
            entry["subresource"] = manager.subresource
        return entry

    def set_fields(self, manager: FieldManager, paths: set[Path], now: str) -> None:
        """Set the fields that a manager owns."""
        if self.owned.get(manager) != paths:
            self.times[manager] = now
        self.owned[manager] = paths

    def others(self, manager: FieldManager) -> dict[FieldManager, set[Path]]:
        """Return the fields of all other managers."""
        return {other: paths for other, paths in self.owned.items() if other != manager}


def ownable_paths(obj: JsonObject, value_type: ValueType) -> set[Path]:
    """Return the fields that can be owned: without identity and server-owned metadata."""
    fields: FieldSet = fields_of(
        {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")},
        value_type,
    )
    meta = fields.get("f:metadata")
    if meta is not None:
        fields["f:metadata"] = {k: v for k, v in meta.items() if k[2:] not in _UNOWNED}
        if not fields["f:metadata"]:
            del fields["f:metadata"]
    return set(leaves(fields))


def track_update(
    new: JsonObject, old: JsonObject, value_type: ValueType, manager: FieldManager, now: str
) -> None:
    """Record an update: its manager owns changed fields; removed fields are not owned."""
    ownership = FieldOwnership.read(old)
    if not ownership.owned:
        return
    if new["metadata"].get("managedFields") == []:
        new["metadata"].pop("managedFields")
        return
    present = ownable_paths(new, value_type)
    before, after = values_of(old, value_type), values_of(new, value_type)
    changed = {path for path in present if before.get(path) != after.get(path)}
    for other in list(ownership.owned):
        kept = ownership.owned[other] & present
        ownership.owned[other] = kept - changed if other != manager else kept
    if changed:
        ownership.set_fields(manager, ownership.owned.get(manager, set()) | changed, now)
    ownership.write(new)
