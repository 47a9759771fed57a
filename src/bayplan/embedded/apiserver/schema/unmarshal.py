"""Decode errors of a body, in the words of Go's JSON decoder.

The decoder continues after a value of a wrong type and reports the first one, but a type with its
own `UnmarshalJSON` (a quantity, a time) stops it at once. Unknown and duplicate fields are reported
in their order. Only called for bodies that are invalid.

Strategic merge patches are converted by another decoder (`FromUnstructured`) with its own messages.
It reads fields in the order of the type, and stops at the first error.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonValue, encode
from bayplan.embedded.apiserver.schema import times
from bayplan.embedded.apiserver.schema.types import UNIONS, FieldType, ObjectType, require_type
from bayplan.kube import quantity

_GO_NAMES = {
    "double": "float64",
    "bytes": "[]uint8",
    "Quantity": "resource.Quantity",
    "Time": "v1.Time",
    "MicroTime": "v1.MicroTime",
    "IntOrString": "intstr.IntOrString",
    "Raw": "runtime.RawExtension",
}
TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)
"""The type that is read first of every body."""
_JSON_NAMES = ((str, "string"), (bool, "bool"), (list, "array"), (dict, "object"))
_QUANTITY = re.compile(r"[+-]?[0-9]*(\.[0-9]*)?[eEinumkKMGTP]*[-+]?[0-9]*\Z")
_MAX_QUANTITY_LENGTH = 1000
_BITS = {"int32": 31, "int64": 63}


class ExactNumber(float):
    """A number that keeps its text."""

    def __new__(cls, text: str) -> ExactNumber:
        """A number out of its text."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str


