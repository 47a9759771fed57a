"""What is wrong with amounts of resources."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import NEGATIVE, bad_value
from bayplan.kube import quantity

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
