"""OpenAPI documents of the served resources, for clients that validate before they send.

As protobuf only the head of the document is written, without types: kubectl then leaves validation
to the server, which validates every write in any event.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from bayplan.embedded.apiserver.discovery import version_info
from bayplan.embedded.apiserver.jsontypes import JsonObject, encode
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.schema.types import FieldType, ObjectType, require_type, root_type

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
    """Return the OpenAPI name of a type."""
    package, _, name = type_name.partition(".")
    return _PREFIXES.get(package, f"io.k8s.api.{package}.v1.") + name


class SchemaWriter:
    """Writes schemas of types and of all types that they reference."""

    def __init__(self, reference_prefix: str, *, unions: bool) -> None:
        self.schemas: dict[str, JsonObject] = {}
        self._prefix = reference_prefix
        self._unions = unions

    def add(self, type_: ObjectType, kinds: Iterable[JsonObject] = ()) -> str:
        """Write a type and return its name."""
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
        """Return a reference to a type, which is written if it is not yet."""
        return {"$ref": self._prefix + self.add(type_)}

    def field_of(self, type_: ObjectType) -> JsonObject:
        """Return the schema of a field: a reference, inside `allOf` if it has other attributes."""
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


CONTENT_TYPE = b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_NAMES = (b"proto-openapi.spec.v2.v1.0+protobuf", b"proto-openapi.spec.v2@v1.0+protobuf")


def is_wanted(accept: bytes | None) -> bool:
    """Return whether a client prefers protobuf to JSON."""
    first = (accept or b"").partition(b",")[0]
    return any(name in first for name in _NAMES)


def head() -> bytes:
    """Return a document with its version and its title, and no types."""
    version = str(version_info()["gitVersion"]).encode()
    return _field(1, b"2.0") + _field(2, _field(1, b"Kubernetes") + _field(2, version))


def _field(number: int, content: bytes) -> bytes:
    """A short text or message, as protobuf writes it."""
    return bytes((number << 3 | 2, len(content))) + content


_METHODS = {"get": "get", "list": "get", "create": "post", "update": "put", "patch": "patch"} | {
    "delete": "delete",
    "deletecollection": "delete",
}
_ON_OBJECT = ("get", "update", "patch", "delete")
_ON_LIST = ("list", "create", "deletecollection")
_WRITES = ("create", "update", "patch")
_TYPE_META = {
    "apiVersion": "The group and version that the object is written in.",
    "kind": "The kind of object that it is.",
}
"""Descriptions of these fields where a definition has none."""
_METADATA = "The object's name, labels and the like."
"""Description of metadata, which a definition's schema cannot have."""

Parameter = Callable[[str], JsonObject]
"""Writes a query parameter for one version of OpenAPI."""


