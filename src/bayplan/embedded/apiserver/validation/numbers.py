"""What is wrong with counts, percentages and amounts of resources, and with what is said twice."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import NEGATIVE, bad_value
from bayplan.embedded.apiserver.validation.names import unmatched
from bayplan.kube import quantity

_PERCENT = "[0-9]+%"
_MOST_DIGITS = 100
IntOrString = int | str


def negative(obj: JsonObject, names: Iterable[str], field: str) -> list[Cause]:
    """Fields of an object that hold a count below zero; what is absent is fine."""
    return [
        bad_value(f"{field}.{name}", value, NEGATIVE)
        for name in names
        if (value := obj.get(name)) is not None and value < 0
    ]


def int_or_percent_problems(value: IntOrString, field: str) -> list[Cause]:
    """What is wrong with a count or a percentage."""
    if isinstance(value, int):
        return [bad_value(field, value, NEGATIVE)] if value < 0 else []
    if re.fullmatch(_PERCENT, value):
        return []
    why = "a valid percent string must be a numeric string followed by an ending '%'"
    return [bad_value(field, value, unmatched(why, _PERCENT, "1%", "93%"))]


def over_hundred_percent(value: IntOrString, field: str) -> list[Cause]:
    """A percentage may not be more than everything."""
    if isinstance(value, int) or not re.fullmatch(_PERCENT, value) or _number(value[:-1]) <= 100:
        return []
    return [bad_value(field, value, "must not be greater than 100%")]


def int_or_percent(value: IntOrString) -> int:
    """The number in a count or a percentage; 0 for what is neither."""
    if isinstance(value, int):
        return value
    text = value.removesuffix("%")
    return _number(text) if re.fullmatch("[+-]?[0-9]+", text) else 0


def _number(digits: str) -> int:
    """A number; of one beyond all bounds only that it is large, since reading it all takes long."""
    return int(digits) if len(digits) < _MOST_DIGITS else int("9" * _MOST_DIGITS)


def repeats(values: Iterable[Hashable]) -> Iterator[int]:
    """Where in a list something stands that stands before it already."""
    seen: set[Hashable] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield index
        seen.add(value)


NOT_POSITIVE = "must be greater than zero"


def basic_problems(amount: str, field: str) -> list[Cause]:
    """An amount below zero is none; it is told as a plain number."""
    number = quantity.value(amount)
    return [bad_value(field, number, "must be a valid resource quantity")] if number < 0 else []


def not_positive(amount: str, field: str) -> list[Cause]:
    """An amount must be more than nothing."""
    return [bad_value(field, amount, NOT_POSITIVE)] if quantity.parse(amount) <= 0 else []


def negative_amount(amount: str | None, field: str) -> list[Cause]:
    """An amount must not be less than nothing; what is absent is fine."""
    is_negative = amount is not None and quantity.parse(amount) < 0
    return [bad_value(field, amount, NEGATIVE)] if is_negative else []


def is_fraction(amounts: JsonObject | None, name: str) -> bool:
    """Whether an amount is not a whole number."""
    amount = (amounts or {}).get(name)
    return amount is not None and quantity.milli_value(amount) % 1000 != 0
