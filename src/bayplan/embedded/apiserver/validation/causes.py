"""What is wrong with a field, in the words of kube-apiserver.

Clients read these words, and some compare them: the reason, the head ("Invalid value"), the value
as Go shows it, and then what was expected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonValue, encode

IMMUTABLE = "field is immutable"
NEGATIVE = "must be greater than or equal to 0"


class _Omitted:
    """A value that is not shown."""


OMITTED: Final = _Omitted()


def bad_value(field: str, value: JsonValue, why: str) -> Cause:
    """A field's value is not allowed."""
    return _cause("FieldValueInvalid", "Invalid value", field, value, why)


def bad_type(field: str, value: JsonValue, why: str) -> Cause:
    """A field's value is not of the field's type."""
    return _cause("FieldValueTypeInvalid", "Invalid value", field, value, why)


def immutable(field: str, value: JsonValue) -> Cause:
    """A field that must stay as it was does not."""
    return bad_value(field, value, IMMUTABLE)


def required(field: str, why: str = "") -> Cause:
    """A field must be there."""
    return _cause("FieldValueRequired", "Required value", field, OMITTED, why)


def forbidden_field(field: str, why: str) -> Cause:
    """A field must not be there, or must not change."""
    return _cause("FieldValueForbidden", "Forbidden", field, OMITTED, why)


def not_supported(field: str, value: JsonValue, choices: Sequence[str]) -> Cause:
    """A field's value is none of the choices."""
    listed = ", ".join(quoted(choice) for choice in choices)
    why = f"supported values: {listed}" if choices else ""
    return _cause("FieldValueNotSupported", "Unsupported value", field, value, why)


def duplicate(field: str, value: JsonValue, why: str = "") -> Cause:
    """A value may stand in a list only once."""
    return _cause("FieldValueDuplicate", "Duplicate value", field, value, why)


def missing(field: str, value: JsonValue, why: str = "") -> Cause:
    """What a field names is not there."""
    return _cause("FieldValueNotFound", "Not found", field, value, why)


def out_of_range(field: str, value: int, least: int, most: int) -> Cause:
    """A number is too small or too large."""
    return bad_value(field, value, f"must be between {least} and {most}, inclusive")


def too_long(field: str, most: int, unit: str = "byte") -> Cause:
    """A text is longer than it may be, in bytes or in characters."""
    why = f"may not be more than {_counted(most, unit)}"
    return _cause("FieldValueTooLong", "Too long", field, OMITTED, why)


def too_short(field: str, least: int) -> Cause:
    """A text has fewer characters than it must."""
    why = f"must be at least {_counted(least, 'character')}"
    return _cause("FieldValueTooShort", "Too short", field, OMITTED, why)


def too_many(field: str, number: int, most: int) -> Cause:
    """A list or a map has more items than it may."""
    why = f"must have at most {_counted(most, 'item')}"
    return _cause("FieldValueTooMany", "Too many", field, number, why)


def internal(field: str, why: str) -> Cause:
    """Something went wrong that is not the client's doing."""
    return _cause("InternalError", "Internal error", field, OMITTED, why)


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def _cause(reason: str, head: str, field: str, value: JsonValue, why: str = "") -> Cause:
    parts = [head] if value is OMITTED else [head, shown(value)]
    return Cause(reason, ": ".join([*parts, why] if why else parts), field)


def shown(value: JsonValue) -> str:
    """A value as Go's messages show it: texts quoted, numbers plain, all else as JSON."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return _shown_float(value)
    return escaped(encode(value).decode())


def escaped(text: str) -> str:
    """JSON as Go writes it."""
    return text.translate(_HTML)


_HTML = str.maketrans({letter: f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"})
"""What Go's JSON encoder escapes, so that a browser does not take it for markup."""
_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"} | {
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def quoted(text: str) -> str:
    """A text as Go quotes it."""
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
    """A number as Go's %v shows it: its shortest digits, with an exponent from a million on."""
    if not math.isfinite(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    exact = Decimal(repr(value)).normalize()
    if -5 < exact.adjusted() < 6:
        return f"{exact:f}"
    mantissa = f"{exact.scaleb(-exact.adjusted()):f}"
    return f"{mantissa}e{exact.adjusted():+03d}"
