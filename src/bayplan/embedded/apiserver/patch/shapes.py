"""How the parts of an object are owned: which lists are maps or sets, and what is one whole.

A shape is read from the table of types for built-in kinds, and from its schema for a custom
resource.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.schema.roots import root_type
from bayplan.embedded.apiserver.schema.types import ObjectType, require_type


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
