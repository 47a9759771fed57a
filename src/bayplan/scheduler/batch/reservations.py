"""Reservations that find no node: their time, and their rest.

A group that was let in holds quota for its pods until they have nodes. If that takes longer than
the time-out, the quota is given back, and the group rests before it may hold any again: a minute at
first, twice as long after each time-out, half an hour at most. While it rests it may still be
placed, if quota and a node turn up; it just keeps nothing from others, and no node is bought for
it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from bayplan.base.pacing import doubled

AGAIN = 2.0
"""Seconds between two tries to tell that a time is over."""
SHORTEST, LONGEST = 60.0, 1800.0
"""Seconds of rest after the first time-out, and at most."""


@dataclass(frozen=True, slots=True)
class Due:
    """A group whose time has come."""

    group: str
    is_over: bool
    """Whether its reservation is over; else its rest is."""


@dataclass(slots=True)
class _Time:
    """What is known of one group."""

    until: float | None = None
    """When its reservation ends; None if it has none."""
    timeouts: int = 0
    is_over: bool = False
    """Whether its time is over, and its pods are being told."""
    rests_until: float | None = None


class Reservations:
    """The times of all groups that hold quota, or have held it in vain."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._times: dict[str, _Time] = {}
        self._due: list[tuple[float, str]] = []

    def begin(self, group: str, now: float) -> None:
        """A group holds quota for pods without a node; since then, if it did before."""
        time = self._times.setdefault(group, _Time())
        if time.until is None and self._timeout > 0:
            time.until = now + self._timeout
            heapq.heappush(self._due, (time.until, group))

    def end(self, group: str) -> None:
        """All its pods have nodes, or it is gone: as if nothing had been."""
        self._times.pop(group, None)

    def rests(self, group: str, now: float) -> bool:
        """Whether a group may hold nothing yet, after a time-out."""
        time = self._times.get(group)
        return time is not None and time.rests_until is not None and now < time.rests_until

    def is_over(self, group: str) -> bool:
        """Whether its time is over, and its pods are being told."""
        time = self._times.get(group)
        return time is not None and time.is_over

    def again(self, group: str, now: float) -> None:
        """Its time is over, and not all of its pods say so: look again soon."""
        time = self._times[group]
        time.until, time.is_over = now + AGAIN, True
        heapq.heappush(self._due, (now + AGAIN, group))

    def due(self, now: float) -> list[Due]:
        """The groups whose time or whose rest is over."""
        over = []
        while self._due and self._due[0][0] <= now:
            moment, group = heapq.heappop(self._due)
            time = self._times.get(group)
            if time is None:
                continue
            if time.until == moment:
                over.append(Due(group, is_over=True))
            elif time.rests_until == moment:
                time.rests_until = None
                over.append(Due(group, is_over=False))
        return over

    def next_due(self) -> float | None:
        """When a time or a rest is over; None if never."""
        return self._due[0][0] if self._due else None

    def rest(self, group: str, now: float) -> None:
        """A group has given its quota back: it rests."""
        time = self._times[group]
        time.timeouts += 1
        time.until, time.is_over = None, False
        time.rests_until = now + doubled(SHORTEST, LONGEST, time.timeouts - 1)
        heapq.heappush(self._due, (time.rests_until, group))