class ObjectPairs(dict[str, Any]):
    """An object that keeps duplicate fields."""

    def __init__(self, pairs: list[tuple[str, JsonValue]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def read_exactly(body: bytes) -> JsonValue:
    """Parse a body with exact numbers and duplicate fields."""
    text = body.decode("utf-8", "replace")
    return json.loads(text, object_pairs_hook=ObjectPairs, parse_float=ExactNumber)


class _Place(NamedTuple):
    """The decoder's position: the innermost struct, and the names on the way there."""

    struct: str = ""
    path: tuple[str, ...] = ()

    def inside(self, type_: ObjectType, name: str) -> _Place:
        struct = type_.name.rpartition(".")[2]
        return _Place(struct, (*self.path, *type_.embedded.get(name, ()), name))

    def mismatch(self, value: str, wanted: str) -> str:
        if not self.struct:
            return f"json: cannot unmarshal {value} into Go value of type {wanted}"
        field = ".".join(self.path)
        return (
            f"json: cannot unmarshal {value} into Go struct field {self.struct}.{field} "
            f"of type {wanted}"
        )


class _StopError(Exception):
    """An error that stops the decoder."""


class _Decoder:
    """Walks a body in its order, and keeps the first error."""

    def __init__(self) -> None:
        self.saved = ""

    def save(self, problem: str) -> None:
        self.saved = self.saved or problem

    def object(self, value: JsonValue, type_: ObjectType, place: _Place) -> None:
        if not isinstance(value, dict):
            self.save(place.mismatch(described(value), _struct_name(type_.name)))
            return
        for name, item in value.items():
            field = type_.fields.get(name)
            if field is not None and item is not None:
                self.field(item, field, place.inside(type_, name))

    def field(self, item: JsonValue, field: FieldType, place: _Place) -> None:
        if field.is_list or field.is_map:
            wanted = list if field.is_list else dict
            if not isinstance(item, wanted):
                self.save(place.mismatch(described(item), _go_name(field)))
                return
            for inner in item.values() if isinstance(item, dict) else item:
                if inner is not None:
                    self.element(inner, field, place)
        else:
            self.element(item, field, place)

    def element(self, item: JsonValue, field: FieldType, place: _Place) -> None:
        if field.is_object:
            self.object(item, require_type(field.base), place)
        else:
            self.scalar(item, field, place)

    def scalar(self, item: JsonValue, field: FieldType, place: _Place) -> None:
        base = field.base
        if base in ("Time", "MicroTime"):
            _read_time(item, place, fine=base == "MicroTime")
        elif base == "Quantity":
            _read_quantity(item)
        elif base == "IntOrString":
            if not isinstance(item, str) and not _is_integer(item, "int32"):
                raise _StopError(place.mismatch(described(item, exactly=True), "int32"))
        elif base in ("int32", "int64"):
            if not _is_integer(item, base):
                self.save(place.mismatch(described(item, exactly=True), element_name(field)))
        elif base == "bytes" and isinstance(item, str):
            self.save(f"illegal base64 data at input byte {_bad_base64(item)}")
        elif base in ("string", "bytes", "bool", "double") and not _is_a(item, base):
            self.save(place.mismatch(described(item), element_name(field)))
        elif base in UNIONS and not isinstance(item, dict | list | bool):
            self.save(place.mismatch(described(item), "v1.JSONSchemaProps"))


def problem(value: JsonValue, type_: ObjectType) -> str:
    """Return the decode error of a body as an object of a type."""
    decoder = _Decoder()
    try:
        decoder.object(value, type_, _Place())
    except _StopError as stopped:
        return str(stopped)
    except RecursionError:
        return "exceeded max depth"
    return decoder.saved


def problem_of_scalar(item: JsonValue, field: FieldType) -> str:
    """Return the error of a type with its own `UnmarshalJSON`."""
    try:
        _Decoder().scalar(item, field, _Place())
    except _StopError as stopped:
        return str(stopped)
    return ""


def described(value: JsonValue, *, exactly: bool = False) -> str:
    """Return what a value is: `string`, `number 5`, …"""
    for kind, name in _JSON_NAMES:
        if isinstance(value, kind):
            return name
    if not exactly:
        return "number"
    return f"number {value.text if isinstance(value, ExactNumber) else encode(value).decode()}"


def _is_integer(item: JsonValue, base: str) -> bool:
    most = 2 ** _BITS[base]
    return type(item) is int and -most <= item < most


def _is_a(item: JsonValue, base: str) -> bool:
    if base == "bool":
        return isinstance(item, bool)
    return isinstance(item, int | float if base == "double" else str)


def _read_time(item: JsonValue, place: _Place, *, fine: bool) -> None:
    if not isinstance(item, str):
        raise _StopError(place.mismatch(described(item), "string"))
    try:
        times.canonical_time(item, fine=fine)
    except ValueError:
        raise _StopError(times.problem(item, fine=fine)) from None


def _read_quantity(item: JsonValue) -> None:
    text = item.text if isinstance(item, ExactNumber) else item
    try:
        quantity.format(text if isinstance(text, str | int) else encode(text).decode())
    except quantity.QuantityError:
        form = "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        if (
            isinstance(text, str)
            and 0 < len(text) <= _MAX_QUANTITY_LENGTH
            and _QUANTITY.match(text)
        ):
            raise _StopError("unable to parse quantity's suffix") from None
        raise _StopError(f"quantities must match the regular expression {form}") from None


def _bad_base64(text: str) -> int:
    found = re.match(r"(?:[A-Za-z0-9+/\r\n]{4})*[A-Za-z0-9+/\r\n]*", text)
    return found.end() if found else 0


def _struct_name(name: str) -> str:
    return "v1." + name.rpartition(".")[2]


def _base_name(field: FieldType) -> str:
    return _struct_name(field.base) if field.is_object else _GO_NAMES.get(field.base, field.base)


def _go_name(field: FieldType) -> str:
    """Return the Go name of a field's type."""
    if field.go:
        return field.go
    if field.is_list:
        return f"[]{_base_name(field)}"
    return f"map[string]{_base_name(field)}" if field.is_map else _base_name(field)


def element_name(field: FieldType) -> str:
    """Return the Go name of the type of a scalar, or of the elements of a list or map."""
    if field.is_map or not field.go:
        return _base_name(field)
    return field.go.removeprefix("[]") if field.is_list else field.go


MAX_STRICT = 100
"""Limit of unknown and duplicate fields in an error."""


def strict_problems(value: JsonValue, type_: ObjectType | None) -> list[str]:
    """Return unknown and duplicate fields of a body, in order."""
    found: dict[str, None] = {}
    _look_through(value, type_, "", found)
    return list(found)[:MAX_STRICT]


def _look_through(
    value: JsonValue, type_: ObjectType | None, path: str, found: dict[str, None]
) -> None:
    """Collect unknown and duplicate fields; without a type, every field is known."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            _look_through(item, type_, f"{path}[{index}]", found)
    elif isinstance(value, dict):
        seen: set[str] = set()
        for name, item in value.pairs if isinstance(value, ObjectPairs) else value.items():
            place = f"{path}.{name}" if path else name
            if type_ is not None and name not in type_.fields:
                found[f'unknown field "{place}"'] = None
                continue
            if name in seen:
                found[f'duplicate field "{place}"'] = None
            seen.add(name)
            _look_into(item, type_.fields[name] if type_ is not None else None, place, found)


def _look_into(
    item: JsonValue, field: FieldType | None, place: str, found: dict[str, None]
) -> None:
    if field is None:
        _look_through(item, None, place, found)
    elif field.is_object and field.is_map and isinstance(item, dict):
        for key, inner in item.items():
            _look_through(inner, require_type(field.base), f"{place}.{key}", found)
    elif field.is_object:
        _look_through(item, require_type(field.base), place, found)
    elif field.is_map:
        _look_through(item, None, place, found)


_KINDS = ((bool, "bool"), (str, "string"), (int, "int64"), (float, "float64"))
_READ_THEMSELVES = ("Time", "MicroTime", "Quantity", "IntOrString")


def restored_problem(value: JsonValue, type_: ObjectType) -> str:
    """Return the conversion error of a patched object; empty if there is none."""
    if not isinstance(value, dict):
        return f"cannot restore struct from: {_kind(value)}"
    for name, field in type_.fields.items():
        item = value.get(name)
        found = _field_problem(item, field) if item is not None else ""
        if found:
            return found
    return ""


def _field_problem(item: JsonValue, field: FieldType) -> str:
    if field.is_list and not isinstance(item, list):
        return f"cannot restore slice from {_kind(item)}"
    if field.is_map and not isinstance(item, dict):
        return f"cannot restore map from {_kind(item)}"
    several = item if field.is_list else item.values() if field.is_map else (item,)
    found = (_element_problem(one, field) for one in several if one is not None)
    return next((one for one in found if one), "")


def _element_problem(item: JsonValue, field: FieldType) -> str:
    if field.is_object:
        return restored_problem(item, require_type(field.base))
    if field.base in _READ_THEMSELVES:
        return problem_of_scalar(item, field)
    check = _CHECKS.get(field.base)
    return check(item, field) if check is not None else ""


def _string_problem(item: JsonValue, field: FieldType) -> str:
    if isinstance(item, str):
        return ""
    if isinstance(item, dict | list | bool):
        return "unrecognized type: string"
    return f"cannot convert {_kind(item)} to {element_name(field)}"


def _bool_problem(item: JsonValue, field: FieldType) -> str:  # noqa: ARG001
    return "" if isinstance(item, bool) else "unrecognized type: bool"


def _integer_problem(item: JsonValue, field: FieldType) -> str:
    if isinstance(item, float) and item != int(item):
        return f"cannot convert float64 to {element_name(field)}"
    is_number = isinstance(item, int | float) and not isinstance(item, bool)
    return "" if is_number else f"unrecognized type: {field.base}"


def _bytes_problem(item: JsonValue, field: FieldType) -> str:  # noqa: ARG001
    return "" if isinstance(item, str) else f"cannot restore slice from {_kind(item)}"


_CHECKS = {
    "string": _string_problem,
    "bool": _bool_problem,
    "int32": _integer_problem,
    "int64": _integer_problem,
    "bytes": _bytes_problem,
}


def _kind(value: JsonValue) -> str:
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return "slice" if isinstance(value, list) else "map"
