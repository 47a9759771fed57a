"""Validation of the schema of a version: forbidden keywords, and defaults that do not match."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.embedded.apiserver.crds.formats import is_known_format
from bayplan.embedded.apiserver.crds.pruning import prune
from bayplan.embedded.apiserver.crds.structure import (
    EMBEDDED,
    KEEPS_UNKNOWN,
    MAX_DEPTH,
    is_too_deep,
    parts,
    structural_problems,
)
from bayplan.embedded.apiserver.crds.validation import problems_at
from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, clone
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    forbidden_field,
    not_supported,
    required,
)

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPE, _MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-map-type"
_KEYS = "x-kubernetes-list-map-keys"
_RULES = "x-kubernetes-validations"
_METADATA = ("metadata", "kind", "apiVersion")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength "
    "MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties "
    "ExternalDocs Example XPreserveUnknownFields XValidations"
)
_ROOT_NAMES = frozenset(
    name[0].lower() + name[1:] for name in _AT_ROOT.split() if not name.startswith("X")
) | {KEEPS_UNKNOWN, _RULES}


def version_schema_problems(
    schema: JsonObject, field: str, *, has_status: bool
) -> list[FieldCause]:
    """Return the problems of a version's schema."""
    if is_too_deep(schema):
        return [bad_value(field, "", f"must not be nested deeper than {MAX_DEPTH} schemas")]
    found = _root_problems(schema, field) if has_status else []
    if schema.get("nullable"):
        found.append(forbidden_field(f"{field}.nullable", "nullable cannot be true at the root"))
    structural = structural_problems(schema, field)
    found += structural or _default_problems(schema, field, embedded=True)
    return found + list(_schema_problems(schema, field, root=True))


def unknown_formats(schema: JsonObject) -> Iterator[str]:
    """Return the formats of a schema that are not known."""
    name, kind = schema.get("format") or "", schema.get("type") or ""
    if name and not is_known_format(name, kind):
        yield name
    for _, inner in parts(schema):
        yield from unknown_formats(inner)


def _root_problems(schema: JsonObject, field: str) -> list[FieldCause]:
    """Return the root keywords that cannot be used with the status subresource."""
    found = []
    kind = schema.get("type")
    if kind and kind != "object":
        detail = (
            'only "object" is allowed as the type at the root of the schema if the status '
            "subresource is enabled"
        )
        found.append(bad_value(f"{field}.type", kind, detail))
    if any(value for name, value in schema.items() if name not in _ROOT_NAMES):
        detail = (
            f"only [{_AT_ROOT}] fields are allowed at the root of the schema if the status "
            "subresource is enabled"
        )
        shown = internal_form(schema, "apiextensions.JSONSchemaProps")
        found.append(bad_value(field, shown, detail))
    return found


def _default_problems(
    schema: JsonObject, field: str, *, embedded: bool = False
) -> list[FieldCause]:
    """Return the defaults that are invalid by their own schema."""
    found: list[FieldCause] = []
    if "default" in schema and schema["default"] is not None:
        found += _one_default_problems(schema, f"{field}.default")
    for way, inner in parts(schema):
        is_metadata = embedded and way in {f"properties[{name}]" for name in _METADATA}
        if not is_metadata and way.startswith(("properties", "items", "additionalProperties")):
            inside = bool(inner.get(EMBEDDED))
            found += _default_problems(inner, f"{field}.{way}", embedded=inside)
    return found


def _one_default_problems(schema: JsonObject, field: str) -> list[FieldCause]:
    default: JsonValue = schema["default"]
    found: list[FieldCause] = []
    unknown: list[str] = []
    prune(clone(default), schema, unknown, "" if schema.get(EMBEDDED) else field)
    if unknown:
        found.append(bad_value(field, default, "must not have unknown fields"))
    return found + problems_at(field, default, schema)


def _schema_problems(
    schema: JsonObject, field: str, *, root: bool = False, no_default: str = ""
) -> Iterator[FieldCause]:
    yield from _plain_problems(schema, field, no_default)
    for way, inner in parts(schema):
        detail = no_default
        if root and way in {f"properties[{name}]" for name in _METADATA}:
            detail = f"in top-level {way.removeprefix('properties[').removesuffix(']')}"
        yield from _schema_problems(inner, f"{field}.{way}", no_default=detail)
    if schema.get(KEEPS_UNKNOWN) is False:
        yield bad_value(f"{field}.{KEEPS_UNKNOWN}", False, "must be true or undefined")
    yield from _map_type_problems(schema, field)
    yield from _list_type_problems(schema, field)
    if schema.get(_LIST_TYPE) == "map":
        yield from _list_map_problems(schema, field)
    yield from _item_problems(schema, field)
    yield from _rule_problems(schema, field)


