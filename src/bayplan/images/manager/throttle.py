"""How fast pulls may begin (a token bucket) and how many may run at once (a line).

The bucket never makes anybody wait: a pull for which there is no token fails with
"pull QPS exceeded" and is tried again after its back-off, as the kubelet does it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

DEFAULT_QPS = 5.0
DEFAULT_BURST = 10


@dataclass(slots=True)
class TokenBucket:
    """`qps` tokens a second, at most `burst` saved up; a `qps` of 0 is no limit."""

    qps: float = DEFAULT_QPS
    burst: int = DEFAULT_BURST
    _tokens: float = field(init=False)
    _filled_at: float | None = None

    def __post_init__(self) -> None:
        if self.qps < 0 or self.burst < 0:
            raise ValueError(f"pull QPS {self.qps} and burst {self.burst} must not be negative")
        self._tokens = float(self.burst)

    def take(self, now: float) -> bool:
        """Take a token, if there is one."""
        if self.qps == 0:
            return True
        self._fill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _fill(self, now: float) -> None:
        elapsed = 0.0 if self._filled_at is None else max(0.0, now - self._filled_at)
        self._tokens = min(float(self.burst), self._tokens + elapsed * self.qps)
        self._filled_at = now


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
