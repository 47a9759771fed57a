"""What is wrong with an object after a strategic merge patch, which is not read from JSON again.

It is made of the patched parts directly, by a converter that has words of its own. It looks at
fields in the order in which their type has them, and stops at the first that it cannot convert.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonValue
from bayplan.embedded.apiserver.schema.types import FieldType, ObjectType, require_type
from bayplan.embedded.apiserver.schema.unmarshal import element_name, problem_of_scalar

_KINDS = ((bool, "bool"), (str, "string"), (int, "int64"), (float, "float64"))
_READ_THEMSELVES = ("Time", "MicroTime", "Quantity", "IntOrString")


def problem(value: JsonValue, type_: ObjectType) -> str:
    """What the converter says of what cannot be an object of a type; empty if it can."""
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
        return problem(item, require_type(field.base))
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
