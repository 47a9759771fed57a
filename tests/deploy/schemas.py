"""Whether values fit a JSON schema, as far as the chart's goes: a word beyond it is an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def fits(value: Any, schema: Any) -> bool:
    """Whether a value is what the schema says."""
    if isinstance(schema, bool):
        return schema
    return all(_WORDS[word](value, said, schema) for word, said in schema.items())


def _is_type(value: Any, said: str, _: Any) -> bool:
    if isinstance(value, bool):
        return said == "boolean"
    return isinstance(value, _TYPES[said])


def _is_object(value: Any, said: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    if not isinstance(value, dict):
        return True
    others = schema.get("additionalProperties", True)
    return all(fits(one, said.get(key, others)) for key, one in value.items())


def _entries(value: Any, said: Any, schema: Mapping[str, Any]) -> bool:
    """`additionalProperties` where there are no `properties`."""
    return "properties" in schema or not isinstance(value, dict) or _all(value.values(), said)


def _all(values: Any, said: Any) -> bool:
    return all(fits(one, said) for one in values)


_WORDS: dict[str, Callable[[Any, Any, Any], bool]] = {
    "type": _is_type,
    "enum": lambda value, said, _: value in said,
    "const": lambda value, said, _: value is said,
    "pattern": lambda value, said, _: not isinstance(value, str) or bool(_search(said, value)),
    "minLength": lambda value, said, _: not isinstance(value, str) or len(value) >= said,
    "maxLength": lambda value, said, _: not isinstance(value, str) or len(value) <= said,
    "minItems": lambda value, said, _: not isinstance(value, list) or len(value) >= said,
    "minimum": lambda value, said, _: not isinstance(value, int | float) or value >= said,
    "maximum": lambda value, said, _: not isinstance(value, int | float) or value <= said,
    "items": lambda value, said, _: not isinstance(value, list) or _all(value, said),
    "properties": _is_object,
    "propertyNames": lambda value, said, _: not isinstance(value, dict) or _all(value, said),
    "additionalProperties": _entries,
    "$schema": lambda *_: True,
    "required": lambda value, said, _: not isinstance(value, dict) or value.keys() >= set(said),
    "anyOf": lambda value, said, _: any(fits(value, one) for one in said),
    "allOf": lambda value, said, _: all(fits(value, one) for one in said),
    "not": lambda value, said, _: not fits(value, said),
}


def _search(pattern: str, text: str) -> re.Match[str] | None:
    """As Go and ECMAScript search: `$` is the very end."""
    return re.search(re.sub(r"\$$", r"\\Z", pattern), text)
