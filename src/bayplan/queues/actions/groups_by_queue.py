"""The groups that wait in a cycle, queue by queue, each in its order."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from bayplan.queues.groups import Group
from bayplan.queues.orders import GroupKey, group_key
from bayplan.queues.queue_heap import QueueHeap
from bayplan.queues.session import Session


class GroupsByQueue:
    """Groups by queue, each in its order; queues take turns. Only leaves have groups."""

    def __init__(self, session: Session, groups: Iterable[Group]) -> None:
        self._session = session
        self._groups: dict[str, Group] = {}
        self._heaps: dict[str, list[GroupKey]] = {}
        for group in groups:
            if session.ledger.tree.nodes[group.queue].is_leaf:
                self.push(group)
            elif (refusal := session.ledger.tree.refusal(group.queue)) is not None:
                session.wait(group, refusal)
        self.queues = QueueHeap(session.ledger)
        for queue in self._heaps:
            self.queues.add(queue)

    def push(self, group: Group) -> None:
        """Put a group into its queue, where it now belongs."""
        self._groups[group.key] = group
        heappush(self._heaps.setdefault(group.queue, []), group_key(group))

    def pop(self, queue: str) -> Group | None:
        """Remove and return the next group of a queue; None if there is none."""
        heap = self._heaps[queue]
        return self._groups[heappop(heap)[-1]] if heap else None

    def next(self) -> Group | None:
        """Return the next group of the queue whose turn it is; None if there is none."""
        while (queue := self.queues.first()) is not None:
            group = self.pop(queue)
            if group is not None:
                return group
            self.queues.discard(queue)
        return None
