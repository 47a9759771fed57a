"""A request budget, so that Bayplan never is the client that brings an API server down.

Two bounds at once: a token bucket (so many requests a second, so many in a burst) and a number of
requests in flight. Both are first come, first served. A watch takes a token to begin, and its place
in flight only until the server starts to answer, because it is meant to last.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bayplan.kube.clock import Clock


class Bucket:
    """Tokens that drip in at a steady rate, up to a burst."""

    def __init__(self, qps: float, burst: int, clock: Clock) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"a budget needs qps > 0 and burst >= 1, not {qps} and {burst}")
        self._qps = qps
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._counted_at = clock.monotonic()

    def reserve(self) -> float:
        """Take a token, possibly a future one; the seconds to wait until it is there."""
        now = self._clock.monotonic()
        dripped = (now - self._counted_at) * self._qps
        self._tokens = min(float(self._burst), self._tokens + dripped) - 1
        self._counted_at = now
        return max(0.0, -self._tokens / self._qps)

    def try_take(self) -> bool:
        """Take a token only if there is one now."""
        if self.reserve() == 0.0:
            return True
        self._tokens += 1
        return False


class Budget:
    """How much one client may ask of a server."""

    def __init__(
        self, clock: Clock, *, qps: float = 200.0, burst: int = 400, in_flight: int = 64
    ) -> None:
        self._bucket = Bucket(qps, burst, clock)
        self._places = asyncio.Semaphore(in_flight)
        self._clock = clock

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a token and a place; the place is free again on leaving."""
        await self.enter()
        try:
            yield
        finally:
            self.leave()

    async def enter(self) -> None:
        """Wait for a token and a place, to be given back by `leave`."""
        if (wait := self._bucket.reserve()) > 0:
            await self._clock.sleep(wait)
        await self._places.acquire()

    def leave(self) -> None:
        """Let the next one in."""
        self._places.release()
