"""The order of queues: of those that have work, the one whose turn it is.

Queues of higher priority go first. Among equals the tree is walked down from the root, each time to
the child with the lowest share; where shares are equal, the queue that would be next below the one
child is compared with that below the other, by age and name.

Every inner queue has a heap of its children that have work. When a share has changed, only the
queue and those above it are sorted in anew, so that a turn costs the same among five queues as
among five thousand.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush

from bayplan.queues.ledger import Ledger
from bayplan.queues.orders import QueueKey, queue_key

_TOP = ""
"""The parent of queues that have none."""
KeyOf = Callable[[str], QueueKey]


class QueueHeap:
    """Queues that have work, the next one first."""

    def __init__(self, ledger: Ledger, key_of: KeyOf | None = None) -> None:
        self._ledger = ledger
        self._key_of = key_of or (lambda name: queue_key(ledger.accounts, name))
        self._levels: dict[int, _Level] = {}
        """By priority the queues that have work."""
        self._priorities: dict[str, int] = {}
        """By queue the priority that it is sorted in by."""
        self._log = ledger.accounts.share_log
        self._seen = len(self._log)

    def __contains__(self, queue: str) -> bool:
        return queue in self._priorities

    def add(self, queue: str) -> None:
        """Note that a queue has work."""
        node = self._ledger.tree.get(queue)
        priority = 0 if node is None else node.queue.spec.priority
        if self._priorities.get(queue, priority) != priority:
            self.discard(queue)
        self._priorities[queue] = priority
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = _Level(self._path, self._key_of)
        level.add(queue)

    def discard(self, queue: str) -> None:
        """Note that a queue has no work."""
        priority = self._priorities.pop(queue, None)
        if priority is not None:
            self._levels[priority].discard(queue)
            if not self._levels[priority].leaves:
                del self._levels[priority]

    def first(self) -> str | None:
        """Return the queue whose turn it is; None if none has work."""
        self._update()
        return self._levels[max(self._levels)].first() if self._levels else None

    def _path(self, queue: str) -> tuple[str, ...]:
        return (*(self._ledger.tree.path(queue) or (queue,)), _TOP)

    def _update(self) -> None:
        """Sort in anew the queues whose shares have changed."""
        log = self._ledger.accounts.share_log
        if log is not self._log:
            queues, self._priorities, self._levels = list(self._priorities), {}, {}
            for queue in queues:
                self.add(queue)
        elif self._seen < len(log):
            changed = set(log[self._seen :])
            for level in self._levels.values():
                level.sort_in(changed)
        self._log, self._seen = log, len(log)


class _Level:
    """The queues of one priority that have work, and those above them."""

    def __init__(self, path_of: Callable[[str], tuple[str, ...]], key_of: KeyOf) -> None:
        self.leaves: set[str] = set()
        self._path_of = path_of
        self._key_of = key_of
        self._keys: dict[str, QueueKey] = {}
        """By queue the key that it is sorted in by; what a heap has else is out of date."""
        self._heaps: dict[str, list[tuple[QueueKey, str]]] = {}
        """By parent its children that have work, or that have queues below them that do."""

    def add(self, queue: str) -> None:
        """Sort a queue in."""
        self.leaves.add(queue)
        self._sort_in_path(self._path_of(queue))

    def discard(self, queue: str) -> None:
        """Take a queue out, and those above it that have no other below them."""
        self.leaves.discard(queue)
        self._sort_in_path(self._path_of(queue))

    def sort_in(self, changed: Iterable[str]) -> None:
        """Sort queues in anew, and those above them."""
        paths = (self._path_of(name) for name in changed if name in self._keys)
        parents = {name: parent for path in paths for name, parent in itertools.pairwise(path)}
        for name in sorted(parents, key=lambda name: -len(self._path_of(name))):
            self._sort_in_one(name, parents[name])

    def first(self) -> str | None:
        """Return the first queue; None if there is none."""
        head = self._head(_TOP)
        while head is not None and head[1] not in self.leaves:
            head = self._head(head[1])
        return head[1] if head is not None else None

    def _sort_in_path(self, path: tuple[str, ...]) -> None:
        for name, parent in itertools.pairwise(path):
            self._sort_in_one(name, parent)

    def _sort_in_one(self, name: str, parent: str) -> None:
        below = self._head(name)
        if below is None and name not in self.leaves:
            self._keys.pop(name, None)
            self._heaps.pop(name, None)
            return
        key = self._key_of(name)
        if below is not None and name not in self.leaves:
            # Among children of equal share the queue that would be next below them decides.
            key = (*key[:2], *below[0][2:])
        if self._keys.get(name) != key:
            self._keys[name] = key
            heap = self._heaps.setdefault(parent, [])
            heappush(heap, (key, name))
            self._shorten(heap)

    def _head(self, parent: str) -> tuple[QueueKey, str] | None:
        heap = self._heaps.get(parent)
        while heap:
            key, name = heap[0]
            if self._keys.get(name) == key:
                return heap[0]
            heappop(heap)
        return None

    def _shorten(self, heap: list[tuple[QueueKey, str]]) -> None:
        """Drop what is out of date, once it is most of a heap."""
        if len(heap) > 64 + 2 * len(self._keys):
            heap[:] = {one for one in heap if self._keys.get(one[1]) == one[0]}
            heapify(heap)
