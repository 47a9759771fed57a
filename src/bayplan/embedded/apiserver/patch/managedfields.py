"""Managed fields: who set which fields of an object, as `metadata.managedFields` keeps it.

A shape is read from the table of types for built-in kinds, and from its schema for a custom
resource.

A tree maps path elements (`f:name`, `k:{"name":"a"}`, `v:"x"`, and `.` for an element itself) to
trees; an empty tree is a leaf. This is the form that `managedFields` has on the wire.

Ownership is kept from an object's first server-side apply on. What was there before that belongs
to the manager `before-first-apply`; objects that are never applied carry no bookkeeping at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, decode, encode
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.schema.types import ObjectType, require_type, root_type


class Shape(Protocol):
    """What is known of a value's parts."""

    def child(self, name: str) -> Part:
        """The part of a name."""


class Part(NamedTuple):
    """A part of an object."""

    shape: Shape
    """The shape of the value, or of a list's elements."""
    keys: tuple[str, ...] = ()
    """The keys of a list that is a map."""
    is_set: bool = False
    atomic: bool = False


class Unknown:
    """Nothing is known: objects have parts, lists are one whole."""

    def child(self, name: str) -> Part:  # noqa: ARG002
        """Whatever it is."""
        return Part(self)


UNKNOWN = Unknown()


class Typed:
    """A type of the table."""

    def __init__(self, type_: ObjectType) -> None:
        self._type = type_

    def child(self, name: str) -> Part:
        """A field of the type."""
        field = self._type.fields.get(name)
        if field is None:
            return Part(UNKNOWN)
        inner: Shape = Typed(require_type(field.base)) if field.is_object else UNKNOWN
        if field.is_map:
            inner = MapOf(Part(inner))
        return Part(inner, field.list_keys, field.is_set, field.atomic or field.base == "Raw")


class MapOf:
    """A map whose values have one shape."""

    def __init__(self, part: Part) -> None:
        self._part = part

    def child(self, name: str) -> Part:  # noqa: ARG002
        """Any value of the map."""
        return self._part


class Schemed:
    """A part of a custom resource's schema."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema

    def child(self, name: str) -> Part:
        """A property of the schema."""
        others = self._schema.get("additionalProperties")
        found = (self._schema.get("properties") or {}).get(name, others)
        if not isinstance(found, dict):
            return Part(UNKNOWN)
        kind = found.get("x-kubernetes-list-type")
        keys = tuple(found.get("x-kubernetes-list-map-keys") or ()) if kind == "map" else ()
        inner = found.get("items") if "items" in found else found
        atomic = found.get("x-kubernetes-map-type") == "atomic"
        return Part(Schemed(inner or {}), keys, kind == "set", atomic)


class _Root:
    """The whole object: metadata is the same everywhere."""

    def __init__(self, rest: Shape) -> None:
        self._rest = rest

    def child(self, name: str) -> Part:
        if name == "metadata":
            return Part(Typed(require_type("meta.ObjectMeta")))
        return self._rest.child(name)


def shape_of(kind: Kind) -> Shape:
    """The shape of a kind's objects."""
    if kind.custom is not None:
        return _Root(Schemed(kind.custom.schema) if kind.custom.schema else UNKNOWN)
    type_ = root_type(kind.group, kind.kind)
    return Typed(type_) if type_ is not None else UNKNOWN


FieldSet = dict[str, "FieldSet"]
Path = tuple[str, ...]


def fields_of(obj: JsonObject, shape: Shape) -> FieldSet:
    """Every field that an object sets."""
    return {f"f:{name}": _of_value(value, shape.child(name)) for name, value in obj.items()}


def _of_value(value: JsonValue, part: Part) -> FieldSet:
    if part.atomic:
        return {}
    if isinstance(value, dict):
        return fields_of(value, part.shape)
    if isinstance(value, list) and (part.keys or part.is_set):
        return {element_key(item, part): _of_element(item, part) for item in value}
    return {}


def _of_element(item: JsonValue, part: Part) -> FieldSet:
    return {".": {}, **fields_of(item, part.shape)} if part.keys and isinstance(item, dict) else {}


def element_key(item: JsonValue, part: Part) -> str:
    """The path element of a list's element."""
    if part.is_set or not isinstance(item, dict):
        return "v:" + encode(item).decode()
    keys = {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in sorted(part.keys)}
    return "k:" + encode({key: value for key, value in keys.items() if value is not None}).decode()


_KEY_DEFAULTS = {"protocol": "TCP"}


def leaves(fields: FieldSet, path: Path = ()) -> Iterator[Path]:
    """The paths of all leaves; an element itself (`.`) is its element's path."""
    for name, inner in fields.items():
        if name == ".":
            yield path
        elif not inner:
            yield (*path, name)
        else:
            yield from leaves(inner, (*path, name))


