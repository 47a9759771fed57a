"""Exact quantities such as "1.5Gi", "100m" or "12e6", rounded and printed as Kubernetes does.

The rules are those of the API machinery: a value finer than a billionth rounds up, away from zero;
a value with a binary suffix is capped at 2^63-1; conversion to whole or thousandth units rounds up,
away from zero. Values are exact fractions, never floats.

This module is stricter where invalid input would pass: a quantity needs at least one digit (the API
machinery reads "Ki" as zero), and very long numbers or exponents are refused instead of
overflowing. The same strings occur many times in a cluster, so parsed values are cached.
"""

from __future__ import annotations

import enum
import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from bayplan.kube.meta import Quantity

MAX_INT64 = 2**63 - 1
MAX_LENGTH = 256
"""Longer strings are refused without parsing."""
MAX_EXPONENT = 1000

_NANO = 10**9
_SUFFIXES = {
    "n": (10, -9), "u": (10, -6), "m": (10, -3), "": (10, 0), "k": (10, 3), "M": (10, 6),
    "G": (10, 9), "T": (10, 12), "P": (10, 15), "E": (10, 18),
    "Ki": (2, 10), "Mi": (2, 20), "Gi": (2, 30), "Ti": (2, 40), "Pi": (2, 50), "Ei": (2, 60),
}  # fmt: skip
_DECIMAL_NAMES = {exponent: name for name, (base, exponent) in _SUFFIXES.items() if base == 10}
_BINARY_NAMES = {exponent: name for name, (base, exponent) in _SUFFIXES.items() if base == 2}
_FORM = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i|)|[eE](?P<exponent>[+-]?[0-9]+))"
)
_GO_SPACE = " \t\n\v\f\r\x85\xa0"
_CACHED = 1 << 16


class QuantityError(ValueError):
    """A quantity that Kubernetes would not accept, or that is absurdly large."""

    def __init__(self, written: object, problem: str) -> None:
        text = repr(written) if not isinstance(written, str) else repr(written[:40])
        super().__init__(f"quantity {text[:60]}: {problem}")


class Style(enum.Enum):
    """The suffix style of a quantity, which it is printed with."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


class _Reading(NamedTuple):
    """A parsed quantity, with its original spelling where Kubernetes keeps it."""

    amount: Fraction
    style: Style
    spelling: str | None


def parse(q: Quantity) -> Fraction:
    """Return the exact value of a quantity, rounded up to billionths as Kubernetes does."""
    return _read(q).amount


def value(q: Quantity) -> int:
    """Return the quantity in whole units, rounded up away from zero."""
    return _value(q)


def milli_value(q: Quantity) -> int:
    """Return the quantity in thousandths, rounded up away from zero."""
    return _milli_value(q)


def format(q: Quantity) -> str:  # noqa: A001 - called as quantity.format(...)
    """Return the quantity as Kubernetes prints it."""
    reading = _read(q)
    return reading.spelling or format_amount(reading.amount, reading.style)


def format_amount(amount: Fraction | int, style: Style = Style.DECIMAL) -> str:
    """Return an amount in canonical form: no fraction, the largest suffix without rounding."""
    exact = Fraction(amount)
    if exact == 0:
        return "0"
    if style is Style.BINARY and (abs(exact) < 1024 or exact.denominator != 1):
        style = Style.DECIMAL  # a binary suffix would round, or is not needed
    if style is Style.BINARY:
        return _format_binary(int(exact))
    return _format_decimal(exact, style)


@lru_cache(_CACHED, typed=True)
def _value(q: Quantity) -> int:
    return _away_from_zero(parse(q))


@lru_cache(_CACHED, typed=True)
def _milli_value(q: Quantity) -> int:
    return _away_from_zero(parse(q) * 1000)


@lru_cache(_CACHED, typed=True)
def _read(q: Quantity) -> _Reading:
    text = q if isinstance(q, str) else _number_text(q)
    if len(text) > MAX_LENGTH:
        raise QuantityError(q, f"longer than {MAX_LENGTH} characters")
    text = text.strip(_GO_SPACE)
    match = _FORM.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        raise QuantityError(q, "not a number with an optional suffix, such as 100m, 1.5Gi or 12e6")
    base, exponent, style = _scale(match, q)
    amount = _scaled(match, base, exponent)
    if style is Style.BINARY:
        amount = max(min(amount, Fraction(MAX_INT64)), Fraction(-MAX_INT64))
        style = Style.DECIMAL if 0 < abs(amount) < 1 else style
    return _Reading(amount, style, _kept_spelling(match, text, base, exponent))


def _number_text(q: float) -> str:
    """Return a JSON or YAML number in the digits it would be sent with."""
    if isinstance(q, bool) or not isinstance(q, int | float):
        raise QuantityError(q, "not a number or a string")
    if isinstance(q, int):
        if q.bit_length() > 4 * MAX_LENGTH:
            raise QuantityError("integer", f"more than {4 * MAX_LENGTH} bits long")
        return str(q)
    if not math.isfinite(q):
        raise QuantityError(q, "not a finite number")
    return repr(q)


def _scale(match: re.Match[str], q: Quantity) -> tuple[int, int, Style]:
    if match["exponent"] is None:
        base, exponent = _SUFFIXES[match["suffix"]]
        return base, exponent, Style.DECIMAL if base == 10 else Style.BINARY
    digits = match["exponent"].lstrip("+-").lstrip("0")
    if len(digits) > 4 or int(digits or "0") > MAX_EXPONENT:
        raise QuantityError(q, f"exponent beyond {MAX_EXPONENT}")
    return 10, int(match["exponent"]), Style.EXPONENT


def _scaled(match: re.Match[str], base: int, exponent: int) -> Fraction:
    """Return the written number times base**exponent, rounded up to billionths away from zero."""
    part = match["part"] or ""
    amount = Fraction(int((match["whole"] + part) or "0"), 10 ** len(part))
    amount *= Fraction(base) ** exponent
    amount = Fraction(math.ceil(amount * _NANO), _NANO)
    return -amount if match["sign"] == "-" else amount


def _away_from_zero(amount: Fraction) -> int:
    return math.ceil(amount) if amount > 0 else math.floor(amount)


def _kept_spelling(match: re.Match[str], text: str, base: int, exponent: int) -> str | None:
    """Return the text itself where the API machinery prints it unchanged."""
    whole, part = match["whole"].lstrip("0") or "0", match["part"] or ""
    digits = whole + part
    if base == 2:
        spare_digits = 14 - len(whole) - exponent * 3 // 10
        return text if not part and spare_digits >= 0 and int(digits) % 8 else None
    scale = exponent - len(part)
    if len(digits) > 18 or scale < -9 or scale % 3 or digits.endswith("000") or digits[0] == "0":
        return None
    return text


def _format_binary(amount: int) -> str:
    exponent = 0
    while amount % 1024 == 0 and exponent < 60:
        amount, exponent = amount // 1024, exponent + 10
    return f"{amount}{_BINARY_NAMES.get(exponent, '')}"


def _format_decimal(amount: Fraction, style: Style) -> str:
    mantissa, exponent = _away_from_zero(amount * _NANO), -9
    largest = 18 if style is Style.DECIMAL else MAX_EXPONENT + MAX_LENGTH
    while mantissa % 1000 == 0 and exponent < largest:
        mantissa, exponent = mantissa // 1000, exponent + 3
    if style is Style.DECIMAL:
        return f"{mantissa}{_DECIMAL_NAMES[exponent]}"
    return f"{mantissa}e{exponent}" if exponent else str(mantissa)
