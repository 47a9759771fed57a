"""A heap whose members may leave from the middle: what has moved on is skipped when it comes up."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from bayplan.scheduler.queue.entry import QueuedPod, SubQueue

Item = tuple[Any, int, int, QueuedPod]
_SLACK = 64


class Heap:
    """The pods of one sub-queue, smallest key first."""

    def __init__(self, subqueue: SubQueue, key: Callable[[QueuedPod], Any]) -> None:
        self._subqueue = subqueue
        self._key = key
        self._items: list[Item] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, entry: QueuedPod) -> None:
        """Take an entry that has just been moved to this sub-queue."""
        self._size += 1
        heapq.heappush(self._items, (self._key(entry), entry.number, entry.stamp, entry))
        if len(self._items) > 2 * self._size + _SLACK:
            self._items = [item for item in self._items if self._is_here(item)]
            heapq.heapify(self._items)

    def left(self) -> None:
        """Note that an entry has left the heap."""
        self._size -= 1

    def first(self) -> QueuedPod | None:
        """Return the entry with the smallest key."""
        while self._items:
            if self._is_here(self._items[0]):
                return self._items[0][3]
            heapq.heappop(self._items)
        return None

    def _is_here(self, item: Item) -> bool:
        entry = item[3]
        return entry.subqueue is self._subqueue and entry.stamp == item[2]
