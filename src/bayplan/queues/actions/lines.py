"""The groups that wait in a cycle, queue by queue, and whose turn it is among queues.

Queues of higher priority go first. Among equals the tree is walked down from the root, each time to
the child with the lowest share; where shares are equal, the queue that would be next below the one
child is compared with that below the other, by age and name. After each turn only the queues on the
path of the one that had it are sorted in anew, so that a turn costs the same among five queues as
among five thousand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush, heapreplace

from bayplan.queues.accounts import Accounts
from bayplan.queues.groups import Group
from bayplan.queues.orders import GroupKey, QueueKey, group_key, queue_key
from bayplan.queues.problems import NoRoom, Why
from bayplan.queues.session import Session

_TOP = ""
"""Stands above all queues, so that flat ones have a parent too."""
Heap = list[tuple[QueueKey, str]]


class Turns:
    """Queues that have work waiting, the next one first."""

    def __init__(self, accounts: Accounts, queues: Iterable[str]) -> None:
        self._accounts = accounts
        by_priority: defaultdict[int, list[str]] = defaultdict(list)
        for name in queues:
            by_priority[accounts.tree.nodes[name].queue.spec.priority].append(name)
        self._levels = sorted(by_priority.items())
        self._heaps: dict[str, Heap] = {}

    def first(self) -> str | None:
        """The queue whose turn it is; None if none is left."""
        while not self._heaps.get(_TOP):
            if not self._levels:
                return None
            self._open(self._levels.pop()[1])
        return self._path()[-1]

    def keep(self) -> None:
        """End the turn of the first queue; it has more work."""
        path = self._path()
        for parent, name in reversed(list(zip([_TOP, *path], path, strict=False))):
            heapreplace(self._heaps[parent], (self._key(name), name))

    def drop(self) -> None:
        """End the turn of the first queue; it has no more work."""
        path = self._path()
        for parent, name in reversed(list(zip([_TOP, *path], path, strict=False))):
            heap = self._heaps[parent]
            if self._heaps.get(name):
                heapreplace(heap, (self._key(name), name))
            else:
                heappop(heap)

    def _path(self) -> list[str]:
        """The names from the top down to the first queue."""
        path: list[str] = []
        heap = self._heaps[_TOP]
        while heap:
            path.append(heap[0][1])
            heap = self._heaps.get(path[-1], [])
        return path

    def _open(self, queues: Iterable[str]) -> None:
        """Sort the queues of one priority in."""
        below: defaultdict[str, set[str]] = defaultdict(set)
        for queue in queues:
            path = self._accounts.tree.path(queue)
            for name, parent in zip(path, [*path[1:], _TOP], strict=True):
                below[parent].add(name)
        self._heaps = {}
        self._sort(_TOP, below)

    def _sort(self, parent: str, below: dict[str, set[str]]) -> None:
        for name in below[parent]:
            if name in below:
                self._sort(name, below)
        heap = self._heaps[parent] = [(self._key(name), name) for name in below[parent]]
        heapify(heap)

    def _key(self, name: str) -> QueueKey:
        """A queue's place among its siblings: by its own share, and by the next queue below it."""
        share, idle, created, own = queue_key(self._accounts, name)
        below = self._heaps.get(name)
        return (share, idle, *below[0][0][2:]) if below else (share, idle, created, own)


class Lines:
    """Groups by queue, each in its order; queues in turns. Only leaves have lines."""

    def __init__(self, session: Session, groups: Iterable[Group]) -> None:
        self._session = session
        self._groups: dict[str, Group] = {}
        self._heaps: dict[str, list[GroupKey]] = {}
        for group in groups:
            if session.ledger.tree.nodes[group.queue].is_leaf:
                self.push(group)
            elif (refusal := session.ledger.tree.refusal(group.queue)) is not None:
                session.wait(group, refusal)
        self.turns = Turns(session.accounts, self._heaps)

    def push(self, group: Group) -> None:
        """Put a group into its queue's line, where it now belongs."""
        self._groups[group.key] = group
        heappush(self._heaps.setdefault(group.queue, []), group_key(group))

    def pop(self, queue: str) -> Group | None:
        """The next group of a queue; None if none is left."""
        heap = self._heaps[queue]
        return self._groups[heappop(heap)[-1]] if heap else None

    def next(self) -> Group | None:
        """The next group of the queue whose turn it is; call `turns.keep` when it is done with."""
        while (queue := self.turns.first()) is not None:
            group = self.pop(queue)
            if group is not None:
                return group
            self.turns.drop()
        return None

    def stop_behind(self, group: Group) -> None:
        """Let nobody overtake a group that got nothing, if its queue is strict; who has its quota
        and waits for nodes stands in nobody's way.
        """
        if self._session.rules.dequeue_strategy_ignored or not self._is_strict(group.queue):
            return
        waits = self._session.plan.waiting.get(group.key)
        if waits is not None and waits.why is Why.NO_NODE:
            return
        text = f"group {group.key} comes first in queue {group.queue}"
        while (later := self.pop(group.queue)) is not None:
            self._session.wait(later, NoRoom(Why.EARLIER_GROUP, group.queue, text))

    def _is_strict(self, queue: str) -> bool:
        return self._session.ledger.tree.nodes[queue].queue.spec.dequeue_strategy == "fifo"
