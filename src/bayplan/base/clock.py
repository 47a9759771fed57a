"""Time as something handed in: the wall's, or the event loop's.

Whatever waits, expires or backs off takes a `Clock` and never asks the machine for the time itself.
Live, that is the `WallClock`. In a simulation, and in tests that need nothing from outside of their
process, it is a `LoopClock` on a `VirtualLoop`, where waiting takes no time and idleness is exact.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

START = datetime(2026, 1, 1, tzinfo=UTC)
"""When a virtual clock starts unless told otherwise."""


class Clock(Protocol):
    """What time it is, and a way to wait."""

    def now(self) -> datetime:
        """The date and time, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds; at once if there are none."""
        ...


class WallClock:
    """The machine's own time."""

    def now(self) -> datetime:
        """The date and time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds; at once if there are none."""
        await asyncio.sleep(max(0.0, seconds))


class LoopClock:
    """The running event loop's time, as a date: on a `VirtualLoop`, virtual time."""

    def __init__(self, start: datetime = START) -> None:
        self._time = asyncio.get_running_loop().time
        self._origin = self._time()
        self._start = start

    def now(self) -> datetime:
        """The date and time, in UTC."""
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Seconds since this clock was made."""
        return self._time() - self._origin

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds; at once if there are none."""
        await asyncio.sleep(max(0.0, seconds))
