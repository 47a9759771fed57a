"""Plots as SVG, written by hand: lines with bands need no library, no script and no font.

Each variant has a colour (of Okabe and Ito's, which colour-blind people can tell apart) and a dash
of its own, both given by the style sheet. The line is the median over seeds; the dark band holds
the middle half of them, the light one all. Strips that nobody sees carry the values as titles,
which browsers show as a tooltip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from bayplan.lab.simulating.comparing import Band

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


WIDTH, HEIGHT = 440.0, 190.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 10.0, 8.0, 22.0
STRIPS = 40
COLOURS = 6
"""How many variants can be told apart."""


@dataclass(frozen=True, slots=True)
class Line:
    """A series of one variant."""

    variant: int
    name: str
    band: Band
    limit: bool = False
    """Whether it bounds another, and is drawn thin, without its spread."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Where along the plot each point stands, and what is written below."""

    places: list[float]
    """Between 0 and 1."""
    ticks: list[tuple[float, str]]
    labels: list[str]
    """Of each point, for its tooltip."""


def time_axis(seconds: float, points: int) -> Axis:
    """Points in the middle of equal steps."""
    step = seconds / points
    middles = [(index + 0.5) / points for index in range(points)]
    ticks = [(at / seconds, duration(at) if at else "0") for at in time_ticks(seconds)]
    return Axis(middles, ticks, [duration((index + 0.5) * step) for index in range(points)])


def log_axis(times: Sequence[float]) -> Axis:
    """Points at times of which each is a multiple of the one before."""
    low, high = math.log(times[0]), math.log(times[-1])
    named = [one for one in (1, 10, 60, 600, 3600, 21600, 86400) if times[0] <= one <= times[-1]]

    def place(time: float) -> float:
        return (math.log(time) - low) / (high - low)

    ticks = [(place(one), duration(one)) for one in named]
    return Axis([place(one) for one in times], ticks, [duration(one) for one in times])


def plot(title: str, axis: Axis, lines: Sequence[Line], unit: str = "", most: float = 0.0) -> str:
    """One plot; `most` if its values have an end that is known."""
    top = most or max((max(line.band.max) for line in lines), default=0.0)
    ticks = value_ticks(top)
    y = _scale(ticks[-1])
    parts = [_frame(axis, ticks, y, unit)]
    parts += [_bands(line, axis, y) for line in lines if not line.limit]
    parts += [_median(line, axis, y) for line in lines]
    parts.append(_strips(axis, lines, unit))
    label = escape(title, quote=True)
    body = "".join(parts)
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}"'
        f' role="img" aria-label="{label}">{body}</svg></figure>'
    )


Scale = Callable[[float], float]


def _scale(top: float) -> Scale:
    room = HEIGHT - TOP - BOTTOM
    return lambda value: TOP + room * (1 - value / top)


def _x(place: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * place


def _frame(axis: Axis, ticks: Sequence[float], y: Scale, unit: str) -> str:
    parts = []
    for tick in ticks:
        at, said = y(tick), duration(tick) if unit == "s" else f"{tick:,.10g}"
        parts.append(f'<path class="grid" d="M{LEFT:g} {at:.1f}H{WIDTH - RIGHT:g}"/>')
        parts.append(f'<text class="y" x="{LEFT - 6:g}" y="{at + 4:.1f}">{said}</text>')
    for place, said in axis.ticks:
        at = _x(place)
        anchor = ' class="last"' if place > 0.97 else ""
        parts.append(f'<path class="tick" d="M{at:.1f} {HEIGHT - BOTTOM:g}v4"/>')
        parts.append(f'<text{anchor} x="{at:.1f}" y="{HEIGHT - 5:g}">{escape(said)}</text>')
    return "".join(parts)


def _bands(line: Line, axis: Axis, y: Scale) -> str:
    band, parts = line.band, []
    for kind, low, high in (("all", band.min, band.max), ("half", band.q1, band.q3)):
        if low != high:
            there = _points(axis, high, y)
            back = reversed(_points(axis, low, y))
            d = "M" + "L".join([*there, *back]) + "Z"
            parts.append(f'<path class="v{line.variant % COLOURS} {kind}" d="{d}"/>')
    return "".join(parts)


def _median(line: Line, axis: Axis, y: Scale) -> str:
    kind = "limit" if line.limit else "line"
    d = "M" + "L".join(_points(axis, line.band.median, y))
    return f'<path class="v{line.variant % COLOURS} {kind}" d="{d}"/>'


def _points(axis: Axis, values: Sequence[float], y: Scale) -> list[str]:
    """Points as a path has them, without those between two of the same value."""
    kept = [
        index
        for index, value in enumerate(values)
        if index in (0, len(values) - 1) or not values[index - 1] == value == values[index + 1]
    ]
    return [f"{_x(axis.places[index]):.1f} {y(values[index]):.1f}" for index in kept]


def _strips(axis: Axis, lines: Sequence[Line], unit: str) -> str:
    count = len(axis.places)
    every = max(1, count // STRIPS)
    parts = []
    for start in range(0, count, every):
        middle = min(start + every // 2, count - 1)
        left = _x(axis.places[start])
        right = _x(axis.places[min(start + every, count - 1)])
        told = [axis.labels[middle], *(_told(line, middle, unit) for line in lines)]
        said = escape("\n".join(told))
        parts.append(
            f'<rect x="{left:.1f}" y="{TOP:g}" width="{max(right - left, 1):.1f}"'
            f' height="{HEIGHT - TOP - BOTTOM:g}"><title>{said}</title></rect>'
        )
    return f'<g class="strips">{"".join(parts)}</g>'


def _told(line: Line, index: int, unit: str) -> str:
    low, median, high = (one[index] for one in (line.band.min, line.band.median, line.band.max))
    spread = f" ({number(low, unit)} to {number(high, unit)})" if low != high else ""
    return f"{line.name}: {number(median, unit)}{spread}"
