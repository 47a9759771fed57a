"""Counting what keeps happening, so that it becomes one event with a count instead of a flood.

Pure bookkeeping. The first time something happens it is reported. When it happens again it becomes
a series: its second time is written at once, then only a count from time to time, and a last count
when it has stopped. What has not happened for six minutes is over; next time it is news again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

OVER = 360.0
REFRESH = 60.0
MOST = 4096
"""Series kept in mind; beyond that the one longest silent is forgotten."""

Happening = tuple[str, ...]
"""What makes two reports the same: about whom, what, why, by whom."""


@dataclass(slots=True)
class Series:
    """One thing that keeps happening, and how much of it is written down."""

    happening: Happening
    namespace: str
    name: str
    last: float
    count: int = 1
    written_count: int = 1
    written_at: float = field(default=float("-inf"))
    told: bool = True
    """Whether the server has its event."""

    @property
    def unwritten(self) -> bool:
        """Whether it has happened more often than is written."""
        return self.count > self.written_count

    def written(self, now: float) -> None:
        """The count has been written."""
        self.written_count, self.written_at = self.count, now


class Tally:
    """All series that are going on."""

    def __init__(self) -> None:
        self._going_on: OrderedDict[Happening, Series] = OrderedDict()

    def again(self, happening: Happening, now: float) -> Series | None:
        """Count one more; None if this is the first time, or the first in a long while."""
        series = self._going_on.get(happening)
        if series is None or now - series.last > OVER:
            return None
        series.count += 1
        series.last = now
        self._going_on.move_to_end(happening)
        return series

    def first(self, series: Series) -> None:
        """Remember something new."""
        self._going_on[series.happening] = series
        self._going_on.move_to_end(series.happening)
        while len(self._going_on) > MOST:
            self._going_on.popitem(last=False)

    def forget(self, series: Series) -> None:
        """It is no longer known to the server."""
        if self._going_on.get(series.happening) is series:
            del self._going_on[series.happening]

    def due(self, now: float) -> Iterator[Series]:
        """The series whose count should be written now; those that are over are forgotten."""
        for series in tuple(self._going_on.values()):
            over = now - series.last > OVER
            if over:
                self.forget(series)
            if series.told and series.unwritten and (over or now - series.written_at >= REFRESH):
                yield series
