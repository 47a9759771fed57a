"""The table's types as OpenAPI schemas."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.schema.types import FieldType, ObjectType, require_type

_PREFIXES = {
    "meta": "io.k8s.apimachinery.pkg.apis.meta.v1.",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.",
}
_SCALARS: dict[str, JsonObject] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "Raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "FieldsV1": {"type": "object"},
}


def definition_name(type_name: str) -> str:
    """The name by which OpenAPI knows a type."""
    package, _, name = type_name.partition(".")
    return _PREFIXES.get(package, f"io.k8s.api.{package}.v1.") + name


class SchemaWriter:
    """Writes schemas of types and of every type that they need."""

    def __init__(self, reference_prefix: str, *, unions: bool) -> None:
        self.schemas: dict[str, JsonObject] = {}
        self._prefix = reference_prefix
        self._unions = unions

    def add(self, type_: ObjectType, kinds: Iterable[JsonObject] = ()) -> str:
        """Write a type; returns its name."""
        name = definition_name(type_.name)
        if name not in self.schemas:
            schema: JsonObject = {"type": "object"}
            self.schemas[name] = schema
            schema["properties"] = {
                field.name: self._field(field) for field in type_.fields.values()
            }
        known = list(kinds)
        if known:
            self.schemas[name]["x-kubernetes-group-version-kind"] = known
        return name

    def reference(self, type_: ObjectType) -> JsonObject:
        """A reference to a type, which is written if it is not yet."""
        return {"$ref": self._prefix + self.add(type_)}

    def field_of(self, type_: ObjectType) -> JsonObject:
        """A field of a type: a reference, inside a union where something is said beside it."""
        inner = self.reference(type_)
        return {"allOf": [inner], "default": {}} if self._unions else inner

    def _field(self, field: FieldType) -> JsonObject:
        inner = self._base(field)
        if field.is_map:
            return {"type": "object", "additionalProperties": inner}
        if field.is_list:
            return {"type": "array", "items": inner, **_list_notes(field)}
        return self.field_of(require_type(field.base)) if field.is_object else inner

    def _base(self, field: FieldType) -> JsonObject:
        if field.is_object:
            return self.reference(require_type(field.base))
        scalar = _SCALARS.get(field.base, {})
        if "oneOf" in scalar and not self._unions:
            return {"type": "string", **{k: v for k, v in scalar.items() if k == "format"}}
        return dict(scalar)


def _list_notes(field: FieldType) -> JsonObject:
    notes: JsonObject = {}
    if field.merge:
        notes["x-kubernetes-patch-strategy"] = "merge"
        if field.retain_keys:
            notes["x-kubernetes-patch-strategy"] = "merge,retainKeys"
    if field.merge_key:
        notes["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.list_keys:
        notes["x-kubernetes-list-type"] = "map"
        notes["x-kubernetes-list-map-keys"] = list(field.list_keys)
    elif field.is_set:
        notes["x-kubernetes-list-type"] = "set"
    elif not field.merge:
        notes["x-kubernetes-list-type"] = "atomic"
    return notes
