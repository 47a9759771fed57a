"""Timestamps in the formats of the API."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def timestamp(moment: datetime) -> str:
    """Format a time as `metav1.Time`: seconds, in UTC, with a Z."""
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return _format_second(utc.replace(microsecond=0))


def micro_time(moment: datetime) -> str:
    """Format a time as `MicroTime`: in UTC, to the microsecond."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def read_time(text: str | None) -> datetime | None:
    """Parse a timestamp; return None if it is missing or not valid."""
    try:
        moment = datetime.fromisoformat(text or "")
        return moment.astimezone(UTC) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


@lru_cache(64)
def _format_second(second: datetime) -> str:
    return second.strftime("%Y-%m-%dT%H:%M:%SZ")
