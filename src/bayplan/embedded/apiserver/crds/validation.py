"""Does a custom resource meet its schema? The part of JSON Schema that CRDs may use.

CEL rules (`x-kubernetes-validations`) are not evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    not_supported,
    required,
)

_INT_OR_STRING = "x-kubernetes-int-or-string"
_LONGEST_MATCHED = 100_000
_NUMBER = (int, float)

Check = Callable[[JsonValue, JsonObject, str], list[Cause]]


def problems(value: JsonValue, schema: JsonObject, path: str = "") -> list[Cause]:
    """What is wrong with a value."""
    if value is None:
        return [] if schema.get("nullable") else [_wrong_type(path, value, schema)]
    if not _type_fits(value, schema):
        return [_wrong_type(path, value, schema)]
    found = _enum(value, schema, path) + _combinations(value, schema, path)
    for kind, check in _CHECKS:
        if isinstance(value, kind) and not isinstance(value, bool):
            found += check(value, schema, path)
    return found


def _type_fits(value: JsonValue, schema: JsonObject) -> bool:
    if schema.get(_INT_OR_STRING):
        return isinstance(value, int | str) and not isinstance(value, bool)
    kind = schema.get("type")
    if kind is None:
        return True
    if isinstance(value, bool):
        return bool(kind == "boolean")
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _PYTHON.get(str(kind), object))


_PYTHON: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "number": _NUMBER,
    "boolean": bool,
}


def _wrong_type(path: str, value: JsonValue, schema: JsonObject) -> Cause:
    kind = "integer or string" if schema.get(_INT_OR_STRING) else schema.get("type", "value")
    name = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    given = name.get(type(value), "number")
    return bad_value(path, given, f'{path} in body must be of type {kind}: "{given}"')


def _enum(value: JsonValue, schema: JsonObject, path: str) -> list[Cause]:
    choices = schema.get("enum")
    if not choices or value in choices:
        return []
    return [not_supported(path, value, [str(choice) for choice in choices])]


def _combinations(value: JsonValue, schema: JsonObject, path: str) -> list[Cause]:
    found: list[Cause] = []
    for inner in schema.get("allOf") or ():
        found += problems(value, inner, path)
    for name in ("anyOf", "oneOf"):
        options = schema.get(name)
        if not options:
            continue
        fitting = sum(1 for inner in options if not problems(value, inner, path))
        if fitting == 0 or (name == "oneOf" and fitting > 1):
            number = "one and only one" if name == "oneOf" else "at least one"
            why = f'"{path}" must validate {number} schema ({name})'
            found.append(bad_value(path, "", why))
    if schema.get("not") and not problems(value, schema["not"], path):
        found.append(bad_value(path, "", f'"{path}" must not validate the schema (not)'))
    return found


def _object(value: JsonObject, schema: JsonObject, path: str) -> list[Cause]:
    found = [
        required(_join(path, name)) for name in schema.get("required") or () if name not in value
    ]
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, item in value.items():
        inner = properties.get(name, others)
        if isinstance(inner, dict):
            found += problems(item, inner, _join(path, name))
    return found + _size(len(value), schema, path, "Properties")


def _array(value: list[JsonValue], schema: JsonObject, path: str) -> list[Cause]:
    found = _size(len(value), schema, path, "Items")
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            found += problems(item, items, f"{path}[{index}]")
    return found + _uniqueness(value, schema, path)


def _uniqueness(value: list[JsonValue], schema: JsonObject, path: str) -> list[Cause]:
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    kind = schema.get("x-kubernetes-list-type")
    if kind not in ("map", "set") and not schema.get("uniqueItems"):
        return []
    seen: list[JsonValue] = []
    found = []
    for index, item in enumerate(value):
        mark = (
            {key: item.get(key) for key in keys}
            if kind == "map" and isinstance(item, dict)
            else item
        )
        if mark in seen:
            found.append(duplicate(f"{path}[{index}]", mark))
        seen.append(mark)
    return found


def _string(value: str, schema: JsonObject, path: str) -> list[Cause]:
    found = _size(len(value), schema, path, "Length")
    pattern = schema.get("pattern")
    if pattern and (len(value) > _LONGEST_MATCHED or not _compiled(pattern).search(value)):
        found.append(bad_value(path, value, f"{path} in body should match '{pattern}'"))
    return found


@lru_cache(512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _number(value: float, schema: JsonObject, path: str) -> list[Cause]:
    found = []
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and (value < low or (schema.get("exclusiveMinimum") and value == low)):
        why = f"{path} in body should be greater than or equal to {low}"
        found.append(bad_value(path, value, why))
    if high is not None and (value > high or (schema.get("exclusiveMaximum") and value == high)):
        why = f"{path} in body should be less than or equal to {high}"
        found.append(bad_value(path, value, why))
    step = schema.get("multipleOf")
    if step and value % step:
        found.append(bad_value(path, value, f"{path} in body should be a multiple of {step}"))
    return found


def _size(size: int, schema: JsonObject, path: str, what: str) -> list[Cause]:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    found = []
    if least is not None and size < least:
        why = f"{path} in body should have at least {least} {what.lower()}"
        found.append(bad_value(path, size, why))
    if most is not None and size > most:
        found.append(
            Cause("FieldValueTooMany", f"Too many: {size}: must have at most {most}", path)
        )
    return found


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


_CHECKS: tuple[tuple[type | tuple[type, ...], Check], ...] = (
    (dict, _object),
    (list, _array),
    (str, _string),
    (_NUMBER, _number),
)
