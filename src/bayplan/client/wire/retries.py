"""Which failed requests may be sent again, and after how long: a decision, without any I/O.

Sending again is safe where doing the thing twice is the same as doing it once, or where it was
certainly not done:

- the connection was never made, or the server said "not now" (429, 503) before acting: any request;
- the connection broke, time ran out or the server faltered half-way: only requests that read, and
  writes that name the version they expect (the second finds a conflict, and never does it twice).

How long to wait says `bayplan.base.pacing`: a server's Retry-After is honoured as it stands, and
one longer than we are willing to wait is passed on to the caller instead.
"""

from __future__ import annotations

from bayplan.base.pacing import Chance, RetryPolicy
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


def wait_before_retry(
    policy: RetryPolicy, error: ClientError, *, repeatable: bool, attempt: int, chance: Chance
) -> float | None:
    """Seconds to wait before sending again after failed attempt number `attempt`, or None."""
    if not may_repeat(error, repeatable=repeatable):
        return None
    retry_after = error.retry_after if isinstance(error, ApiError) else None
    return policy.wait(attempt, retry_after, chance)


def may_repeat(error: ClientError, *, repeatable: bool) -> bool:
    """Whether the request behind that failure may be sent again."""
    if isinstance(error, UnreachableError | TooManyRequestsError):
        return True
    if isinstance(error, UnavailableError):
        return repeatable or error.retry_after is not None
    return repeatable and isinstance(error, DisconnectedError | TimedOutError | ServerFaultError)
