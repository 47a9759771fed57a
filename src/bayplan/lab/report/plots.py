"""Plots as SVG, without a library, scripts or fonts.

Each variant has a colour (from the Okabe-Ito palette, which colour-blind people can distinguish)
and a dash pattern, both from the style sheet. The line is the median over seeds; the dark band is
the middle half of the seeds, the light one all. Invisible strips have the values as titles, which
browsers show as tooltips.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from bayplan.lab.simulation.comparison import Band

_TIMES = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
DAY = 86400
MINUS, UNKNOWN = "\N{MINUS SIGN}", "\N{EN DASH}"


def number(value: float | None, unit: str = "") -> str:
    """Format a figure: `1,234`, `0.42`, `1m30s`; a dash if it is unknown."""
    if value is None:
        return UNKNOWN
    if unit == "s":
        return duration(value)
    size = abs(value)
    digits = 0 if size >= 100 or value == int(value) else 1 if size >= 10 else 2
    text = f"{value:,.{digits}f}"
    return text.replace("-", MINUS) if float(text.replace(",", "")) else "0"


def signed(value: float | None, unit: str = "") -> str:
    """Format a difference, with its sign."""
    if value is None:
        return UNKNOWN
    text = number(abs(value), unit)
    return text if text in ("0", "0 s") else f"{'+' if value > 0 else MINUS}{text}"


def duration(seconds: float) -> str:
    """Format a duration: `0.4 s`, `59 s`, `1m05s`, `2h30m`, `1d 6h`."""
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


def time_ticks(seconds: float, max_ticks: int = 7) -> list[float]:
    """Return round times along a run."""
    step = next((time for time in _TIMES if seconds / time <= max_ticks), None)
    if step is None:
        step = math.ceil(seconds / max_ticks / DAY) * DAY
    return [float(step * index) for index in range(int(seconds // step) + 1)]


def value_ticks(maximum: float, count: int = 4) -> list[float]:
    """Return round values from zero to at least the maximum."""
    if maximum <= 0:
        return [0.0, 1.0]
    rough = maximum / count
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    return [step * index for index in range(math.ceil(maximum / step - 1e-9) + 1)]


def listed(words: Sequence[str]) -> str:
    """Join words as in `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


WIDTH, HEIGHT = 440.0, 190.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 10.0, 8.0, 22.0
STRIPS = 40
COLOURS = 6
"""The number of variants that can be distinguished."""


@dataclass(frozen=True, slots=True)
class Line:
    """A series of one variant."""

    variant: int
    name: str
    band: Band
    limit: bool = False
    """Whether it is the limit of another series, and is drawn thin, without its spread."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The positions of the points along the x axis, and their labels."""

    positions: list[float]
    """Between 0 and 1."""
    ticks: list[tuple[float, str]]
    labels: list[str]
    """The label of each point in its tooltip."""


def time_axis(seconds: float, points: int) -> Axis:
    """Return a linear axis with points in the middle of equal steps."""
    step = seconds / points
    middles = [(index + 0.5) / points for index in range(points)]
    ticks = [(at / seconds, duration(at) if at else "0") for at in time_ticks(seconds)]
    return Axis(middles, ticks, [duration((index + 0.5) * step) for index in range(points)])


def log_axis(times: Sequence[float]) -> Axis:
    """Return a logarithmic axis."""
    low, high = math.log(times[0]), math.log(times[-1])
    named = [one for one in (1, 10, 60, 600, 3600, 21600, 86400) if times[0] <= one <= times[-1]]

    def place(time: float) -> float:
        return (math.log(time) - low) / (high - low)

    ticks = [(place(one), duration(one)) for one in named]
    return Axis([place(one) for one in times], ticks, [duration(one) for one in times])


def plot(
    title: str, axis: Axis, lines: Sequence[Line], unit: str = "", maximum: float = 0.0
) -> str:
    """Return a plot; `maximum` is the largest possible value, if it is known."""
    top = maximum or max((max(line.band.max) for line in lines), default=0.0)
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
    height = HEIGHT - TOP - BOTTOM
    return lambda value: TOP + height * (1 - value / top)


def _x(position: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * position


def _frame(axis: Axis, ticks: Sequence[float], y: Scale, unit: str) -> str:
    parts = []
    for tick in ticks:
        at, label = y(tick), duration(tick) if unit == "s" else f"{tick:,.10g}"
        parts.append(f'<path class="grid" d="M{LEFT:g} {at:.1f}H{WIDTH - RIGHT:g}"/>')
        parts.append(f'<text class="y" x="{LEFT - 6:g}" y="{at + 4:.1f}">{label}</text>')
    for position, label in axis.ticks:
        at = _x(position)
        anchor = ' class="last"' if position > 0.97 else ""
        parts.append(f'<path class="tick" d="M{at:.1f} {HEIGHT - BOTTOM:g}v4"/>')
        parts.append(f'<text{anchor} x="{at:.1f}" y="{HEIGHT - 5:g}">{escape(label)}</text>')
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
    """Return the points of a path, without those between two of the same value."""
    kept = [
        index
        for index, value in enumerate(values)
        if index in (0, len(values) - 1) or not values[index - 1] == value == values[index + 1]
    ]
    return [f"{_x(axis.positions[index]):.1f} {y(values[index]):.1f}" for index in kept]


def _strips(axis: Axis, lines: Sequence[Line], unit: str) -> str:
    count = len(axis.positions)
    every = max(1, count // STRIPS)
    parts = []
    for start in range(0, count, every):
        middle = min(start + every // 2, count - 1)
        left = _x(axis.positions[start])
        right = _x(axis.positions[min(start + every, count - 1)])
        values = [axis.labels[middle], *(_line_text(line, middle, unit) for line in lines)]
        title = escape("\n".join(values))
        parts.append(
            f'<rect x="{left:.1f}" y="{TOP:g}" width="{max(right - left, 1):.1f}"'
            f' height="{HEIGHT - TOP - BOTTOM:g}"><title>{title}</title></rect>'
        )
    return f'<g class="strips">{"".join(parts)}</g>'


def _line_text(line: Line, index: int, unit: str) -> str:
    low, median, high = (one[index] for one in (line.band.min, line.band.median, line.band.max))
    spread = f" ({number(low, unit)} to {number(high, unit)})" if low != high else ""
    return f"{line.name}: {number(median, unit)}{spread}"
