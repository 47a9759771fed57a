"""Validation of counts, percentages and amounts of resources, and of duplicates."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import NEGATIVE, bad_value
from bayplan.embedded.apiserver.validation.names import unmatched
from bayplan.kube import quantity

_PERCENT = "[0-9]+%"
_MAX_DIGITS = 100
IntOrString = int | str


def negative(obj: JsonObject, names: Iterable[str], field: str) -> list[FieldCause]:
    """Return the fields of an object that are below zero."""
    return [
        bad_value(f"{field}.{name}", value, NEGATIVE)
        for name in names
        if (value := obj.get(name)) is not None and value < 0
    ]


def int_or_percent_problems(value: IntOrString, field: str) -> list[FieldCause]:
    """Return the problems of a count or a percentage."""
    if isinstance(value, int):
        return [bad_value(field, value, NEGATIVE)] if value < 0 else []
    if re.fullmatch(_PERCENT, value):
        return []
    detail = "a valid percent string must be a numeric string followed by an ending '%'"
    return [bad_value(field, value, unmatched(detail, _PERCENT, "1%", "93%"))]


def over_hundred_percent(value: IntOrString, field: str) -> list[FieldCause]:
    """Refuse a percentage above 100."""
    if isinstance(value, int) or not re.fullmatch(_PERCENT, value) or _number(value[:-1]) <= 100:
        return []
    return [bad_value(field, value, "must not be greater than 100%")]


def int_or_percent(value: IntOrString) -> int:
    """Return the number of a count or a percentage; 0 if it is neither."""
    if isinstance(value, int):
        return value
    text = value.removesuffix("%")
    return _number(text) if re.fullmatch("[+-]?[0-9]+", text) else 0


def _number(digits: str) -> int:
    """Return a number; a very long one only as a large number, since parsing it takes long."""
    return int(digits) if len(digits) < _MAX_DIGITS else int("9" * _MAX_DIGITS)


def repeats(values: Iterable[Hashable]) -> Iterator[int]:
    """Return the indexes of duplicates in a list."""
    seen: set[Hashable] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield index
        seen.add(value)


NOT_POSITIVE = "must be greater than zero"


def basic_problems(amount: str, field: str) -> list[FieldCause]:
    """Refuse an amount below zero, shown as a plain number."""
    number = quantity.value(amount)
    return [bad_value(field, number, "must be a valid resource quantity")] if number < 0 else []


def not_positive(amount: str, field: str) -> list[FieldCause]:
    """Refuse an amount that is not above zero."""
    return [bad_value(field, amount, NOT_POSITIVE)] if quantity.parse(amount) <= 0 else []


def negative_amount(amount: str | None, field: str) -> list[FieldCause]:
    """Refuse an amount below zero."""
    is_negative = amount is not None and quantity.parse(amount) < 0
    return [bad_value(field, amount, NEGATIVE)] if is_negative else []


def is_fraction(amounts: JsonObject | None, name: str) -> bool:
    """Return whether an amount is not a whole number."""
    amount = (amounts or {}).get(name)
    return amount is not None and quantity.milli_value(amount) % 1000 != 0
