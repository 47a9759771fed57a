"""Rate limits and retries: token buckets, exponential backoff, retry policies.

They decide and never wait: the time and the randomness (jitter, so that clients do not retry all at
the same time) are passed in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

RandomFraction = Callable[[], float]
"""Returns a random number from 0 up to 1."""

_MOST_DOUBLED = 64
"""Doublings after which every sensible delay is at its maximum; floats overflow at 1024."""


def exponential_delay(first: float, longest: float, times: int) -> float:
    """Return the first delay doubled so many times, at most the longest."""
    return min(longest, first * 2.0 ** min(times, _MOST_DOUBLED))


@dataclass(slots=True)
class TokenBucket:
    """A bucket that gains `qps` tokens a second, up to `burst`; a `qps` of 0 is no limit."""

    qps: float
    burst: int
    _tokens: float = field(init=False)
    _filled_at: float | None = None

    def __post_init__(self) -> None:
        if self.qps < 0 or self.burst < 0:
            raise ValueError(f"QPS {self.qps} and burst {self.burst} must not be negative")
        self._tokens = float(self.burst)

    def reserve(self, now: float) -> float:
        """Take a token, possibly a future one; return the seconds until it is available."""
        if self.qps == 0:
            return 0.0
        self._fill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self.qps)

    def take(self, now: float) -> bool:
        """Take a token if one is available now; return whether it was."""
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


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to retry a request, and how long to wait in between."""

    attempts: int = 6
    first_wait: float = 0.2
    longest_wait: float = 30.0

    def wait(
        self, failures: int, retry_after: float | None, jitter: RandomFraction
    ) -> float | None:
        """Return the seconds to wait after so many failures in a row; None is to give up.

        A server's Retry-After is honoured, unless it is longer than `longest_wait`. Otherwise the
        delays double, each with up to half of itself added as jitter.
        """
        if failures >= self.attempts:
            return None
        if retry_after is not None:
            return retry_after if retry_after <= self.longest_wait else None
        wait = exponential_delay(self.first_wait, self.longest_wait, failures - 1)
        return min(self.longest_wait, wait * (1 + jitter() / 2))


@dataclass(slots=True)
class ExponentialBackoff:
    """Delays that double with every failure and start over after a success."""

    rng: Random
    first: float = 0.8
    longest: float = 30.0
    failures: int = 0

    def next_wait(self) -> float:
        """Return the seconds to wait: the doubled base, plus up to as much again as jitter."""
        base = exponential_delay(self.first, self.longest, self.failures)
        self.failures += 1
        return min(self.longest, base * (1 + self.rng.random()))

    def reset(self) -> None:
        """Start over after a success."""
        self.failures = 0
