"""Waiting longer after every failure: 10 s, 20 s, 40 s … up to 5 min, for each (pod, image).

A key that has been quiet for twice the longest wait starts over. Time is handed in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bayplan.base.pacing import doubled

INITIAL_SECONDS = 10.0
LONGEST_SECONDS = 300.0


@dataclass(slots=True)
class _Entry:
    failures: int
    failed_at: float
    cause: str


@dataclass(slots=True)
class KeyedBackoff:
    """Who has to wait, until when, and because of what."""

    initial: float = INITIAL_SECONDS
    longest: float = LONGEST_SECONDS
    _entries: dict[str, _Entry] = field(default_factory=dict)

    def failed(self, key: str, now: float, cause: str) -> None:
        """Note a failure; the key's wait begins now."""
        entry = self._live(key, now)
        failures = 1 if entry is None else entry.failures + 1
        self._entries[key] = _Entry(failures, now, cause)

    def remaining(self, key: str, now: float) -> float:
        """How many seconds the key has yet to wait."""
        entry = self._live(key, now)
        if entry is None:
            return 0.0
        wait = doubled(self.initial, self.longest, entry.failures - 1)
        return max(0.0, wait - (now - entry.failed_at))

    def cause(self, key: str) -> str:
        """Why the key waits."""
        entry = self._entries.get(key)
        return entry.cause if entry else ""

    def forget_expired(self, now: float) -> None:
        """Drop the keys that would start over anyway, so that the table cannot grow for ever."""
        for key in [key for key in self._entries if self._live(key, now) is None]:
            del self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)

    def _live(self, key: str, now: float) -> _Entry | None:
        entry = self._entries.get(key)
        if entry is None or now - entry.failed_at > 2 * self.longest:
            return None
        return entry
