"""Type checking of objects.

A value of a wrong type is an error; unknown fields are reported and removed; nulls are removed.
What is left of a whole object is what a server in Go would print: without empty optional fields,
with all required ones. Errors are found here, and worded by `unmarshal`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, clone, encode
from bayplan.embedded.apiserver.schema import times
from bayplan.embedded.apiserver.schema.types import (
    UNIONS,
    ZEROS,
    FieldType,
    ObjectType,
    require_type,
    zeros_of,
)
from bayplan.kube import quantity

Where = tuple["Where", str] | None
"""A path as a chain from the inside out; formatted only in case of an error."""

_MAX_INT = {"int32": 2**31, "int64": 2**63}


_NOTHING: JsonObject = {}


class TypeMismatch(Exception):  # noqa: N818 - an outcome that callers handle
    """A value that does not have the type of its field."""

    def __init__(self, where: Where, wanted: str, value: JsonValue) -> None:
        self.field = spell(where)
        shown = encode(value).decode()[:60]
        super().__init__(f"{self.field}: cannot read {shown} as {wanted}")


class TypeCheck(NamedTuple):
    """Options of a type check, and the unknown fields that it found."""

    unknown: list[str]
    whole: bool = True
    """Whether the value is a whole object, not an applied configuration."""
    known: JsonObject | None = None
    """The object before, which is valid: unchanged parts are skipped."""


def spell(where: Where) -> str:
    """Return a path as text: `spec.containers[0].name`."""
    parts: list[str] = []
    while where is not None:
        where, name = where
        parts.append(name)
    return "".join(reversed(parts)).removeprefix(".")


def check_object(
    value: JsonValue,
    type_: ObjectType,
    report: TypeCheck,
    where: Where = None,
    known: JsonValue = None,
) -> None:
    """Check an object against its type, and remove what does not belong there."""
    if type(value) is not dict:
        raise TypeMismatch(where, type_.name, value)
    fields = type_.fields
    dropped: list[str] = []
    if type(known) is not dict:
        known = _NOTHING
    for name, item in value.items():
        field = fields.get(name)
        if field is None:
            report.unknown.append(spell((where, f".{name}")))
            dropped.append(name)
        elif item is None:
            dropped.append(name)
        else:
            if not field.is_text or type(item) is not str:
                _check_field(value, field, report, where, known.get(name))
            if not item and report.whole and field.omits_empty:
                dropped.append(name)
    for name in dropped:
        del value[name]
    if report.whole:
        complete(value, type_)


def complete(value: JsonObject, type_: ObjectType) -> None:
    """Set the fields that an object of a type always has."""
    for name, zero in zeros_of(type_.name):
        if name not in value or value[name] == []:
            value[name] = clone(zero) if type(zero) is dict else zero


def _is_known(item: JsonValue, before: JsonValue) -> bool:
    """Return whether a part is unchanged; 1, 1.0 and true differ though they are equal."""
    if item is before:
        return True
    if type(item) not in (dict, list) or item != before:
        return False
    return encode(item) == encode(before)


def _check_field(
    parent: JsonObject, field: FieldType, report: TypeCheck, where: Where, known: JsonValue
) -> None:
    item = parent[field.name]
    if known is not None and _is_known(item, known):
        return
    place: Where = (where, f".{field.name}")
    if field.is_list:
        _check_list(item, field, report, place, known)
    elif field.is_map:
        _check_map(item, field, report, place)
    elif field.is_object:
        check_object(item, require_type(field.base), report, place, known)
    else:
        parent[field.name] = _SCALAR_CHECKS[field.base](item, field.base, place)


def _check_list(
    items: JsonValue, field: FieldType, report: TypeCheck, place: Where, known: JsonValue
) -> None:
    if type(items) is not list:
        raise TypeMismatch(place, f"a list of {field.base}", items)
    if field.is_object:
        type_ = require_type(field.base)
        for index, item in enumerate(items):
            items[index] = {} if item is None else item
            before = known[index] if type(known) is list and index < len(known) else None
            check_object(items[index], type_, report, (place, f"[{index}]"), before)
        return
    check = _SCALAR_CHECKS[field.base]
    for index, item in enumerate(items):
        if item is None:
            items[index] = ZEROS.get(field.base)
        elif type(item) is not str or field.base != "string":
            items[index] = check(item, field.base, (place, f"[{index}]"))


def _check_map(items: JsonValue, field: FieldType, report: TypeCheck, place: Where) -> None:
    if type(items) is not dict:
        raise TypeMismatch(place, f"a map of {field.base}", items)
    if field.is_object:
        type_ = require_type(field.base)
        for key, item in items.items():
            items[key] = {} if item is None else item
            check_object(items[key], type_, report, (place, f".{key}"))
        return
    check = _SCALAR_CHECKS[field.base]
    for key, item in items.items():
        if item is None:
            items[key] = ZEROS.get(field.base)
        elif type(item) is not str or field.base != "string":
            items[key] = check(item, field.base, (place, f".{key}"))


def _string(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    if value is None:
        return ""
    if type(value) is not str:
        raise TypeMismatch(place, wanted, value)
    return value


def _boolean(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    if type(value) is not bool:
        raise TypeMismatch(place, wanted, value)
    return value


def _integer(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    if value is None:
        return 0
    most = _MAX_INT[wanted]
    if type(value) is not int or not -most <= value < most:
        raise TypeMismatch(place, wanted, value)
    return value


def _number(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    if type(value) not in (int, float):
        raise TypeMismatch(place, wanted, value)
    return value


def _time(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    """Return a time in UTC, with the precision of its type."""
    if type(value) is not str:
        raise TypeMismatch(place, wanted, value)
    try:
        return times.canonical_time(value, fine=wanted == "MicroTime")
    except ValueError as problem:
        raise TypeMismatch(place, wanted, value) from problem


def _quantity(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    """Return a quantity in canonical form."""
    if value is None:
        return "0"
    if type(value) not in (int, float, str):
        raise TypeMismatch(place, wanted, value)
    try:
        return _printed(value)
    except quantity.QuantityError as problem:
        raise TypeMismatch(place, f"{wanted} ({problem})", value) from problem


@lru_cache(8192)
def _printed(value: str | float) -> str:
    """Return a quantity in canonical form, cached: clusters repeat the same few."""
    return quantity.format(value)


def _int_or_string(value: JsonValue, wanted: str, place: Where) -> JsonValue:  # noqa: ARG001
    if type(value) is str:
        return value
    return _integer(value, "int32", place)


def _anything(value: JsonValue, wanted: str, place: Where) -> JsonValue:  # noqa: ARG001
    return value


def _object(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    if type(value) is not dict:
        raise TypeMismatch(place, wanted, value)
    return value


def _base64(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    if value is None:
        return ""
    if type(value) is not str or not re.fullmatch(r"[A-Za-z0-9+/\s]*={0,2}", value):
        raise TypeMismatch(place, f"{wanted} in base64", value)
    return value


def _union(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    simple = bool if wanted.endswith("OrBool") else list
    if type(value) not in (dict, simple):
        raise TypeMismatch(place, wanted, value)
    return value


_SCALAR_CHECKS: dict[str, Callable[[JsonValue, str, Where], JsonValue]] = {
    "string": _string,
    "bool": _boolean,
    "int32": _integer,
    "int64": _integer,
    "double": _number,
    "bytes": _base64,
    "Quantity": _quantity,
    "Time": _time,
    "MicroTime": _time,
    "IntOrString": _int_or_string,
    "Raw": _anything,
    "FieldsV1": _object,
    "any": _anything,
    **dict.fromkeys(UNIONS, _union),
}
