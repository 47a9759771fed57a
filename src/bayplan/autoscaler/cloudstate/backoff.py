"""Groups that rest after a failure: longer each time, and sound again after a long while.

A failure while a group rests already lets it rest as long again, but no longer than that: several
purchases that fail together are one failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from bayplan.autoscaler.options import ReadinessOptions


@dataclass(frozen=True, slots=True)
class BackoffStatus:
    """How long a group rests, and why."""

    until: datetime
    seconds: float
    failed: datetime
    code: str
    message: str


class Backoff:
    """Which groups rest."""

    def __init__(self, options: ReadinessOptions) -> None:
        self._options = options
        self._rests: dict[str, BackoffStatus] = {}

    def fail(self, group: str, now: datetime, code: str, message: str) -> BackoffStatus:
        """A group failed; returns how long it rests now."""
        first = self._options.initial_node_group_backoff_duration
        known = self._current(group, now)
        seconds = first if known is None else known.seconds
        if known is not None and known.until <= now:
            seconds = min(2 * seconds, self._options.max_node_group_backoff_duration)
        rest = BackoffStatus(now + timedelta(seconds=seconds), seconds, now, code, message)
        known_still = (name for name in self._rests if self._current(name, now) is not None)
        self._rests = {name: self._rests[name] for name in known_still} | {group: rest}
        return rest

    def succeed(self, group: str) -> None:
        """A group's nodes came."""
        self._rests.pop(group, None)

    def resting(self, group: str, now: datetime) -> BackoffStatus | None:
        """The rest that a group is having."""
        known = self._current(group, now)
        return known if known is not None and known.until > now else None

    def _current(self, group: str, now: datetime) -> BackoffStatus | None:
        known = self._rests.get(group)
        if known is None:
            return None
        sound = known.failed + timedelta(seconds=self._options.node_group_backoff_reset_timeout)
        return known if now < max(sound, known.until) else None
