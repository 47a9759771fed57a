"""The next turn: of all queues the one to be served, and of its groups the first.

Queues are served in their order (`queue_heap`), groups within a queue in theirs. Groups with equal
requests stand in one row: when the first of them is refused for lack of quota, so are the others,
and none of them is looked at again before quota came free where it was missing, in the queue or
above it. So a queue of thousands of equal groups costs one look each time a pod ends, and a queue
in which nothing came free costs nothing.

A group that requests more than its queue deserves by weight is refused for that, and has its turn
when no other group can be served (`next_beyond_share`): existing nodes are left to others first,
but not kept from a group if others cannot use them. That is soon, so it is not reported.

In a strict queue (`dequeueStrategy: fifo`) no group overtakes one that was refused. In others the
smaller overtake the larger, but not for ever: see `starvation`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger
from bayplan.queues.orders import Order, beyond_key, group_order
from bayplan.queues.problems import QueueReason, WaitCode
from bayplan.queues.queue_heap import QueueHeap
from bayplan.queues.requests import QuotaRequest
from bayplan.queues.starvation import StarvationGuard

FIFO = "fifo"
NextRequest = tuple[str, QuotaRequest]
"""The group whose turn it is, and what it requests."""
NOTHING_MORE = QuotaRequest()
"""The request of groups that hold quota already and need no more."""


class _RowEntry(NamedTuple):
    """A group in a row: its order, which of its requests that row is, and its key."""

    order: Order
    number: int
    key: str


@dataclass(slots=True)
class _Line:
    """One queue's groups."""

    rows: dict[QuotaRequest, list[_RowEntry]] = field(default_factory=dict)
    """By request; groups that have moved on are skipped when they come up."""
    refused: dict[QuotaRequest, QueueReason] = field(default_factory=dict)
    """The requests that were refused, and why."""
    unreported: dict[QuotaRequest, list[str]] = field(default_factory=dict)
    """By request, the groups that came since it was refused last."""
    stopped: str = ""
    """The queue for whose quota all wait behind the first group, if it is strict."""
    stopped_by: str = ""
    """That group."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """The request of a group, and its sort key."""

    queue: str
    requests: tuple[QuotaRequest, ...]
    order: Order

    def requests_as(self, number: int, quota: QuotaRequest, order: Order) -> bool:
        """Whether it still requests that, as the one of that number and in that order."""
        return self.order == order and self.requests[number : number + 1] == (quota,)


class QueueOrder:
    """The groups that request something."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lines: dict[str, _Line] = {}
        self._entries: dict[str, _Entry] = {}
        self._to_admit = QueueHeap(ledger)
        """The queues in which a group may be admitted."""
        self._open = QueueHeap(ledger)
        """The queues in which pods of a group may be served."""
        self._beyond = QueueHeap(ledger, lambda name: beyond_key(ledger.accounts, name))
        """The queues in which a group was refused for the share alone."""
        self._waiting_for: dict[str, dict[str, None]] = {}
        """By the queue that lacks quota, the queues in which groups wait for it."""
        self.starvation = StarvationGuard()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def put(self, group: Group, requests: Iterable[QuotaRequest], now: float) -> QueueReason | None:
        """Enter a group with its requests, any of which it needs; returns why it waits, if equal
        requests were refused already.
        """
        self.starvation.begin(group.key, now)
        entry = _Entry(group.queue, tuple(requests), group_order(group))
        known = self._entries.get(group.key)
        if known != entry:
            self._enter(group, entry)
        return self._refusal(entry)

    def refusal(self, key: str) -> QueueReason | None:
        """Return why a group waits that has had its turn, or behind which one it waits."""
        entry = self._entries[key]
        line = self._lines[entry.queue]
        if (reason := self._refusal(entry)) is not None or not line.stopped_by:
            return reason
        text = f"group {line.stopped_by} comes first in queue {entry.queue}"
        return QueueReason(WaitCode.EARLIER_GROUP, entry.queue, text)

    def _refusal(self, entry: _Entry) -> QueueReason | None:
        """Return why a group waits: all its requests were refused, and not for the share alone."""
        refused = self._lines[entry.queue].refused
        answers = [refused.get(quota) for quota in entry.requests]
        waits = all(one is not None and one.code is not WaitCode.SHARE for one in answers)
        return answers[0] if waits else None

    def _enter(self, group: Group, entry: _Entry) -> None:
        self._drop(group.key)
        self._entries[group.key] = entry
        line = self._lines.setdefault(group.queue, _Line())
        for number, quota in enumerate(entry.requests):
            head = _RowEntry(entry.order, number, group.key)
            heapq.heappush(line.rows.setdefault(quota, []), head)
            refused = line.refused.get(quota)
            if refused is None or refused.code is WaitCode.SHARE:
                line.unreported.setdefault(quota, []).append(group.key)
            if refused is None:
                self._queues_for(quota).add(group.queue)

    def remove(self, key: str) -> None:
        """Remove a group that requests nothing any more."""
        self._drop(key)
        if self.starvation.end(key):
            self.reconsider_all()

    def next(self, now: float) -> NextRequest | None:
        """Return the group whose turn it is: to be admitted, before any pods are served; None if no
        group can be served now.
        """
        self._reopen_freed()
        return self._next_of(self._to_admit, now) or self._next_of(self._open, now)

    def _next_of(self, queues: QueueHeap, now: float) -> NextRequest | None:
        held_up = []
        found = None
        while found is None and (queue := queues.first()) is not None:
            holder = self.starvation.holder(self._ledger.tree.path(queue), now)
            found = self._first_of(self._lines[queue], holder, queues)
            if found is None and holder:
                held_up.append(queue)
            if found is None:
                queues.discard(queue)
        for queue in held_up:
            queues.add(queue)
        return found

    def _queues_for(self, quota: QuotaRequest) -> QueueHeap:
        return self._open if quota.needs is None else self._to_admit

    def _reopen(self, queue: str) -> None:
        """Look again at all groups of a queue."""
        self._to_admit.add(queue)
        self._open.add(queue)

    def next_beyond_share(self, now: float) -> NextRequest | None:
        """Return the group whose turn it is of those that exceed their queues' shares; the others
        of its queue are looked at again.
        """
        while (queue := self._beyond.first()) is not None:
            self._beyond.discard(queue)
            line = self._lines[queue]
            line.refused = {
                a: why for a, why in line.refused.items() if why.code is not WaitCode.SHARE
            }
            line.stopped = "" if line.stopped == queue else line.stopped
            self._open.add(queue)
            holder = self.starvation.holder(self._ledger.tree.path(queue), now)
            found = self._first_of(line, holder, self._open)
            if found is not None:
                return found
        return None

    def refuse(
        self, turn: NextRequest, reason: QueueReason, now: float, *, ever: bool = True
    ) -> dict[str, QueueReason]:
        """Refuse a request, and all equal ones of its queue; returns why groups wait, for those for
        which that is new. If it could ever be granted, the group holds others up once it starves.
        """
        (key, quota), level = turn, reason.queue
        entry = self._entries[key]
        line = self._lines[entry.queue]
        line.refused[quota] = reason
        self._waiting_for.setdefault(level, {})[entry.queue] = None
        node = self._ledger.tree.get(entry.queue)
        if node is not None and node.queue.spec.dequeue_strategy == FIFO:
            line.stopped, line.stopped_by = level, key
        elif ever and reason.code is not WaitCode.SHARE:
            self.starvation.refused(key, level, now)
        if reason.code is WaitCode.SHARE:
            self._ledger.wait_for_share(level)
            self._beyond.add(entry.queue)
            return {}
        newly_waiting = dict.fromkeys((key, *line.unreported.pop(quota, ())))
        known = {one: self._entries[one] for one in newly_waiting if one in self._entries}
        waits = {one: self._refusal(entry) for one, entry in known.items()}
        return {one: why for one, why in waits.items() if why is not None}

    def reconsider_all(self) -> None:
        """Look again at all groups that were held up."""
        for queue in self._lines:
            self._reopen(queue)

    # -- queues ----------------------------------------------------------------------------------

    def _reopen_freed(self) -> None:
        """Open the queues that wait for quota where some has come free."""
        for level in self._ledger.take_freed():
            for queue in self._waiting_for.pop(level, ()):
                line = self._lines.get(queue)
                if line is None:
                    continue
                line.refused = {a: why for a, why in line.refused.items() if why.queue != level}
                line.stopped = "" if line.stopped == level else line.stopped
                self._reopen(queue)

    # -- groups ----------------------------------------------------------------------------------

    def _first_of(self, line: _Line, holder: str, queues: QueueHeap) -> NextRequest | None:
        """Return the first group of a queue that was not refused and is not held up; groups that
        hold quota already and need no more are never held up.
        """
        if queues is self._open:
            let_in = self._head(NOTHING_MORE, line.rows.get(NOTHING_MORE, []))
            if let_in is not None:
                return let_in.key, NOTHING_MORE
        requests = (quota for quota in line.rows if self._queues_for(quota) is queues)
        rows = ((quota, line.rows[quota]) for quota in requests if quota not in line.refused)
        firsts = ((self._head(quota, row), quota) for quota, row in rows)
        stop = self._stop(line)
        heads = ((head, quota) for head, quota in firsts if head and self._may_go(line, head, stop))
        found = min(heads, default=None, key=itemgetter(0))
        if found is None or (holder and found[0].key != holder):
            return self._ask_of(line, holder, queues) if holder else None
        return found[0].key, found[1]

    @staticmethod
    def _may_go(line: _Line, head: _RowEntry, stop: Order | None) -> bool:
        """Whether a group overtakes no other in a strict queue."""
        return stop is None or head.order < stop or head.key == line.stopped_by

    def _stop(self, line: _Line) -> Order | None:
        """Return the order of the group that was refused; others before it do not overtake it."""
        first = self._entries.get(line.stopped_by) if line.stopped else None
        return None if first is None else first.order

    def _ask_of(self, line: _Line, key: str, queues: QueueHeap) -> NextRequest | None:
        """Return a request of a group of a queue that was not refused."""
        entry = self._entries.get(key)
        if entry is None or self._lines[entry.queue] is not line:
            return None
        requests = (quota for quota in entry.requests if self._queues_for(quota) is queues)
        return next(((key, quota) for quota in requests if quota not in line.refused), None)

    def _head(self, quota: QuotaRequest, row: list[_RowEntry]) -> _RowEntry | None:
        while row:
            order, number, key = row[0]
            entry = self._entries.get(key)
            if entry is not None and entry.requests_as(number, quota, order):
                return row[0]
            heapq.heappop(row)
        return None

    def _drop(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        line = self._lines[entry.queue]
        for quota in entry.requests:
            if self._head(quota, line.rows[quota]) is None:
                del line.rows[quota]
                line.refused.pop(quota, None)
                line.unreported.pop(quota, None)
        if not line.rows:
            del self._lines[entry.queue]
            self._open.discard(entry.queue)
            self._to_admit.discard(entry.queue)
            self._beyond.discard(entry.queue)
        elif line.stopped_by == key:
            # Another may have been stopped before it: whoever is first now asks again.
            line.stopped = line.stopped_by = ""
            line.refused.clear()
            self._reopen(entry.queue)
