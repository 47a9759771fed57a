"""Does an object have its kind's shape?

Values of a wrong type are an error, as they cannot be decoded; fields that the type does not have
are reported and taken out; nulls are taken out, since they say nothing. What is left of a whole
object is what a server written in Go would print: nothing that is empty and may be left out, and
whatever is always printed. What is wrong is found here and told by `unmarshal`.
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
"""A place in an object, as a chain from the inside out; spelled only when something is wrong."""

_MOST_INT = {"int32": 2**31, "int64": 2**63}


_NOTHING: JsonObject = {}


class Mismatch(Exception):  # noqa: N818 - an outcome that callers handle
    """A value that cannot be what its field needs."""

    def __init__(self, where: Where, wanted: str, value: JsonValue) -> None:
        self.field = spell(where)
        shown = encode(value).decode()[:60]
        super().__init__(f"{self.field}: cannot read {shown} as {wanted}")


class Report(NamedTuple):
    """What was found that does not stop the request."""

    unknown: list[str]
    whole: bool = True
    """Whether what is checked is an object, and not only what somebody wants of one."""
    known: JsonObject | None = None
    """What the object was before, which is in order: parts that are the same are not looked at."""


def spell(where: Where) -> str:
    """A place as a path: `spec.containers[0].name`."""
    parts: list[str] = []
    while where is not None:
        where, name = where
        parts.append(name)
    return "".join(reversed(parts)).removeprefix(".")


def check_object(
    value: JsonValue,
    type_: ObjectType,
    report: Report,
    where: Where = None,
    known: JsonValue = None,
) -> None:
    """Check an object against its type, and take out of it what does not belong there."""
    if type(value) is not dict:
        raise Mismatch(where, type_.name, value)
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
    """Say what an object of a type always says."""
    for name, zero in zeros_of(type_.name):
        if name not in value or value[name] == []:
            value[name] = clone(zero) if type(zero) is dict else zero


def _is_known(item: JsonValue, before: JsonValue) -> bool:
    """Whether a part is what it was, to the letter: 1, 1.0 and true, which are equal, differ."""
    if item is before:
        return True
    if type(item) not in (dict, list) or item != before:
        return False
    return encode(item) == encode(before)


def _check_field(
    parent: JsonObject, field: FieldType, report: Report, where: Where, known: JsonValue
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
    items: JsonValue, field: FieldType, report: Report, place: Where, known: JsonValue
) -> None:
    if type(items) is not list:
        raise Mismatch(place, f"a list of {field.base}", items)
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


def _check_map(items: JsonValue, field: FieldType, report: Report, place: Where) -> None:
    if type(items) is not dict:
        raise Mismatch(place, f"a map of {field.base}", items)
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
        raise Mismatch(place, wanted, value)
    return value


def _boolean(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    if type(value) is not bool:
        raise Mismatch(place, wanted, value)
    return value


def _integer(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    if value is None:
        return 0
    most = _MOST_INT[wanted]
    if type(value) is not int or not -most <= value < most:
        raise Mismatch(place, wanted, value)
    return value


def _number(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    if type(value) not in (int, float):
        raise Mismatch(place, wanted, value)
    return value


def _time(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    """A moment, in UTC and as finely as its type has it."""
    if type(value) is not str:
        raise Mismatch(place, wanted, value)
    try:
        return times.written(value, fine=wanted == "MicroTime")
    except ValueError as problem:
        raise Mismatch(place, wanted, value) from problem


def _quantity(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    """A quantity, as Kubernetes prints it back."""
    if value is None:
        return "0"
    if type(value) not in (int, float, str):
        raise Mismatch(place, wanted, value)
    try:
        return _printed(value)
    except quantity.QuantityError as problem:
        raise Mismatch(place, f"{wanted} ({problem})", value) from problem


@lru_cache(8192)
def _printed(value: str | float) -> str:
    """Clusters repeat the same few quantities over and over."""
    return quantity.format(value)


def _int_or_string(value: JsonValue, wanted: str, place: Where) -> JsonValue:  # noqa: ARG001
    if type(value) is str:
        return value
    return _integer(value, "int32", place)


def _anything(value: JsonValue, wanted: str, place: Where) -> JsonValue:  # noqa: ARG001
    return value


def _object(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    if type(value) is not dict:
        raise Mismatch(place, wanted, value)
    return value


def _base64(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    if value is None:
        return ""
    if type(value) is not str or not re.fullmatch(r"[A-Za-z0-9+/\s]*={0,2}", value):
        raise Mismatch(place, f"{wanted} in base64", value)
    return value


def _union(value: JsonValue, wanted: str, place: Where) -> JsonValue:
    simple = bool if wanted.endswith("OrBool") else list
    if type(value) not in (dict, simple):
        raise Mismatch(place, wanted, value)
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