def tree_of(paths: set[Path]) -> FieldSet:
    """The tree whose leaves are given."""
    root: FieldSet = {}
    for path in sorted(paths):
        inner = root
        for name in path:
            inner = inner.setdefault(name, {})
        if path[-1].startswith("k:"):
            inner.setdefault(".", {})
    return root


def values_of(obj: JsonObject, shape: Shape) -> dict[Path, JsonValue]:
    """Every value inside an object by its path, in one pass; of equal elements the first counts."""
    found: dict[Path, JsonValue] = {}
    waiting: list[tuple[Path, JsonValue, Part]] = [((), obj, Part(shape))]
    while waiting:
        path, value, part = waiting.pop()
        if path:
            found.setdefault(path, value)
        if isinstance(value, dict):
            waiting += [
                ((*path, f"f:{name}"), item, part.shape.child(name)) for name, item in value.items()
            ]
        elif isinstance(value, list) and (part.keys or part.is_set):
            elements = [((*path, element_key(item, part)), item) for item in value]
            waiting += [(place, item, Part(part.shape)) for place, item in reversed(elements)]
    return found


def remove_all(obj: JsonValue, gone: FieldSet, part: Part) -> None:
    """Take out what the leaves of a tree name, in one pass."""
    if isinstance(obj, dict):
        for name, inner in gone.items():
            if inner and name[2:] in obj:
                remove_all(obj[name[2:]], inner, part.shape.child(name[2:]))
            else:
                obj.pop(name[2:], None)
    elif isinstance(obj, list):
        marks = [element_key(item, part) for item in obj]
        for item, mark in zip(obj, marks, strict=True):
            remove_all(item, gone.get(mark, {}), Part(part.shape))
        obj[:] = [item for item, mark in zip(obj, marks, strict=True) if gone.get(mark, True)]


def is_key(path: Path) -> bool:
    """Whether a path leads to a key of a list's element, without which the element is lost."""
    return (
        len(path) > 1
        and path[-2].startswith("k:")
        and path[-1][2:] in decode(path[-2][2:].encode())
    )


def spell(path: Path) -> str:
    """A path as a user reads it: `.spec.containers[name="a"].image`."""
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
class Manager:
    """Somebody who sets fields."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""


@dataclass(slots=True)
class Ownership:
    """Who owns which fields of an object."""

    owned: dict[Manager, set[Path]] = field(default_factory=dict)
    times: dict[Manager, str] = field(default_factory=dict)

    @classmethod
    def read(cls, obj: JsonObject) -> Ownership:
        """The ownership that an object carries."""
        ownership = cls()
        for entry in obj["metadata"].get("managedFields") or ():
            manager = Manager(
                entry.get("manager") or "",
                entry.get("operation") or "Update",
                entry.get("apiVersion") or "",
                entry.get("subresource") or "",
            )
            ownership.owned[manager] = set(leaves(entry.get("fieldsV1") or {}))
            ownership.times[manager] = entry.get("time") or ""
        return ownership

    def write(self, obj: JsonObject) -> None:
        """Let an object carry this ownership."""
        entries = [self._entry(manager, paths) for manager, paths in self.owned.items() if paths]
        if entries:
            obj["metadata"]["managedFields"] = entries
        else:
            obj["metadata"].pop("managedFields", None)

    def _entry(self, manager: Manager, paths: set[Path]) -> JsonObject:
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

    def give(self, manager: Manager, paths: set[Path], now: str) -> None:
        """Let a manager own exactly these fields."""
        if self.owned.get(manager) != paths:
            self.times[manager] = now
        self.owned[manager] = paths

    def others(self, manager: Manager) -> dict[Manager, set[Path]]:
        """What everybody else owns."""
        return {other: paths for other, paths in self.owned.items() if other != manager}


def owned_paths(obj: JsonObject, shape: Shape) -> set[Path]:
    """The fields of an object that can be owned: not its identity, nor what the server keeps."""
    fields: FieldSet = fields_of(
        {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}, shape
    )
    meta = fields.get("f:metadata")
    if meta is not None:
        fields["f:metadata"] = {k: v for k, v in meta.items() if k[2:] not in _UNOWNED}
        if not fields["f:metadata"]:
            del fields["f:metadata"]
    return set(leaves(fields))


def track(new: JsonObject, old: JsonObject, shape: Shape, manager: Manager, now: str) -> None:
    """After an ordinary write: whoever changed a field owns it, and nobody owns what is gone."""
    ownership = Ownership.read(old)
    if not ownership.owned:
        return
    if new["metadata"].get("managedFields") == []:
        new["metadata"].pop("managedFields")
        return
    present = owned_paths(new, shape)
    before, after = values_of(old, shape), values_of(new, shape)
    changed = {path for path in present if before.get(path) != after.get(path)}
    for other in list(ownership.owned):
        kept = ownership.owned[other] & present
        ownership.owned[other] = kept - changed if other != manager else kept
    if changed:
        ownership.give(manager, ownership.owned.get(manager, set()) | changed, now)
    ownership.write(new)
