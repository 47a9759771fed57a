"""Moments as the API writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def timestamp(moment: datetime) -> str:
    """A moment as `metav1.Time` writes it: seconds, in UTC, with a Z."""
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return _written(utc.replace(microsecond=0))


def micro_time(moment: datetime) -> str:
    """A moment as `MicroTime`: in UTC, to the microsecond."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def read_time(text: str | None) -> datetime | None:
    """The moment that a timestamp says; None if it says none that can be read."""
    try:
        moment = datetime.fromisoformat(text or "")
        return moment.astimezone(UTC) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


@lru_cache(64)
def _written(second: datetime) -> str:
    return second.strftime("%Y-%m-%dT%H:%M:%SZ")
