"""A clock for tests over real sockets, which stands still until it is moved by hand.

It sees only who sleeps on it:

- `advance(seconds)` moves it, waking every sleeper on the way at its own moment, in the order of
  their due times and, for equal ones, in the order in which they fell asleep. After each it lets
  the event loop run for a few turns, so that what the sleeper starts can itself fall asleep before
  the clock moves on.
- `run(work)` runs a coroutine to its end, jumping to the next sleeper whenever nothing else is
  going on. It sees tasks, not sockets: work that waits for a real network may find the clock
  further on than it expected, so such tests call `until_sleeping()` and `advance()` instead.

Tests that need nothing from outside of their process run on a `VirtualLoop` instead.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import TypeVar

import pytest

from bayplan.base.clock import START

T = TypeVar("T")
SETTLING_TURNS = 64
"""Turns of the event loop that a woken task gets before virtual time moves on."""


class VirtualClock:
    """A clock for tests with real sockets: it stands still until it is moved."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._naps = 0
        self._fell_asleep = asyncio.Event()

    def now(self) -> datetime:
        """The date and time, in UTC."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Seconds since this clock's start."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been moved that far; at once if there is nothing to wait for."""
        if seconds <= 0:
            return await asyncio.sleep(0)
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._naps += 1
        heapq.heappush(self._sleepers, (self._elapsed + seconds, self._naps, woken))
        self._fell_asleep.set()
        return await woken

    @property
    def sleeping(self) -> int:
        """How many tasks wait for this clock."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    async def until_sleeping(self, count: int = 1) -> None:
        """Wait, in real time, until that many tasks wait for this clock."""
        while self.sleeping < count:
            self._fell_asleep.clear()
            await self._fell_asleep.wait()

    async def advance(self, seconds: float) -> None:
        """Move the clock on, waking everyone whose time comes on the way."""
        target = self._elapsed + seconds
        await _settle()
        while (due := self.next_due()) is not None and due <= target:
            await self._wake_next()
        self._elapsed = max(self._elapsed, target)

    async def jump(self) -> bool:
        """Move to the next sleeper and wake it; False if nobody sleeps."""
        if self.next_due() is None:
            return False
        await self._wake_next()
        return True

    async def run(self, work: Coroutine[object, object, T]) -> T:
        """Run that to its end, jumping to the next sleeper whenever all are idle."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await _settle()
                if not task.done() and not await self.jump():
                    await self._until_asleep_or(task)
        finally:
            task.cancel()
        return await task

    def skip(self, seconds: float) -> None:
        """Move on at once; for whoever knows that nobody wants to be woken before then."""
        self._elapsed += max(0.0, seconds)

    def next_due(self) -> float | None:
        """When the next sleeper wants to be woken, in seconds since the start."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)  # it was cancelled while asleep
        return self._sleepers[0][0] if self._sleepers else None

    async def _wake_next(self) -> None:
        due, _, woken = heapq.heappop(self._sleepers)
        self._elapsed = max(self._elapsed, due)
        woken.set_result(None)
        await _settle()

    async def _until_asleep_or(self, task: asyncio.Task[T]) -> None:
        self._fell_asleep.clear()
        asleep = asyncio.ensure_future(self._fell_asleep.wait())
        await asyncio.wait({task, asleep}, return_when=asyncio.FIRST_COMPLETED)
        asleep.cancel()


async def _settle() -> None:
    for _ in range(SETTLING_TURNS):
        await asyncio.sleep(0)


def in_virtual_time(request: pytest.FixtureRequest) -> bool:
    """Whether this run of a test that is marked `virtual` and `wall` is the one in virtual time."""
    return "virtual" in request.node.callspec.id.split("-")
