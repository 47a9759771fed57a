"""Checks that a schema is a structural JSON schema, by which objects can be pruned.

Every field has its type outside of `allOf`, `anyOf`, `oneOf` and `not`; those may only restrict
values, not types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bayplan.base.patterns import PatternError, compile_pattern
from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.validation.causes import bad_value, forbidden_field, required

_OURS = "x-kubernetes-"
_MAPS = ("properties", "patternProperties", "definitions")
_LISTS = ("allOf", "anyOf", "oneOf")
_EITHER_FORM = ("additionalProperties", "additionalItems")

Check = Callable[[JsonValue], bool]


def mistyped_keyword(schema: JsonValue) -> str:
    """Return the keyword of a schema that has a wrong type; empty if there is none."""
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, dict):
            return "JSONSchemaProps"
        for name, value in one.items():
            check = _CHECKS.get(name)
            if value is not None and check is not None and not check(value):
                return f"JSONSchemaProps.{name}"
        waiting += _inner(one)
    return ""


def _inner(schema: JsonObject) -> Iterator[JsonValue]:
    for name in _MAPS:
        yield from (schema.get(name) or {}).values()
    for name in _LISTS:
        yield from schema.get(name) or ()
    for name in (*_EITHER_FORM, "not", "items"):
        value = schema.get(name)
        if isinstance(value, list):
            yield from value
        elif value is not None and not isinstance(value, bool):
            yield value


def _is(*types: type) -> Check:
    return lambda value: isinstance(value, types)


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list_of(kind: type) -> Check:
    return lambda value: isinstance(value, list) and all(isinstance(one, kind) for one in value)


_CHECKS: dict[str, Check] = {
    **dict.fromkeys(("type", "pattern", "format", "description", "title", "id"), _is(str)),
    **dict.fromkeys(("$ref", "$schema", f"{_OURS}list-type", f"{_OURS}map-type"), _is(str)),
    **dict.fromkeys(("nullable", "uniqueItems"), _is(bool)),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), _is(bool)),
    **dict.fromkeys((f"{_OURS}int-or-string", f"{_OURS}embedded-resource"), _is(bool)),
    f"{_OURS}preserve-unknown-fields": _is(bool),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), _is_number),
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength"), _is_number),
    **dict.fromkeys(("minProperties", "maxProperties"), _is_number),
    **dict.fromkeys((*_MAPS, "dependencies", "not"), _is(dict)),
    **dict.fromkeys((*_LISTS, "enum"), _is(list)),
    **dict.fromkeys(_EITHER_FORM, _is(dict, bool)),
    "items": _is(dict, list),
    **dict.fromkeys(("required", f"{_OURS}list-map-keys"), _is_list_of(str)),
    f"{_OURS}validations": _is_list_of(dict),
}


MAX_DEPTH = 60
KEEPS_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"

_EITHER = [{"type": "integer"}, {"type": "string"}]
_LEVELS = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_NESTED = {
    "type": "empty",
    "additionalProperties": "undefined",
    "default": "undefined",
    "title": "empty",
    "description": "empty",
    "nullable": "false",
    KEEPS_UNKNOWN: "false",
    EMBEDDED: "false",
    INT_OR_STRING: "false",
    "x-kubernetes-list-map-keys": "empty",
    "x-kubernetes-list-type": "undefined",
    "x-kubernetes-map-type": "undefined",
    "x-kubernetes-validations": "empty",
}
"""Keywords that are forbidden inside `allOf` etc., and what is expected instead."""

_GO_MESSAGES = {
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
}


def structural_problems(schema: JsonObject, field: str) -> list[FieldCause]:
    """Return why a schema is not structural."""
    found = [*_invariants(schema, "root", field), *_completeness(schema, schema, field, field)]
    return sorted(found, key=lambda cause: f"{cause.field}: {cause.message}")


def is_too_deep(schema: JsonObject, depth: int = 0) -> bool:
    """Return whether a schema is nested too deeply."""
    return depth > MAX_DEPTH or any(is_too_deep(inner, depth + 1) for _, inner in parts(schema))


def parts(schema: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield the schemas inside a schema, with their paths."""
    for name in ("properties", "definitions", "dependencies"):
        for key, inner in (schema.get(name) or {}).items():
            if isinstance(inner, dict):
                yield f"{name}[{key}]", inner
    for name in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(name), dict):
            yield name, schema[name]
    for name in ("allOf", "oneOf", "anyOf"):
        yield from ((f"{name}[{at}]", one) for at, one in enumerate(schema.get(name) or ()))


def _invariants(schema: JsonObject, level: str, field: str) -> Iterator[FieldCause]:
    items, others = schema.get("items"), schema.get("additionalProperties")
    if schema.get("type") == "array" and items is None:
        yield required(f"{field}.items", "must be specified")
    if isinstance(items, dict):
        yield from _invariants(items, "item", f"{field}.items")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _invariants(inner, "field", f"{field}.properties[{name}]")
    if others is not None and level == "root":
        yield forbidden_field(f"{field}.additionalProperties", "must not be used at the root")
    if isinstance(others, dict):
        yield from _invariants(others, "field", f"{field}.additionalProperties")
    yield from _extension_problems(schema, field)
    yield from _combination_problems(schema, field)
    yield from _type_problems(schema, level, field)
    yield from _metadata_problems(schema, level, field)


def _extension_problems(schema: JsonObject, field: str) -> Iterator[FieldCause]:
    for name in (KEEPS_UNKNOWN, EMBEDDED):
        if schema.get(INT_OR_STRING) and schema.get(name):
            detail = f"must be false if {INT_OR_STRING} is true"
            yield bad_value(f"{field}.{name}", True, detail)


