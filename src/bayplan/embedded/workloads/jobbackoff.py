"""How long a Job waits before it replaces pods that failed: 10s, 20s, 40s, … ten minutes."""

from __future__ import annotations

from bayplan.base.pacing import doubled
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.workloads.jobtally import Tally

FIRST_SECONDS = 10.0
MOST_SECONDS = 600.0


class Backoff:
    """Failures since the last success, by job; a new process begins anew."""

    def __init__(self) -> None:
        self._failures: dict[Key, tuple[int, float]] = {}

    def note(self, key: Key, ended: Tally, now: float) -> None:
        """Pods of a job have ended."""
        if ended.newly_succeeded:
            self.forget(key)
        if ended.newly_failed:
            count = self._failures.get(key, (0, 0.0))[0] + ended.newly_failed
            self._failures[key] = (count, now)

    def left(self, key: Key, now: float) -> float:
        """Seconds until the job may make pods again."""
        count, last = self._failures.get(key, (0, 0.0))
        if not count:
            return 0.0
        pause = doubled(FIRST_SECONDS, MOST_SECONDS, count - 1)
        return max(0.0, last + pause - now)

    def forget(self, key: Key) -> None:
        """The job has ended, is gone, or one of its pods has succeeded."""
        self._failures.pop(key, None)
