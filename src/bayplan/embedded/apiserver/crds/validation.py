"""Validation of custom resources: the part of JSON Schema that CRDs may use.

CEL rules (`x-kubernetes-validations`) are not evaluated. Messages are those of the library that
kube-apiserver uses, whose paths begin at the root of the schema, also where the field of the error
is deeper, as in a status.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from bayplan.base.patterns import compile_pattern
from bayplan.embedded.apiserver.crds.formats import is_of_format
from bayplan.embedded.apiserver.crds.pruning import CHOICES_IN_A_STEP, MATCHED_IN_A_STEP, WorkLimit
from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, encode
from bayplan.embedded.apiserver.validation.causes import (
    bad_type,
    bad_value,
    duplicate,
    not_supported,
    required,
    shown,
    too_long,
    too_many,
)

_INT_OR_STRING = "x-kubernetes-int-or-string"
_INT64_LIMIT = 2**63
_NUMBER = (int, float)
NO_FIELD = "<nil>"
"""The field of a problem that concerns no single field."""

Check = Callable[[JsonValue, JsonObject, str, WorkLimit], list[FieldCause]]


def problems_at(field: str, value: JsonValue, schema: JsonObject) -> list[FieldCause]:
    """Return the problems of the value of a field, by the schema of that field alone."""
    return [
        cause if cause.field == NO_FIELD else cause._replace(field=_join(field, cause.field))
        for cause in problems(value, schema)
    ]


def problems(
    value: JsonValue, schema: JsonObject, path: str = "", work: WorkLimit | None = None
) -> list[FieldCause]:
    """Return the problems of a value."""
    work = work or WorkLimit()
    work.spend()
    if value is None:
        return [] if schema.get("nullable") else [_wrong_type(path, value, schema)]
    found = [] if _type_fits(value, schema) else _misfits(path, value, schema)
    if found and _type_name(value) != "number":
        return found
    found += _enum(value, schema, path, work) + _combinations(value, schema, path, work)
    for kind, check in _CHECKS:
        if isinstance(value, kind) and not isinstance(value, bool):
            found += check(value, schema, path, work)
    return found


def _type_name(value: JsonValue) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return "integer" if -_INT64_LIMIT <= value < _INT64_LIMIT else "number"
    return _NAMES.get(type(value), "number")


_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}


def _type_fits(value: JsonValue, schema: JsonObject) -> bool:
    given = _type_name(value)
    if schema.get(_INT_OR_STRING):
        return given in {"integer", "string"}
    kind = schema.get("type")
    if kind == "integer" and isinstance(value, float):
        return value.is_integer() and abs(value) < _INT64_LIMIT
    return kind in (None, given) or (kind == "number" and given == "integer")


def _wrong_type(path: str, value: JsonValue, schema: JsonObject) -> FieldCause:
    kind = "integer,string" if schema.get(_INT_OR_STRING) else schema.get("type", "value")
    given = _type_name(value)
    return bad_type(path, given, f'{path} in body must be of type {kind}: "{given}"')


def _misfits(path: str, value: JsonValue, schema: JsonObject) -> list[FieldCause]:
    """Return two problems for a number that should be an integer, as kube-apiserver does."""
    found = [_wrong_type(path, value, schema)]
    if _type_name(value) == "number" and schema.get("type") == "integer":
        kind = schema.get("format") or "default"
        detail = f"Checked value must be of type integer ({kind} format) in {path}"
        found.append(bad_value(NO_FIELD, "", detail))
    return found


def _enum(value: JsonValue, schema: JsonObject, path: str, work: WorkLimit) -> list[FieldCause]:
    choices = schema.get("enum")
    if not choices:
        return []
    work.spend(len(choices) // CHOICES_IN_A_STEP)
    if value in choices:
        return []
    supported = [one if isinstance(one, str) else encode(one).decode() for one in choices]
    return [not_supported(path, value, supported)]


def _combinations(
    value: JsonValue, schema: JsonObject, path: str, work: WorkLimit
) -> list[FieldCause]:
    found = _all_of(value, schema, path, work)
    found += _any_of(value, schema, path, work)
    found += _one_of(value, schema, path, work)
    if schema.get("not") and not problems(value, schema["not"], path, work):
        found.append(bad_value(NO_FIELD, "", f'"{path}" must not validate the schema (not)'))
    return found


def _all_of(value: JsonValue, schema: JsonObject, path: str, work: WorkLimit) -> list[FieldCause]:
    failures = [problems(value, inner, path, work) for inner in schema.get("allOf") or ()]
    found = [cause for failure in failures for cause in failure]
    if found:
        none = "" if not all(failures) else ". None validated"
        detail = f'"{path}" must validate all the schemas (allOf){none}'
        found.append(bad_value(NO_FIELD, "", detail))
    return found


def _any_of(value: JsonValue, schema: JsonObject, path: str, work: WorkLimit) -> list[FieldCause]:
    failures = [problems(value, inner, path, work) for inner in schema.get("anyOf") or ()]
    if not failures or not all(failures):
        return []
    detail = f'"{path}" must validate at least one schema (anyOf)'
    return [bad_value(NO_FIELD, "", detail), *min(failures, key=len)]


def _one_of(value: JsonValue, schema: JsonObject, path: str, work: WorkLimit) -> list[FieldCause]:
    failures = [problems(value, inner, path, work) for inner in schema.get("oneOf") or ()]
    fitting = failures.count([])
    if not failures or fitting == 1:
        return []
    number = f"Found {fitting} valid alternatives" if fitting else "Found none valid"
    detail = f'"{path}" must validate one and only one schema (oneOf). {number}'
    return [bad_value(NO_FIELD, "", detail), *([] if fitting else min(failures, key=len))]


def _object(value: JsonObject, schema: JsonObject, path: str, work: WorkLimit) -> list[FieldCause]:
    found = _many_properties(len(value), schema, path)
    found += [
        required(_join(path, name)) for name in schema.get("required") or () if name not in value
    ]
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, item in value.items():
        inner = properties.get(name, others)
        if isinstance(inner, dict):
            found += problems(item, inner, _join(path, name), work)
    return found


def _many_properties(size: int, schema: JsonObject, path: str) -> list[FieldCause]:
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and size < least:
        detail = f"{path} in body should have at least {least} properties"
        return [bad_value(path, size, detail)]
    return [too_many(path, size, most)] if most is not None and size > most else []


def _array(
    value: list[JsonValue], schema: JsonObject, path: str, work: WorkLimit
) -> list[FieldCause]:
    found = _many_items(len(value), schema, path)
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            found += problems(item, items, f"{path}[{index}]", work)
    return found + _uniqueness(value, schema, path)


def _many_items(size: int, schema: JsonObject, path: str) -> list[FieldCause]:
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and size < least:
        return [bad_value(path, size, f"{path} in body should have at least {least} items")]
    return [too_many(path, size, most)] if most is not None and size > most else []


def _uniqueness(value: list[JsonValue], schema: JsonObject, path: str) -> list[FieldCause]:
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    kind = schema.get("x-kubernetes-list-type")
    if kind not in ("map", "set") and not schema.get("uniqueItems"):
        return []
    seen: set[Hashable] = set()
    found = []
    for index, item in enumerate(value):
        mark = (
            {key: item.get(key) for key in keys}
            if kind == "map" and isinstance(item, dict)
            else item
        )
        frozen = _hashable(mark)
        if frozen in seen:
            found.append(duplicate(f"{path}[{index}]", mark))
        seen.add(frozen)
    return found


def _hashable(value: JsonValue) -> Hashable:
    """Return a hashable form of a value in which True and 1 differ."""
    if isinstance(value, dict):
        return frozenset((key, _hashable(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(_hashable(item) for item in value)
    return (bool, value) if isinstance(value, bool) else value


def _string(value: str, schema: JsonObject, path: str, work: WorkLimit) -> list[FieldCause]:
    least, most = schema.get("minLength"), schema.get("maxLength")
    pattern, kind = schema.get("pattern"), schema.get("format") or ""
    found = []
    if most is not None and len(value) > most:
        found.append(too_long(path, most))
    if least is not None and len(value) < least:
        detail = f"{path} in body should be at least {least} chars long"
        found.append(bad_value(path, value, detail))
    if pattern and not _matches(value, pattern, work):
        found.append(bad_value(path, value, f"{path} in body should match '{pattern}'"))
    if not is_of_format(value, kind):
        detail = f"{path} in body must be of type {kind}: {shown(value)}"
        found.append(bad_type(path, value, detail))
    return found


def _matches(value: str, pattern: str, work: WorkLimit) -> bool:
    compiled = compile_pattern(pattern)
    work.spend(len(value) * compiled.programsize // MATCHED_IN_A_STEP)
    return compiled.search(value) is not None


def _number(value: float, schema: JsonObject, path: str, _: WorkLimit) -> list[FieldCause]:
    found = [*_upper(value, schema, path), *_lower(value, schema, path)]
    step = schema.get("multipleOf")
    if step and value % step:
        detail = f"{path} in body should be a multiple of {shown(step)}"
        found.append(bad_value(path, _as_go_holds(value), detail))
    return found


def _upper(value: float, schema: JsonObject, path: str) -> list[FieldCause]:
    most, exclusive = schema.get("maximum"), schema.get("exclusiveMaximum")
    if most is None or value < most or (value == most and not exclusive):
        return []
    bound = f"less than {'' if exclusive else 'or equal to '}{shown(most)}"
    return [bad_value(path, _as_go_holds(value), f"{path} in body should be {bound}")]


def _lower(value: float, schema: JsonObject, path: str) -> list[FieldCause]:
    least, exclusive = schema.get("minimum"), schema.get("exclusiveMinimum")
    if least is None or value > least or (value == least and not exclusive):
        return []
    bound = f"greater than {'' if exclusive else 'or equal to '}{shown(least)}"
    return [bad_value(path, _as_go_holds(value), f"{path} in body should be {bound}")]


def _as_go_holds(value: float) -> float:
    """Return the number as a float if it is too large for int64."""
    return value if -_INT64_LIMIT <= value < _INT64_LIMIT else float(value)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


_CHECKS: tuple[tuple[type | tuple[type, ...], Check], ...] = (
    (dict, _object),
    (list, _array),
    (str, _string),
    (_NUMBER, _number),
)
