"""Exponential backoff of node groups after failed scale-ups.

A failure during a backoff starts it again with the same duration: several scale-ups that fail
together are one failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from bayplan.autoscaler.options import ReadinessOptions


@dataclass(frozen=True, slots=True)
class BackoffStatus:
    """The end, duration and cause of a group's backoff."""

    until: datetime
    seconds: float
    failed: datetime
    code: str
    message: str


class NodeGroupBackoff:
    """The backoff of all node groups."""

    def __init__(self, options: ReadinessOptions) -> None:
        self._options = options
        self._statuses: dict[str, BackoffStatus] = {}

    def back_off(self, group: str, now: datetime, code: str, message: str) -> BackoffStatus:
        """Back a group off after a failure."""
        first = self._options.initial_node_group_backoff_duration
        known = self._current(group, now)
        seconds = first if known is None else known.seconds
        if known is not None and known.until <= now:
            seconds = min(2 * seconds, self._options.max_node_group_backoff_duration)
        status = BackoffStatus(now + timedelta(seconds=seconds), seconds, now, code, message)
        active = (name for name in self._statuses if self._current(name, now) is not None)
        self._statuses = {name: self._statuses[name] for name in active} | {group: status}
        return status

    def remove_backoff(self, group: str) -> None:
        """End the backoff of a group after a successful scale-up."""
        self._statuses.pop(group, None)

    def backoff_status(self, group: str, now: datetime) -> BackoffStatus | None:
        """The backoff of a group; None if it is not in backoff."""
        known = self._current(group, now)
        return known if known is not None and known.until > now else None

    def _current(self, group: str, now: datetime) -> BackoffStatus | None:
        known = self._statuses.get(group)
        if known is None:
            return None
        sound = known.failed + timedelta(seconds=self._options.node_group_backoff_reset_timeout)
        return known if now < max(sound, known.until) else None
