"""A request budget, so that Bayplan never is the client that brings an API server down.

Two bounds at once: a token bucket (so many requests a second, so many in a burst) and a number of
requests in flight. Both are first come, first served. A watch takes a token to begin, and its place
in flight only until the server starts to answer, because it is meant to last.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bayplan.base.clock import Clock
from bayplan.base.pacing import TokenBucket


class Budget:
    """How much one client may ask of a server."""

    def __init__(
        self, clock: Clock, *, qps: float = 200.0, burst: int = 400, in_flight: int = 64
    ) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"a budget needs qps > 0 and burst >= 1, not {qps} and {burst}")
        self._bucket = TokenBucket(qps, burst)
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
        if (wait := self._bucket.reserve(self._clock.monotonic())) > 0:
            await self._clock.sleep(wait)
        await self._places.acquire()

    def leave(self) -> None:
        """Let the next one in."""
        self._places.release()
