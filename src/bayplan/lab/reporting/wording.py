"""Numbers and times as people read them, and round numbers for axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

_TIMES = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
DAY = 86400
MINUS, UNKNOWN = "\N{MINUS SIGN}", "\N{EN DASH}"


def number(value: float | None, unit: str = "") -> str:
    """A figure: `1,234`, `0.42`, `1m30s`; a dash for what nobody knows."""
    if value is None:
        return UNKNOWN
    if unit == "s":
        return duration(value)
    size = abs(value)
    digits = 0 if size >= 100 or value == int(value) else 1 if size >= 10 else 2
    text = f"{value:,.{digits}f}"
    return text.replace("-", MINUS) if float(text.replace(",", "")) else "0"


def signed(value: float | None, unit: str = "") -> str:
    """A difference, with its sign."""
    if value is None:
        return UNKNOWN
    text = number(abs(value), unit)
    return text if text in ("0", "0 s") else f"{'+' if value > 0 else MINUS}{text}"


def duration(seconds: float) -> str:
    """`0.4 s`, `59 s`, `1m05s`, `2h30m`, `1d 6h`."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes}m{rest:02}s" if rest else f"{minutes}m"
    minutes = round(seconds / 60)
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}h{rest:02}m" if rest else f"{hours}h"
    days, left = divmod(hours, 24)
    return f"{days}d {left}h" if left else f"{days}d"


def time_ticks(seconds: float, most: int = 7) -> list[float]:
    """Round moments along a run."""
    step = next((one for one in _TIMES if seconds / one <= most), None)
    if step is None:
        step = math.ceil(seconds / most / DAY) * DAY
    return [float(step * index) for index in range(int(seconds // step) + 1)]


def value_ticks(most: float, count: int = 4) -> list[float]:
    """Round values from nothing to at least the most."""
    if most <= 0:
        return [0.0, 1.0]
    rough = most / count
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * one for one in (1, 2, 2.5, 5, 10) if power * one >= rough * 0.999)
    return [step * index for index in range(math.ceil(most / step - 1e-9) + 1)]


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""
