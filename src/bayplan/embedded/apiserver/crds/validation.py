"""Does a custom resource meet its schema? The part of JSON Schema that CRDs may use.

CEL rules (`x-kubernetes-validations`) are not evaluated. What is wrong is said in the words of the
library that kube-apiserver uses, which has a path of its own in its sentences: it begins where the
schema does, also where the field that is complained of lies deeper, as in a status.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from bayplan.base.patterns import compile_pattern
from bayplan.embedded.apiserver.crds.formats import is_of_format
from bayplan.embedded.apiserver.crds.pruning import CHOICES_IN_A_STEP, MATCHED_IN_A_STEP, Effort
from bayplan.embedded.apiserver.errors import Cause
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
_LARGEST = 2**63
_NUMBER = (int, float)
NOWHERE = "<nil>"
"""The field of a complaint that is about no single one."""

Check = Callable[[JsonValue, JsonObject, str, Effort], list[Cause]]


def problems_at(field: str, value: JsonValue, schema: JsonObject) -> list[Cause]:
    """What is wrong with the value of a field, by the schema of that field alone."""
    return [
        cause if cause.field == NOWHERE else cause._replace(field=_join(field, cause.field))
        for cause in problems(value, schema)
    ]


def problems(
    value: JsonValue, schema: JsonObject, path: str = "", effort: Effort | None = None
) -> list[Cause]:
    """What is wrong with a value."""
    effort = effort or Effort()
    effort.spend()
    if value is None:
        return [] if schema.get("nullable") else [_wrong_type(path, value, schema)]
    found = [] if _type_fits(value, schema) else _misfits(path, value, schema)
    if found and _type_name(value) != "number":
        return found
    found += _enum(value, schema, path, effort) + _combinations(value, schema, path, effort)
    for kind, check in _CHECKS:
        if isinstance(value, kind) and not isinstance(value, bool):
            found += check(value, schema, path, effort)
    return found


def _type_name(value: JsonValue) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return "integer" if -_LARGEST <= value < _LARGEST else "number"
    return _NAMES.get(type(value), "number")


_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}


def _type_fits(value: JsonValue, schema: JsonObject) -> bool:
    given = _type_name(value)
    if schema.get(_INT_OR_STRING):
        return given in {"integer", "string"}
    kind = schema.get("type")
    if kind == "integer" and isinstance(value, float):
        return value.is_integer() and abs(value) < _LARGEST
    return kind in (None, given) or (kind == "number" and given == "integer")


def _wrong_type(path: str, value: JsonValue, schema: JsonObject) -> Cause:
    kind = "integer,string" if schema.get(_INT_OR_STRING) else schema.get("type", "value")
    given = _type_name(value)
    return bad_type(path, given, f'{path} in body must be of type {kind}: "{given}"')


def _misfits(path: str, value: JsonValue, schema: JsonObject) -> list[Cause]:
    """A number that is no whole one is complained of twice."""
    found = [_wrong_type(path, value, schema)]
    if _type_name(value) == "number" and schema.get("type") == "integer":
        kind = schema.get("format") or "default"
        why = f"Checked value must be of type integer ({kind} format) in {path}"
        found.append(bad_value(NOWHERE, "", why))
    return found


def _enum(value: JsonValue, schema: JsonObject, path: str, effort: Effort) -> list[Cause]:
    choices = schema.get("enum")
    if not choices:
        return []
    effort.spend(len(choices) // CHOICES_IN_A_STEP)
    if value in choices:
        return []
    said = [one if isinstance(one, str) else encode(one).decode() for one in choices]
    return [not_supported(path, value, said)]


def _combinations(value: JsonValue, schema: JsonObject, path: str, effort: Effort) -> list[Cause]:
    found = _all_of(value, schema, path, effort)
    found += _any_of(value, schema, path, effort)
    found += _one_of(value, schema, path, effort)
    if schema.get("not") and not problems(value, schema["not"], path, effort):
        found.append(bad_value(NOWHERE, "", f'"{path}" must not validate the schema (not)'))
    return found


def _all_of(value: JsonValue, schema: JsonObject, path: str, effort: Effort) -> list[Cause]:
    failures = [problems(value, inner, path, effort) for inner in schema.get("allOf") or ()]
    found = [cause for failure in failures for cause in failure]
    if found:
        none = "" if not all(failures) else ". None validated"
        why = f'"{path}" must validate all the schemas (allOf){none}'
        found.append(bad_value(NOWHERE, "", why))
    return found


def _any_of(value: JsonValue, schema: JsonObject, path: str, effort: Effort) -> list[Cause]:
    failures = [problems(value, inner, path, effort) for inner in schema.get("anyOf") or ()]
    if not failures or not all(failures):
        return []
    why = f'"{path}" must validate at least one schema (anyOf)'
    return [bad_value(NOWHERE, "", why), *min(failures, key=len)]


def _one_of(value: JsonValue, schema: JsonObject, path: str, effort: Effort) -> list[Cause]:
    failures = [problems(value, inner, path, effort) for inner in schema.get("oneOf") or ()]
    fitting = failures.count([])
    if not failures or fitting == 1:
        return []
    number = f"Found {fitting} valid alternatives" if fitting else "Found none valid"
    why = f'"{path}" must validate one and only one schema (oneOf). {number}'
    return [bad_value(NOWHERE, "", why), *([] if fitting else min(failures, key=len))]


def _object(value: JsonObject, schema: JsonObject, path: str, effort: Effort) -> list[Cause]:
    found = _many_properties(len(value), schema, path)
    found += [
        required(_join(path, name)) for name in schema.get("required") or () if name not in value
    ]
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, item in value.items():
        inner = properties.get(name, others)
        if isinstance(inner, dict):
            found += problems(item, inner, _join(path, name), effort)
    return found


def _many_properties(size: int, schema: JsonObject, path: str) -> list[Cause]:
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and size < least:
        why = f"{path} in body should have at least {least} properties"
        return [bad_value(path, size, why)]
    return [too_many(path, size, most)] if most is not None and size > most else []


def _array(value: list[JsonValue], schema: JsonObject, path: str, effort: Effort) -> list[Cause]:
    found = _many_items(len(value), schema, path)
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            found += problems(item, items, f"{path}[{index}]", effort)
    return found + _uniqueness(value, schema, path)


def _many_items(size: int, schema: JsonObject, path: str) -> list[Cause]:
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and size < least:
        return [bad_value(path, size, f"{path} in body should have at least {least} items")]
    return [too_many(path, size, most)] if most is not None and size > most else []


def _uniqueness(value: list[JsonValue], schema: JsonObject, path: str) -> list[Cause]:
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
        frozen = _frozen(mark)
        if frozen in seen:
            found.append(duplicate(f"{path}[{index}]", mark))
        seen.add(frozen)
    return found


def _frozen(value: JsonValue) -> Hashable:
    """A value that can be looked up; equal ones are equal, but a truth value is no number."""
    if isinstance(value, dict):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return (bool, value) if isinstance(value, bool) else value


def _string(value: str, schema: JsonObject, path: str, effort: Effort) -> list[Cause]:
    least, most = schema.get("minLength"), schema.get("maxLength")
    pattern, kind = schema.get("pattern"), schema.get("format") or ""
    found = []
    if most is not None and len(value) > most:
        found.append(too_long(path, most))
    if least is not None and len(value) < least:
        why = f"{path} in body should be at least {least} chars long"
        found.append(bad_value(path, value, why))
    if pattern and not _matches(value, pattern, effort):
        found.append(bad_value(path, value, f"{path} in body should match '{pattern}'"))
    if not is_of_format(value, kind):
        why = f"{path} in body must be of type {kind}: {shown(value)}"
        found.append(bad_type(path, value, why))
    return found


def _matches(value: str, pattern: str, effort: Effort) -> bool:
    compiled = compile_pattern(pattern)
    effort.spend(len(value) * compiled.programsize // MATCHED_IN_A_STEP)
    return compiled.search(value) is not None


def _number(value: float, schema: JsonObject, path: str, _: Effort) -> list[Cause]:
    found = [*_upper(value, schema, path), *_lower(value, schema, path)]
    step = schema.get("multipleOf")
    if step and value % step:
        why = f"{path} in body should be a multiple of {shown(step)}"
        found.append(bad_value(path, _as_go_holds(value), why))
    return found


def _upper(value: float, schema: JsonObject, path: str) -> list[Cause]:
    most, exclusive = schema.get("maximum"), schema.get("exclusiveMaximum")
    if most is None or value < most or (value == most and not exclusive):
        return []
    bound = f"less than {'' if exclusive else 'or equal to '}{shown(most)}"
    return [bad_value(path, _as_go_holds(value), f"{path} in body should be {bound}")]


def _lower(value: float, schema: JsonObject, path: str) -> list[Cause]:
    least, exclusive = schema.get("minimum"), schema.get("exclusiveMinimum")
    if least is None or value > least or (value == least and not exclusive):
        return []
    bound = f"greater than {'' if exclusive else 'or equal to '}{shown(least)}"
    return [bad_value(path, _as_go_holds(value), f"{path} in body should be {bound}")]


def _as_go_holds(value: float) -> float:
    """A number that is too large for a whole one is not exact any more."""
    return value if -_LARGEST <= value < _LARGEST else float(value)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


_CHECKS: tuple[tuple[type | tuple[type, ...], Check], ...] = (
    (dict, _object),
    (list, _array),
    (str, _string),
    (_NUMBER, _number),
)
