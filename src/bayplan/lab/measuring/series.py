"""Quantities over time: step functions, of which the mean over each step of a grid is kept.

All runs of a comparison share one grid, so that they can be laid over each other, and a day has as
many points as an hour. The means are exact: however often a quantity changes within a step, the sum
over all steps is its integral over the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

POINTS = 240
SHORTEST_STEP = 1.0


@dataclass(frozen=True, slots=True)
class Grid:
    """The steps into which a run is cut."""

    seconds: float
    points: int

    @classmethod
    def over(cls, seconds: float, points: int = POINTS) -> Grid:
        """A grid for a run of that length: so many points, but none shorter than a second."""
        return cls(seconds, max(1, min(points, int(seconds / SHORTEST_STEP))))

    @property
    def step(self) -> float:
        """The length of a step in seconds."""
        return self.seconds / self.points


class Series:
    """One quantity, which keeps its value until it is set again."""

    __slots__ = ("_areas", "_grid", "_since", "_step", "peak", "value")

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._step = grid.step
        self._areas = [0.0] * grid.points
        self._since = 0.0
        self.value = 0.0
        self.peak = 0.0

    def set(self, now: float, value: float) -> None:
        """From now on it is that much."""
        if now > self._since:
            self._fill(now)
        self.value = value
        self.peak = max(self.peak, value)

    def add(self, now: float, change: float) -> None:
        """From now on it is so much more."""
        self.set(now, self.value + change)

    def correct(self, start: float, end: float, by: float) -> None:
        """It has been so much more from start to end, as turns out now."""
        self._spread(start, end, by)

    def means(self) -> list[float]:
        """The mean over each step, until the end of the run."""
        self._fill(self._grid.seconds)
        return [area / self._step for area in self._areas]

    def integral(self) -> float:
        """The area under it, in units times seconds."""
        self._fill(self._grid.seconds)
        return sum(self._areas)

    def _fill(self, now: float) -> None:
        self._spread(self._since, now, self.value)
        self._since = max(self._since, now)

    def _spread(self, start: float, end: float, value: float) -> None:
        """Add a value over a while to the steps that the while touches."""
        start, end = max(0.0, start), min(end, self._grid.seconds)
        if not value or end <= start:
            return
        step, last = self._step, self._grid.points - 1
        first, final = min(int(start / step), last), min(int(end / step), last)
        if first == final:
            self._areas[first] += value * (end - start)
            return
        self._areas[first] += value * ((first + 1) * step - start)
        for index in range(first + 1, final):
            self._areas[index] += value * step
        self._areas[final] += value * (end - final * step)


class SeriesBook:
    """Series by name, `family/what`; each is there from its first change on, and was 0 before."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._series: dict[str, Series] = {}

    def of(self, name: str) -> Series:
        """The series of that name."""
        found = self._series.get(name)
        if found is None:
            found = self._series[name] = Series(self.grid)
        return found

    def family(self, name: str) -> Iterator[tuple[str, Series]]:
        """What there is of a family, in order."""
        for full in sorted(self._series):
            family, _, label = full.partition("/")
            if family == name:
                yield label, self._series[full]

    def means(self) -> dict[str, list[float]]:
        """All of them, in order."""
        return {name: self._series[name].means() for name in sorted(self._series)}
