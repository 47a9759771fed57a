"""Quantities over time, wait times, and the measurements of a run.

All runs of a comparison share one grid, so that they can be compared point by point, and a day has
as many points as an hour. The means are exact: however often a quantity changes within a step, the
sum over all steps is its integral over the run.

A pod that still waits at the end has waited at least that long: it is *censored*. Omitting such
pods would favour a variant that lets them wait longest, and so would counting them as started. The
share that has started within a time is the Kaplan-Meier estimate, which uses all that is known of
them; without censored pods it is the plain share.
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
    """The time steps of a run."""

    seconds: float
    points: int

    @classmethod
    def over(cls, seconds: float, points: int = POINTS) -> Grid:
        """Return a grid for a run of that length, with steps of at least a second."""
        return cls(seconds, max(1, min(points, int(seconds / SHORTEST_STEP))))

    @property
    def step(self) -> float:
        """The length of a step in seconds."""
        return self.seconds / self.points


class StepSeries:
    """One quantity over time, which keeps its value until it is set again."""

    __slots__ = ("_areas", "_grid", "_since", "_step", "peak", "value")

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._step = grid.step
        self._areas = [0.0] * grid.points
        self._since = 0.0
        self.value = 0.0
        self.peak = 0.0

    def set(self, now: float, value: float) -> None:
        """Set the value from now on."""
        if now > self._since:
            self._fill(now)
        self.value = value
        self.peak = max(self.peak, value)

    def add(self, now: float, change: float) -> None:
        """Change the value from now on."""
        self.set(now, self.value + change)

    def correct(self, start: float, end: float, by: float) -> None:
        """Change the value in the past, from start to end."""
        self._spread(start, end, by)

    def means(self) -> list[float]:
        """Return the mean over each step, until the end of the run."""
        self._fill(self._grid.seconds)
        return [area / self._step for area in self._areas]

    def integral(self) -> float:
        """Return the integral, in units times seconds."""
        self._fill(self._grid.seconds)
        return sum(self._areas)

    def _fill(self, now: float) -> None:
        self._spread(self._since, now, self.value)
        self._since = max(self._since, now)

    def _spread(self, start: float, end: float, value: float) -> None:
        """Add a value over an interval to the steps that overlap it."""
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


class SeriesSet:
    """Series by name, `family/label`; each is created by its first change and was 0 before."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._series: dict[str, StepSeries] = {}

    def of(self, name: str) -> StepSeries:
        """Return the series of a name."""
        found = self._series.get(name)
        if found is None:
            found = self._series[name] = StepSeries(self.grid)
        return found

    def family(self, name: str) -> Iterator[tuple[str, StepSeries]]:
        """Yield the labels and series of a family, in order."""
        for full in sorted(self._series):
            family, _, label = full.partition("/")
            if family == name:
                yield label, self._series[full]

    def means(self) -> dict[str, list[float]]:
        """Return the means of all series, in order."""
        return {name: self._series[name].means() for name in sorted(self._series)}


Floats: TypeAlias = NDArray[np.float64]


@dataclass(slots=True)
class WaitTimes:
    """Wait times in seconds: complete ones, and those that are censored."""

    done: list[float] = field(default_factory=list)
    censored: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.done) + len(self.censored)

    def within(self, times: Floats) -> Floats:
        """Return the share that completes within each of these times."""
        times_done, shares = self._curve()
        index = np.searchsorted(times_done, times, side="right")
        return np.concatenate(([0.0], shares))[index]

    def quantile(self, share: float) -> float | None:
        """Return the time within which a share completes; None if the run was too short."""
        times_done, shares = self._curve()
        index = int(np.searchsorted(shares, share - 1e-12, side="left"))
        return float(times_done[index]) if index < len(times_done) else None

    def _curve(self) -> tuple[Floats, Floats]:
        """Return the times of completions, and the share that had completed by then."""
        done = np.sort(np.array(self.done, dtype=np.float64))
        censored = np.sort(np.array(self.censored, dtype=np.float64))
        times_done, counts = np.unique(done, return_counts=True)
        before = np.searchsorted(done, times_done, side="left")
        gone = np.searchsorted(censored, times_done, side="left")
        at_risk = len(self) - before - gone
        if not len(times_done):
            return times_done, times_done
        shares = 1.0 - np.cumprod(1.0 - counts / at_risk)
        return times_done, shares.astype(np.float64)


MAX_EVENTS = 2000
"""The number of scaling events that are kept; all are counted."""


class ScalingEvent(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Instances of one group that were added, failed or were removed at one time."""

    time: float
    what: str
    """added, failed or removed."""
    group: str
    count: int
    reason: str = msgspec.field(default="", name="why")


class StartupTimes(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The times of pods from creation to running."""

    pods: int
    never_ran: int
    """Of these, the pods that had not run at the end or at their deletion."""
    within: list[float]
    """The share of pods that run within each time of `WITHIN`."""
    quantiles: dict[str, float | None]
    """Seconds by share: p50, p90, p99; None if the run was too short."""


class RunMeasurements(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The measurements of a run."""

    seconds: float
    series: dict[str, list[float]]
    """Means over the steps of the grid, by name."""
    figures: dict[str, float | None]
    startup: StartupTimes
    events: list[ScalingEvent]
    events_omitted: int
    digest: str
    """Digest of all changes of the run."""


WITHIN = [round(10 ** (exponent / 10), 4) for exponent in range(51)]
"""Times in seconds for the distribution: from a second to more than a day, ten for each decade."""
