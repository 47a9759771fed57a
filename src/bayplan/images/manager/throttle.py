"""How fast pulls may begin (the rate of a token bucket) and how many may run at once (a line).

The rate never makes anybody wait: a pull for which there is no token fails with
"pull QPS exceeded" and is tried again after its back-off, as the kubelet does it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

DEFAULT_QPS = 5.0
DEFAULT_BURST = 10


class PullLine:
    """Serial pulls by default, first come first served; parallel with or without a limit."""

    def __init__(self, *, serialize: bool = True, max_parallel: int | None = None) -> None:
        if max_parallel is not None and max_parallel < 1:
            raise ValueError(f"max parallel image pulls is {max_parallel}, must be at least 1")
        if serialize and max_parallel not in {None, 1}:
            raise ValueError("serialized image pulls cannot have a limit other than 1")
        limit = 1 if serialize else max_parallel
        self._slots = None if limit is None else asyncio.Semaphore(limit)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for one's turn, and hold it."""
        if self._slots is None:
            yield
            return
        async with self._slots:
            yield
