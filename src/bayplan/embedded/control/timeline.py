"""Who wants to be asked again, and when: one due time a key, in order of time and of asking."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Timeline(Generic[K]):
    """Keys by their due times."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._current: dict[K, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._current)

    def set(self, key: K, due: float) -> None:
        """Wake a key at that time, and at no other time that was set before."""
        self._count += 1
        self._current[key] = self._count
        heapq.heappush(self._heap, (due, self._count, key))

    def drop(self, key: K) -> None:
        """Do not wake a key."""
        self._current.pop(key, None)

    def next_due(self) -> float | None:
        """The earliest due time."""
        heap = self._heap
        while heap and self._current.get(heap[0][2]) != heap[0][1]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now: float) -> list[K]:
        """The keys whose time has come, in order; they are no longer set."""
        found: list[K] = []
        while (due := self.next_due()) is not None and due <= now:
            key = heapq.heappop(self._heap)[2]
            del self._current[key]
            found.append(key)
        return found
