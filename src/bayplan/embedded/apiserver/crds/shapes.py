"""Is it a JSON schema at all? What a definition says of its versions, before anybody reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue

_OURS = "x-kubernetes-"
_MAPS = ("properties", "patternProperties", "definitions")
_LISTS = ("allOf", "anyOf", "oneOf")
_EITHER = ("additionalProperties", "additionalItems")

Check = Callable[[JsonValue], bool]


def misshapen(schema: JsonValue) -> str:
    """The field of a schema that is of another type than it must be; empty if there is none."""
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
    for name in (*_EITHER, "not", "items"):
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
    **dict.fromkeys(_EITHER, _is(dict, bool)),
    "items": _is(dict, list),
    **dict.fromkeys(("required", f"{_OURS}list-map-keys"), _is_list_of(str)),
    f"{_OURS}validations": _is_list_of(dict),
}
