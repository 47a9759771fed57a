"""The groups that stand in line, queue by queue."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from bayplan.queues.groups import Group
from bayplan.queues.orders import GroupKey, group_key
from bayplan.queues.problems import NoRoom, Why
from bayplan.queues.session import Session
from bayplan.queues.turns import Turns


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
