"""Not too fast and not too often: token buckets, waits that double, and when to try again.

Whoever asks a server, pulls an image or acts on a failure again keeps to one of these. They decide
and never wait: the time, and the chance that keeps a crowd from coming back together, are handed
in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

Chance = Callable[[], float]
"""Gives a number from 0 up to 1 at random."""

_MOST_DOUBLED = 64
"""Doublings after which every wait that makes sense is at its longest; floats end at 1024."""


def doubled(first: float, longest: float, times: int) -> float:
    """A wait that has doubled so many times, and is never longer than the longest."""
    return min(longest, first * 2.0 ** min(times, _MOST_DOUBLED))


@dataclass(slots=True)
class TokenBucket:
    """`qps` tokens a second, at most `burst` saved up; a `qps` of 0 is no limit."""

    qps: float
    burst: int
    _tokens: float = field(init=False)
    _filled_at: float | None = None

    def __post_init__(self) -> None:
        if self.qps < 0 or self.burst < 0:
            raise ValueError(f"QPS {self.qps} and burst {self.burst} must not be negative")
        self._tokens = float(self.burst)

    def reserve(self, now: float) -> float:
        """Take a token, possibly a future one; the seconds to wait until it is there."""
        if self.qps == 0:
            return 0.0
        self._fill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self.qps)

    def take(self, now: float) -> bool:
        """Take a token only if there is one now."""
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
    """How often to try, and how patiently."""

    attempts: int = 6
    first_wait: float = 0.2
    longest_wait: float = 30.0

    def wait(self, failures: int, retry_after: float | None, chance: Chance) -> float | None:
        """Seconds to wait after so many failures in a row; None is to give up.

        A server that says how long to wait is heeded, unless that is longer than we are willing to.
        Else the waits double, each with up to half of itself added by chance.
        """
        if failures >= self.attempts:
            return None
        if retry_after is not None:
            return retry_after if retry_after <= self.longest_wait else None
        wait = doubled(self.first_wait, self.longest_wait, failures - 1)
        return min(self.longest_wait, wait * (1 + chance() / 2))


@dataclass(slots=True)
class Backoff:
    """Waits that double while things keep failing, and start over when they go well."""

    rng: Random
    first: float = 0.8
    longest: float = 30.0
    failures: int = 0

    def next_wait(self) -> float:
        """Seconds to wait now: the doubled base, and up to as much again at random."""
        base = doubled(self.first, self.longest, self.failures)
        self.failures += 1
        return min(self.longest, base * (1 + self.rng.random()))

    def reset(self) -> None:
        """Things go well again."""
        self.failures = 0
