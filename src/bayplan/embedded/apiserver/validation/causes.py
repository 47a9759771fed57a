"""Field errors with kube-apiserver's messages.

Some clients compare them: the reason, the head ("Invalid value"), the value as Go prints it, and
then what was expected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonValue, encode

IMMUTABLE = "field is immutable"
NEGATIVE = "must be greater than or equal to 0"


class _Omitted:
    """A value that is not shown."""


OMITTED: Final = _Omitted()


def bad_value(field: str, value: JsonValue, detail: str) -> FieldCause:
    """Return FieldValueInvalid."""
    return _cause("FieldValueInvalid", "Invalid value", field, value, detail)


def bad_type(field: str, value: JsonValue, detail: str) -> FieldCause:
    """Return FieldValueTypeInvalid."""
    return _cause("FieldValueTypeInvalid", "Invalid value", field, value, detail)


def immutable(field: str, value: JsonValue) -> FieldCause:
    """Return FieldValueInvalid: the field is immutable."""
    return bad_value(field, value, IMMUTABLE)


def required(field: str, detail: str = "") -> FieldCause:
    """Return FieldValueRequired."""
    return _cause("FieldValueRequired", "Required value", field, OMITTED, detail)


def forbidden_field(field: str, detail: str) -> FieldCause:
    """Return FieldValueForbidden."""
    return _cause("FieldValueForbidden", "Forbidden", field, OMITTED, detail)


def not_supported(field: str, value: JsonValue, choices: Sequence[str]) -> FieldCause:
    """Return FieldValueNotSupported."""
    listed = ", ".join(quoted(choice) for choice in choices)
    detail = f"supported values: {listed}" if choices else ""
    return _cause("FieldValueNotSupported", "Unsupported value", field, value, detail)


def duplicate(field: str, value: JsonValue, detail: str = "") -> FieldCause:
    """Return FieldValueDuplicate."""
    return _cause("FieldValueDuplicate", "Duplicate value", field, value, detail)


def missing(field: str, value: JsonValue, detail: str = "") -> FieldCause:
    """Return FieldValueNotFound."""
    return _cause("FieldValueNotFound", "Not found", field, value, detail)


def out_of_range(field: str, value: int, least: int, most: int) -> FieldCause:
    """Return FieldValueInvalid: the number is too small or too large."""
    return bad_value(field, value, f"must be between {least} and {most}, inclusive")


def too_long(field: str, most: int, unit: str = "byte") -> FieldCause:
    """Return FieldValueTooLong, in bytes or in characters."""
    detail = f"may not be more than {_counted(most, unit)}"
    return _cause("FieldValueTooLong", "Too long", field, OMITTED, detail)


def too_short(field: str, least: int) -> FieldCause:
    """Return FieldValueTooShort."""
    detail = f"must be at least {_counted(least, 'character')}"
    return _cause("FieldValueTooShort", "Too short", field, OMITTED, detail)


def too_many(field: str, number: int, most: int) -> FieldCause:
    """Return FieldValueTooMany."""
    detail = f"must have at most {_counted(most, 'item')}"
    return _cause("FieldValueTooMany", "Too many", field, number, detail)


def internal(field: str, detail: str) -> FieldCause:
    """Return InternalError."""
    return _cause("InternalError", "Internal error", field, OMITTED, detail)


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def _cause(reason: str, head: str, field: str, value: JsonValue, detail: str = "") -> FieldCause:
    parts = [head] if value is OMITTED else [head, shown(value)]
    return FieldCause(reason, ": ".join([*parts, detail] if detail else parts), field)


def shown(value: JsonValue) -> str:
    """Return a value as Go's messages show it: strings quoted, numbers plain, others as JSON."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return _shown_float(value)
    return escaped(encode(value).decode())


def escaped(text: str) -> str:
    """Return JSON as Go writes it."""
    return text.translate(_HTML)


_HTML = str.maketrans({letter: f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"})
"""Characters that Go's JSON encoder escapes because of HTML."""
_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"} | {
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def quoted(text: str) -> str:
    """Return a string as Go quotes it."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_quoted_letter, text)) + '"'


def _quoted_letter(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _shown_float(value: float) -> str:
    """Return a number as Go's %v prints it: shortest digits, with an exponent from a million on."""
    if not math.isfinite(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    exact = Decimal(repr(value)).normalize()
    if -5 < exact.adjusted() < 6:
        return f"{exact:f}"
    mantissa = f"{exact.scaleb(-exact.adjusted()):f}"
    return f"{mantissa}e{exact.adjusted():+03d}"
