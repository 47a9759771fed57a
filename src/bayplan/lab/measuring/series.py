"""Quantities over time, how long things took, and what is kept of a run.

All runs of a comparison share one grid, so that they can be laid over each other, and a day has as
many points as an hour. The means are exact: however often a quantity changes within a step, the sum
over all steps is its integral over the run.

A pod that still waits at the end has waited at least so long: it is *censored*. To leave such pods
out would flatter whoever lets them wait longest; to take them for pods that ran would, too. The
share that has come to its end within a time is Kaplan and Meier's estimate, which uses all that is
known of them; where nothing is censored it is the share as everybody counts it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

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


Floats: TypeAlias = NDArray[np.float64]


@dataclass(slots=True)
class Waits:
    """Durations in seconds: of those that came to their end, and of those that did not."""

    done: list[float] = field(default_factory=list)
    censored: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.done) + len(self.censored)

    def within(self, times: Floats) -> Floats:
        """The share that comes to its end within each of these times."""
        moments, shares = self._curve()
        index = np.searchsorted(moments, times, side="right")
        return np.concatenate(([0.0], shares))[index]

    def quantile(self, share: float) -> float | None:
        """The time within which that share comes to its end; None if the run was too short."""
        moments, shares = self._curve()
        index = int(np.searchsorted(shares, share - 1e-12, side="left"))
        return float(moments[index]) if index < len(moments) else None

    def _curve(self) -> tuple[Floats, Floats]:
        """The times at which something came to its end, and the share that had by then."""
        done = np.sort(np.array(self.done, dtype=np.float64))
        censored = np.sort(np.array(self.censored, dtype=np.float64))
        moments, counts = np.unique(done, return_counts=True)
        before = np.searchsorted(done, moments, side="left")
        gone = np.searchsorted(censored, moments, side="left")
        at_risk = len(self) - before - gone
        if not len(moments):
            return moments, moments
        shares = 1.0 - np.cumprod(1.0 - counts / at_risk)
        return moments, shares.astype(np.float64)


MOST_EVENTS = 2000
"""Purchases and removals that are kept one by one; all are counted."""


class ScaleEvent(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Instances of one group that were bought, failed or went at one moment."""

    time: float
    what: str
    """bought, failed, or removed."""
    group: str
    count: int
    why: str = ""


class Waiting(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """How long pods took from created to running."""

    pods: int
    never_ran: int
    """Of these, how many had not run when the run ended or they were deleted."""
    within: list[float]
    """The share that runs within each time of `WITHIN`."""
    quantiles: dict[str, float | None]
    """Seconds by share: p50, p90, p99; None where the run ended before so many ran."""


class Measured(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A run in numbers."""

    seconds: float
    series: dict[str, list[float]]
    """Means over the steps of the grid, by name."""
    figures: dict[str, float | None]
    waiting: Waiting
    events: list[ScaleEvent]
    events_left_out: int
    digest: str
    """Of all changes of the run: the same for the same run."""


WITHIN = [round(10 ** (exponent / 10), 4) for exponent in range(51)]
"""Times in seconds at which the distribution is told: from a second to a day and more, ten for each
tenfold."""
