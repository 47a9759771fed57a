"""Which failed requests may be sent again, and after how long: a decision, without any I/O.

Sending again is safe where doing the thing twice is the same as doing it once, or where it was
certainly not done:

- the connection was never made, or the server said "not now" (429, 503) before acting: any request;
- the connection broke, time ran out or the server faltered half-way: only requests that read, and
  writes that name the version they expect (the second finds a conflict, and never does it twice).

A server's Retry-After is honoured as it stands; one longer than we are willing to wait is passed on
to the caller instead. Without one the waits double, each with up to half of itself added at random
so that a crowd of clients does not come back together.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from bayplan.client.errors import (
    ApiError,
    ClientError,
    DisconnectedError,
    ServerFaultError,
    TimedOutError,
    TooManyRequestsError,
    UnavailableError,
    UnreachableError,
)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and how patiently."""

    attempts: int = 6
    first_wait: float = 0.2
    longest_wait: float = 30.0

    def wait_before_retry(
        self, error: ClientError, *, repeatable: bool, attempt: int, rng: Random
    ) -> float | None:
        """Seconds to wait before sending again after failed attempt number `attempt`, or None."""
        if attempt >= self.attempts or not may_repeat(error, repeatable=repeatable):
            return None
        if isinstance(error, ApiError) and error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.longest_wait else None
        backoff = self.first_wait * 2.0 ** (attempt - 1)
        return min(self.longest_wait, backoff * (1 + rng.random() / 2))


def may_repeat(error: ClientError, *, repeatable: bool) -> bool:
    """Whether the request behind that failure may be sent again."""
    if isinstance(error, UnreachableError | TooManyRequestsError):
        return True
    if isinstance(error, UnavailableError):
        return repeatable or error.retry_after is not None
    return repeatable and isinstance(error, DisconnectedError | TimedOutError | ServerFaultError)


@dataclass(slots=True)
class Backoff:
    """Waits that double while things keep failing, and start over when they go well."""

    rng: Random
    first: float = 0.8
    longest: float = 30.0
    failures: int = 0

    def next_wait(self) -> float:
        """Seconds to wait now: the doubled base, and up to as much again at random."""
        base = min(self.longest, self.first * 2.0 ** min(self.failures, 32))
        self.failures += 1
        return min(self.longest, base * (1 + self.rng.random()))

    def reset(self) -> None:
        """Things go well again."""
        self.failures = 0
