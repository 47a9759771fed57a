"""How time goes by between decisions: as on the wall, or as fast as the machine can."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime
from typing import Protocol

from bayplan.kube.clock import Clock, VirtualClock

_BREATH_SECONDS = 0.002
"""How long decisions may keep others in the same process waiting."""


class Pace(Protocol):
    """The engine's time."""

    def now(self) -> float:
        """Seconds since the pace began."""
        ...

    def date(self) -> datetime:
        """The date and time, in UTC."""
        ...

    def wake(self) -> None:
        """End a wait: there is something to decide."""
        ...

    async def wait(self, until: float | None) -> None:
        """Go to a moment, or until woken."""
        ...

    async def breathe(self) -> None:
        """Let others in the process work, if it is their turn."""
        ...


class WallPace:
    """Waits for the clock that everybody has."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start = clock.monotonic()
        self._news = asyncio.Event()
        self._breath = 0.0

    def now(self) -> float:
        """Seconds since the pace began."""
        return self._clock.monotonic() - self._start

    def date(self) -> datetime:
        """The date and time, in UTC."""
        return self._clock.now()

    def wake(self) -> None:
        """End a wait."""
        self._news.set()

    async def wait(self, until: float | None) -> None:
        """Sleep until a moment, or until woken."""
        seconds = None if until is None else max(0.0, until - self.now())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), seconds)
        self._news.clear()

    async def breathe(self) -> None:
        """Yield to the event loop every few milliseconds."""
        if self.now() - self._breath > _BREATH_SECONDS:
            await asyncio.sleep(0)
            self._breath = self.now()


class VirtualPace:
    """Jumps to the next moment; whoever sleeps on the same clock is woken on the way.

    Other tasks of the process that wait for changes rather than for the clock, such as a scheduler
    that is tried in virtual time, need turns of the event loop: `turns` after every decision.
    """

    def __init__(self, clock: VirtualClock, turns: int = 0) -> None:
        self._clock = clock
        self._turns = turns

    def now(self) -> float:
        """Seconds since the clock began."""
        return self._clock.monotonic()

    def date(self) -> datetime:
        """The date and time, in UTC."""
        return self._clock.now()

    def wake(self) -> None:
        """Nothing waits here."""

    async def wait(self, until: float | None) -> None:
        """Jump; a sleeper that is due before is woken first, since it may have news."""
        due = self._clock.next_due()
        if due is not None and (until is None or due <= until):
            await self._clock.jump()
        elif until is not None:
            self._clock.skip(until - self.now())
        else:
            raise RuntimeError("nothing will ever happen again in this virtual time")

    async def breathe(self) -> None:
        """Let tasks that wait for changes work, if there are any."""
        for _ in range(self._turns):
            await asyncio.sleep(0)
