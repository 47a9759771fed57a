"""The times of reservations: when they expire, and how long a group must wait after that.

A group that was admitted reserves quota for its pods until they have nodes. If that takes longer
than the time-out, the quota is released, and the group may reserve none for a while: a minute at
first, twice as long after each time-out, half an hour at most. Meanwhile it may still be placed, if
there are quota and a node; it just keeps nothing from others, and no node is added for it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from bayplan.base.flowcontrol import exponential_delay

AGAIN = 2.0
"""Seconds between two attempts to write that a reservation has timed out."""
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
    """The reservation state of one group."""

    until: float | None = None
    """When its reservation ends; None if it has none."""
    timeouts: int = 0
    is_over: bool = False
    """Whether it has timed out, and the conditions of its pods are being written."""
    rests_until: float | None = None


class Reservations:
    """The times of all groups that hold quota, or have held it in vain."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._times: dict[str, _Time] = {}
        self._due: list[tuple[float, str]] = []

    def begin(self, group: str, now: float) -> None:
        """Begin the reservation of a group, unless it has one."""
        time = self._times.setdefault(group, _Time())
        if time.until is None and self._timeout > 0:
            time.until = now + self._timeout
            heapq.heappush(self._due, (time.until, group))

    def end(self, group: str) -> None:
        """Forget a group: all its pods have nodes, or it is gone."""
        self._times.pop(group, None)

    def is_resting(self, group: str, now: float) -> bool:
        """Whether a group may hold nothing yet, after a time-out."""
        time = self._times.get(group)
        return time is not None and time.rests_until is not None and now < time.rests_until

    def is_over(self, group: str) -> bool:
        """Whether it has timed out, and the conditions of its pods are being written."""
        time = self._times.get(group)
        return time is not None and time.is_over

    def check_again(self, group: str, now: float) -> None:
        """Check again soon: not all conditions of a timed-out group are written."""
        time = self._times[group]
        time.until, time.is_over = now + AGAIN, True
        heapq.heappush(self._due, (now + AGAIN, group))

    def due(self, now: float) -> list[Due]:
        """Return the groups whose reservation timeout or backoff is over."""
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
        """Return when the next timeout or backoff is over; None if there is none."""
        return self._due[0][0] if self._due else None

    def rest(self, group: str, now: float) -> None:
        """Begin the rest of a group that has released its quota."""
        time = self._times[group]
        time.timeouts += 1
        time.until, time.is_over = None, False
        time.rests_until = now + exponential_delay(SHORTEST, LONGEST, time.timeouts - 1)
        heapq.heappush(self._due, (time.rests_until, group))