def _plain_problems(schema: JsonObject, field: str, no_default: str) -> Iterator[FieldCause]:
    kind, others = schema.get("type"), schema.get("additionalProperties")
    if kind and kind not in _TYPES:
        yield not_supported(f"{field}.type", kind, _TYPES)
    if no_default and schema.get("default") is not None:
        yield forbidden_field(f"{field}.default", f"must not be set {no_default}")
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield forbidden_field(f"{field}.{name}", f"{name} is not supported")
    if kind == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        yield forbidden_field(f"{field}.type", detail)
    if isinstance(schema.get("items"), list):
        yield forbidden_field(f"{field}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden_field(f"{field}.uniqueItems", detail)
    if others is not None and others is not True and schema.get("properties"):
        detail = "additionalProperties and properties are mutual exclusive"
        yield forbidden_field(f"{field}.additionalProperties", detail)


def _of_type(schema: JsonObject, kind: str, name: str, field: str) -> Iterator[FieldCause]:
    given, detail = schema.get("type") or "", f"must be {kind} if {name} is specified"
    if schema.get(name) is None or given == kind:
        return
    yield bad_value(f"{field}.type", given, detail) if given else required(f"{field}.type", detail)


def _map_type_problems(schema: JsonObject, field: str) -> Iterator[FieldCause]:
    yield from _of_type(schema, "object", _MAP_TYPE, field)
    kind = schema.get(_MAP_TYPE)
    if kind is not None and kind not in {"atomic", "granular"}:
        yield not_supported(f"{field}.{_MAP_TYPE}", kind, ("atomic", "granular"))


def _list_type_problems(schema: JsonObject, field: str) -> Iterator[FieldCause]:
    kind, items = schema.get(_LIST_TYPE), schema.get("items")
    yield from _of_type(schema, "array", _LIST_TYPE, field)
    if kind == "set" and schema.get("type") == "array" and isinstance(items, dict):
        yield from _set_item_problems(items, f"{field}.items")
    if kind is not None and kind not in {"atomic", "set", "map"}:
        yield not_supported(f"{field}.{_LIST_TYPE}", kind, ("atomic", "set", "map"))
    if schema.get(_KEYS) and kind != "map":
        detail, place = f"must be map if {_KEYS} is non-empty", f"{field}.{_LIST_TYPE}"
        yield required(place, detail) if kind is None else bad_value(place, kind, detail)


def _set_item_problems(items: JsonObject, field: str) -> Iterator[FieldCause]:
    detail = f"must be atomic as item of a list with {_LIST_TYPE}=set"
    kind = items.get(_LIST_TYPE)
    if items.get("type") == "array" and kind not in {None, "atomic"}:
        yield bad_value(f"{field}.{_LIST_TYPE}", kind, detail)
    if items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
        yield bad_value(f"{field}.{_MAP_TYPE}", kind, detail)


def _list_map_problems(schema: JsonObject, field: str) -> Iterator[FieldCause]:
    keys, items = schema.get(_KEYS) or [], schema.get("items")
    if not keys:
        yield required(f"{field}.{_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
    if items is None:
        yield required(f"{field}.items", f"must have a schema if {_LIST_TYPE} is map")
    if not isinstance(items, dict):
        return
    if items.get("type") != "object":
        detail = f"must be object if parent array's {_LIST_TYPE} is map"
        yield bad_value(f"{field}.items.type", items.get("type") or "", detail)
        return
    properties = items.get("properties") or {}
    for key in keys:
        if key not in properties:
            detail = "entries must all be names of item properties"
            yield bad_value(f"{field}.{_KEYS}", keys, detail)
        elif properties[key].get("type") in {"array", "object"}:
            detail = f"must be a scalar type if parent array's {_LIST_TYPE} is map"
            yield bad_value(f"{field}.items.properties[{key}].type", items.get("type"), detail)
    if len(set(keys)) < len(keys):
        yield bad_value(f"{field}.{_KEYS}", keys, "must not contain duplicate entries")


def _item_problems(schema: JsonObject, field: str) -> Iterator[FieldCause]:
    """Require the items of sets and maps, and their keys, to be non-null."""
    kind, items = schema.get(_LIST_TYPE), schema.get("items")
    if kind not in {"set", "map"} or not isinstance(items, dict):
        return
    if items.get("nullable"):
        detail = f"cannot be nullable when {_LIST_TYPE} is {kind}"
        yield forbidden_field(f"{field}.items.nullable", detail)
    properties = items.get("properties") or {}
    for key in (schema.get(_KEYS) or ()) if kind == "map" else ():
        inner, place = properties.get(key), f"{field}.items.properties[{key}]"
        detail = f"this property is in {_KEYS}, so it"
        if inner is None:
            continue
        if key not in (items.get("required") or ()) and inner.get("default") is None:
            yield required(
                f"{place}.default", f"{detail} must have a default or be a required property"
            )
        if inner.get("nullable"):
            yield forbidden_field(f"{place}.nullable", f"{detail} cannot be nullable")


def _rule_problems(schema: JsonObject, field: str) -> Iterator[FieldCause]:
    for index, rule in enumerate(schema.get(_RULES) or ()):
        place = f"{field}.{_RULES}[{index}]"
        text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
        if not text:
            yield required(f"{place}.rule", "rule is not specified")
        elif message and not message.strip():
            yield bad_value(f"{place}.message", message, "must be non-empty if specified")
        elif "\n" in message.strip():
            yield bad_value(f"{place}.message", message, "must not contain line breaks")
        elif "\n" in text and not message.strip():
            detail = "message must be specified if rule contains line breaks"
            yield required(f"{place}.message", detail)
