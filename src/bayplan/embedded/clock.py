"""Time as a value that is handed in: the machine's clock, or a virtual one in simulations."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol


class Clock(Protocol):
    """Tells what time it is."""

    def now(self) -> datetime:
        """The current moment, with its time zone."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """The current moment in UTC."""
        return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """A moment as `metav1.Time` writes it: seconds, in UTC, with a Z."""
    return _written(moment.astimezone(UTC).replace(microsecond=0))


@lru_cache(64)
def _written(second: datetime) -> str:
    return second.strftime("%Y-%m-%dT%H:%M:%SZ")
