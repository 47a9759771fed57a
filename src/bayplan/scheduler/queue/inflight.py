"""The events during the scheduling cycles of pods, so that no pod misses one.

A pod is refused by the cluster as it was when it was looked at. An event that comes between that
look and the pod's return may be the very one that helps it, and would not come again. So events are
kept for as long as a pod is in flight that left before them, and each pod, when it comes back
refused, is asked about those since it left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Generic, TypeVar

E = TypeVar("E")


class InFlight(Generic[E]):
    """The events in order, and the position of each pod in flight."""

    def __init__(self) -> None:
        self._events: deque[E] = deque()
        self._dropped = 0
        self._left_at: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._left_at)

    def __contains__(self, uid: str) -> bool:
        return uid in self._left_at

    @property
    def kept(self) -> int:
        """The number of events that are kept."""
        return len(self._events)

    def leave(self, uid: str) -> None:
        """Start a scheduling cycle of a pod."""
        self._left_at[uid] = self._dropped + len(self._events)

    def note(self, event: E) -> None:
        """Add an event."""
        if self._left_at:
            self._events.append(event)

    def since(self, uid: str) -> Iterator[E]:
        """Return the events since the start of a pod's scheduling cycle."""
        left_at = self._left_at.get(uid)
        return iter(()) if left_at is None else islice(self._events, left_at - self._dropped, None)

    def back(self, uid: str) -> None:
        """End the scheduling cycle of a pod, and drop events that no other pod needs."""
        left_at = self._left_at.pop(uid, None)
        if not self._left_at:
            self._dropped += len(self._events)
            self._events.clear()
        elif left_at == self._dropped:
            # Pods leave in order, so the first one still out is the one that left earliest.
            keep = next(iter(self._left_at.values()))
            while self._dropped < keep:
                self._events.popleft()
                self._dropped += 1