class OpenApi:
    """Writes the documents, cached until the catalog changes."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._generation = -1
        self._kept: dict[str, bytes] = {}

    def index(self) -> bytes:
        """Return `/openapi/v3`: the paths of the documents by group and version."""
        return self._keep("", self._index)

    def v3(self, group: str, version: str) -> bytes | None:
        """Return the document of a group and version, or None."""
        if not self._catalog.serves_group(group, version):
            return None
        return self._keep(f"{group}/{version}", lambda: self._v3(group, version))

    def v2(self) -> bytes:
        """Return `/openapi/v2`: one document of everything."""
        return self._keep("v2", self._v2)

    def _keep(self, name: str, make: Callable[[], JsonObject]) -> bytes:
        if self._generation != self._catalog.generation:
            self._kept.clear()
            self._generation = self._catalog.generation
        if name not in self._kept:
            self._kept[name] = encode(make())
        return self._kept[name]

    def _index(self) -> JsonObject:
        paths: JsonObject = {}
        for group, versions in self._catalog.groups().items():
            for version in versions:
                path = f"apis/{group}/{version}" if group else f"api/{version}"
                mark = f"{self._catalog.generation}:{path}".encode()
                hashed = hashlib.sha256(mark).hexdigest().upper()
                paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={hashed}"}
        return {"paths": paths}

    def _kinds(self, group: str, version: str) -> list[ServedKind]:
        return [kind for kind in self._catalog if (kind.group, kind.version) == (group, version)]

    def _v3(self, group: str, version: str) -> JsonObject:
        writer = SchemaWriter("#/components/schemas/", unions=True)
        kinds = self._kinds(group, version)
        _write_kinds(writer, kinds)
        writer.add(require_type("meta.DeleteOptions"))
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": version_info()["gitVersion"]},
            "paths": _paths(kinds, _parameter_v3),
            "components": {"schemas": writer.schemas},
        }

    def _v2(self) -> JsonObject:
        writer = SchemaWriter("#/definitions/", unions=False)
        kinds = list(self._catalog)
        _write_kinds(writer, kinds)
        return {
            "swagger": "2.0",
            "info": {"title": "Kubernetes", "version": version_info()["gitVersion"]},
            "paths": _paths(kinds, _parameter_v2),
            "definitions": writer.schemas,
        }


def _gvk(kind: ServedKind) -> JsonObject:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _write_kinds(writer: SchemaWriter, kinds: Iterable[ServedKind]) -> None:
    for kind in kinds:
        type_ = root_type(kind.group, kind.kind) if kind.custom is None else None
        if type_ is not None:
            writer.add(type_, [_gvk(kind)])
        elif kind.custom is not None:
            writer.schemas[_custom_name(kind)] = _custom_schema(writer, kind)


def _custom_name(kind: ServedKind) -> str:
    reversed_group = ".".join(reversed(kind.group.split(".")))
    return f"{reversed_group}.{kind.version}.{kind.kind}"


def _custom_schema(writer: SchemaWriter, kind: ServedKind) -> JsonObject:
    schema: JsonObject = dict((kind.custom.schema if kind.custom else None) or {"type": "object"})
    properties = dict(schema.get("properties") or {})
    for name, default in _TYPE_META.items():
        description = (properties.get(name) or {}).get("description")
        properties[name] = {"description": description or default, "type": "string"}
    properties["metadata"] = {
        "description": _METADATA,
        **writer.field_of(require_type("meta.ObjectMeta")),
    }
    return {**schema, "properties": properties, "x-kubernetes-group-version-kind": [_gvk(kind)]}


def _parameter_v3(name: str) -> JsonObject:
    return {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}


def _parameter_v2(name: str) -> JsonObject:
    return {"name": name, "in": "query", "type": "string", "uniqueItems": True}


def _paths(kinds: Iterable[ServedKind], parameter: Parameter) -> JsonObject:
    paths: JsonObject = {}
    for kind in kinds:
        root = f"/apis/{kind.group}" if kind.group else "/api"
        scope = "/namespaces/{namespace}" if kind.namespaced else ""
        base = f"{root}/{kind.version}{scope}/{kind.plural}"
        paths[base] = _operations(kind, _ON_LIST, parameter)
        paths[base + "/{name}"] = _operations(kind, _ON_OBJECT, parameter)
    return {path: operations for path, operations in paths.items() if operations}


def _operations(kind: ServedKind, verbs: tuple[str, ...], parameter: Parameter) -> JsonObject:
    return {
        _METHODS[verb]: {
            "operationId": f"{verb}{kind.group.replace('.', '_')}{kind.version}{kind.kind}",
            "parameters": [parameter(name) for name in _parameters(verb)],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": verb,
            "x-kubernetes-group-version-kind": _gvk(kind),
        }
        for verb in verbs
        if verb in kind.verbs
    }


def _parameters(verb: str) -> tuple[str, ...]:
    if verb in _WRITES:
        return ("dryRun", "fieldManager", "fieldValidation")
    return ("dryRun",) if verb.startswith("delete") else ()
