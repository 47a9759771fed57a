"""Clocks that are passed as arguments: wall-clock time, or the time of the event loop.

Code that waits, expires or backs off takes a `Clock` and never reads the system time itself. In a
live process that is the `WallClock`. In a simulation, and in tests that need nothing from outside
their process, it is a `LoopClock` on a `VirtualLoop`, where waiting takes no real time.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

START = datetime(2026, 1, 1, tzinfo=UTC)
"""The default start of a virtual clock."""


class Clock(Protocol):
    """The current time, and a way to wait."""

    def now(self) -> datetime:
        """Return the date and time, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return the seconds since an arbitrary start; never decreases."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds; at once for zero or less."""
        ...


class WallClock:
    """The system time."""

    def now(self) -> datetime:
        """Return the date and time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the seconds since an arbitrary start; never decreases."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds; at once for zero or less."""
        await asyncio.sleep(max(0.0, seconds))


class LoopClock:
    """The time of the running event loop as a date; on a `VirtualLoop`, virtual time."""

    def __init__(self, start: datetime = START) -> None:
        self._time = asyncio.get_running_loop().time
        self._origin = self._time()
        self._start = start

    def now(self) -> datetime:
        """Return the date and time, in UTC."""
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Return the seconds since this clock was created."""
        return self._time() - self._origin

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds; at once for zero or less."""
        await asyncio.sleep(max(0.0, seconds))
