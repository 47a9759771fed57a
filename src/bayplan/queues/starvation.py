"""The starvation guard: smaller groups overtake a larger one, but not for ever.

Where many groups want quota, it comes free piece by piece, and small groups take each piece before
there is enough for a large one. So a group that has waited for longer than `PATIENCE` holds up all
others that could take the quota that it waits for, in the queue that lacks it and in all below that
one, until it has its quota or `HOLD_UP` has gone by. Then the others have their turns for
`PATIENCE` again. So a large group waits for at most `PATIENCE` before quota is kept for it, and
others are held up for no more than a third of the time.
"""

from __future__ import annotations

from collections.abc import Iterable

PATIENCE = 600.0
"""Seconds for which a group may be overtaken."""
HOLD_UP = 300.0
"""Seconds for which it then holds them up, at most."""


class StarvationGuard:
    """Since when groups wait, and which queues they hold up."""

    def __init__(self) -> None:
        self._patient_since: dict[str, float] = {}
        self._holds: dict[str, tuple[str, float]] = {}
        """By queue the group that holds the others up in it and below it, and until when."""

    def begin(self, key: str, now: float) -> None:
        """Note that a group waits."""
        self._patient_since.setdefault(key, now)

    def end(self, key: str) -> bool:
        """Note that a group waits no longer; returns whether it held others up."""
        self._patient_since.pop(key, None)
        return self._let_go(key)

    def refused(self, key: str, queue: str, now: float) -> None:
        """Note that a group was refused for lack of quota in a queue."""
        if queue not in self._holds and now - self._patient_since[key] >= PATIENCE:
            self._let_go(key)
            self._holds[queue] = (key, now + HOLD_UP)

    def holder(self, path: Iterable[str], now: float) -> str:
        """Return the group that holds up the queue of this path; empty if none does."""
        if not self._holds:
            return ""
        for queue in path:
            key, until = self._holds.get(queue, ("", now))
            if until > now:
                return key
        return ""

    def expire(self, now: float) -> bool:
        """End holds that are over; returns whether there were any."""
        over = [key for key, until in self._holds.values() if until <= now]
        for key in over:
            self._let_go(key)
            self._patient_since[key] = now
        return bool(over)

    def next_due(self) -> float | None:
        """Return when the next hold is over; None if there is none."""
        return min((until for _, until in self._holds.values()), default=None)

    def _let_go(self, key: str) -> bool:
        held = [queue for queue, (who, _) in self._holds.items() if who == key]
        for queue in held:
            del self._holds[queue]
        return bool(held)
