"""Durations as people and Go write them: `90s`, `1h30m`, `250ms`, `2d`; a number is seconds."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LONGEST_TEXT = 40


class DurationError(ValueError):
    """Text that is not a duration."""


def parse_duration(text: str) -> float:
    """Return the seconds; raise DurationError if the text is not a duration."""
    text = text.strip()
    if len(text) <= _LONGEST_TEXT:
        if _NUMBER.fullmatch(text):
            return float(text)
        if _WHOLE.fullmatch(text):
            return math.fsum(float(n) * _UNITS[unit] for n, unit in _PART.findall(text))
    raise DurationError(f"{text[:_LONGEST_TEXT]!r} is not a duration such as 90s, 10m or 1h30m")


def format_duration(seconds: float) -> str:
    """Return the shortest text for a duration, to the millisecond: `1h30m`, `0s`."""
    left = round(seconds * 1000)
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        count, left = divmod(left, round(_UNITS[unit] * 1000))
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


if TYPE_CHECKING:
    Seconds = float
else:

    class Seconds(float):
        """Seconds, given as a number or as a duration, and shown as the shortest duration."""

        def __new__(cls, given: str | float) -> float:
            """Raise DurationError for a text that is not a duration."""
            return super().__new__(cls, parse_duration(given) if isinstance(given, str) else given)

        def __repr__(self) -> str:
            return format_duration(self)

        __str__ = __repr__