def _type_problems(schema: JsonObject, level: str, field: str) -> Iterator[FieldCause]:
    kind, embedded = schema.get("type") or "", schema.get(EMBEDDED)
    if embedded and kind != "object":
        detail = f"must be object if {EMBEDDED} is true"
        yield (
            bad_value(f"{field}.type", kind, detail) if kind else required(f"{field}.type", detail)
        )
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(KEEPS_UNKNOWN):
        yield required(f"{field}.type", _LEVELS[level])
    if embedded and schema.get("additionalProperties") is not None:
        detail = f"must not be used if {EMBEDDED} is set"
        yield forbidden_field(f"{field}.additionalProperties", detail)
    if level == "root" and kind not in {"", "object"}:
        yield bad_value(f"{field}.type", kind, "must be object at the root")
    if embedded and not schema.get(KEEPS_UNKNOWN) and not schema.get("properties"):
        detail = f"must not be empty if {EMBEDDED} is true without {KEEPS_UNKNOWN}"
        yield required(f"{field}.properties", detail)


def _metadata_problems(schema: JsonObject, level: str, field: str) -> Iterator[FieldCause]:
    """Allow only restrictions of names, and only at the root."""
    properties = schema.get("properties") or {}
    if level != "root" and not schema.get(EMBEDDED):
        return
    for name, kind in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        given = (properties.get(name) or {}).get("type") or ""
        if name in properties and given != kind:
            yield bad_value(f"{field}.properties[{name}].type", given, f"must be {kind}")
    if level == "root" and _restricts_more_than_names(properties.get("metadata") or {}):
        detail = (
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified"
        )
        yield forbidden_field(f"{field}.properties[metadata]", detail)


def _restricts_more_than_names(metadata: JsonObject) -> bool:
    keywords = {
        name for name, value in metadata.items() if value and name not in {"type", "default"}
    }
    named = set(metadata.get("properties") or {})
    return bool(keywords - {"properties"}) or bool(named - {"name", "generateName"})


def _combination_problems(
    schema: JsonObject, field: str, *, first: bool = False
) -> Iterator[FieldCause]:
    """Return the problems of `allOf` etc.; with `first`, of all but `anyOf`'s."""
    all_of = schema.get("allOf") or ()
    if not first and schema.get("anyOf") != _EITHER:
        for index, inner in enumerate(schema.get("anyOf") or ()):
            yield from _nested_problems(inner, f"{field}.anyOf[{index}]")
    for index, inner in enumerate(all_of):
        excused = index == 0 and inner.get("anyOf") == _EITHER
        yield from _nested_problems(inner, f"{field}.allOf[{index}]", first=excused)
    for index, inner in enumerate(schema.get("oneOf") or ()):
        yield from _nested_problems(inner, f"{field}.oneOf[{index}]")
    if schema.get("not"):
        yield from _nested_problems(schema["not"], f"{field}.not")
    yield from _pattern_problems(schema, field)


def _pattern_problems(schema: JsonObject, field: str) -> Iterator[FieldCause]:
    pattern = schema.get("pattern")
    if not pattern:
        return
    try:
        compile_pattern(pattern)
    except PatternError as error:
        message = f"error parsing regexp: {_in_go(str(error))}"
        detail = f"must be a valid regular expression, but isn't: {message}"
        yield bad_value(f"{field}.pattern", pattern, detail)


def _in_go(message: str) -> str:
    """Return the problem of a pattern, as Go words it."""
    what, colon, part = message.partition(": ")
    return f"{_GO_MESSAGES.get(what, what)}{f': `{part}`' if colon else ''}"


def _nested_problems(
    schema: JsonObject, field: str, *, first: bool = False
) -> Iterator[FieldCause]:
    yield from _combination_problems(schema, field, first=first)
    if isinstance(schema.get("items"), dict):
        yield from _nested_problems(schema["items"], f"{field}.items")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _nested_problems(inner, f"{field}.properties[{name}]")
    for name, wanted in _NESTED.items():
        if schema.get(name) or (wanted == "undefined" and schema.get(name) is not None):
            yield forbidden_field(f"{field}.{name}", f"must be {wanted} to be structural")
    if "metadata" in (schema.get("properties") or {}):
        detail = "must not be specified in a nested context"
        yield forbidden_field(f"{field}.properties[metadata]", detail)


def _completeness(
    inner: JsonObject, schema: JsonObject, field: str, inner_field: str
) -> Iterator[FieldCause]:
    """Require that fields of `allOf` etc. are specified outside of them, too."""
    if inner.get("not"):
        yield from _nested_completeness(inner["not"], schema, field, f"{inner_field}.not")
    for name in ("allOf", "anyOf", "oneOf"):
        for index, one in enumerate(inner.get(name) or ()):
            yield from _nested_completeness(one, schema, field, f"{inner_field}.{name}[{index}]")


def _nested_completeness(
    inner: JsonObject, schema: JsonObject, field: str, inner_field: str
) -> Iterator[FieldCause]:
    yield from _completeness(inner, schema, field, inner_field)
    if isinstance(inner.get("items"), dict):
        step = "items"
        yield from _counterpart(inner["items"], schema.get("items"), field, inner_field, step)
    properties = schema.get("properties") or {}
    for name, one in (inner.get("properties") or {}).items():
        step = f"properties[{name}]"
        yield from _counterpart(one, properties.get(name), field, inner_field, step)


def _counterpart(
    inner: JsonObject, schema: object, field: str, inner_field: str, step: str
) -> Iterator[FieldCause]:
    place, message = f"{field}.{step}", f"{inner_field}.{step}"
    if isinstance(schema, dict):
        yield from _nested_completeness(inner, schema, place, message)
    else:
        yield required(place, f"because it is defined in {message}")
