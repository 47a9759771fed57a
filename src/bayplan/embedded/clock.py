"""Time as objects carry it. The clock itself is handed in: see `bayplan.kube.clock`."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from bayplan.kube.clock import Clock

__all__ = ["Clock", "timestamp"]


def timestamp(moment: datetime) -> str:
    """A moment as `metav1.Time` writes it: seconds, in UTC, with a Z."""
    return _written(moment.astimezone(UTC).replace(microsecond=0))


@lru_cache(64)
def _written(second: datetime) -> str:
    return second.strftime("%Y-%m-%dT%H:%M:%SZ")
