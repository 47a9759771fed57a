"""Who is next: of all queues the one to be served, and of its groups the first.

Queues are served in their order, groups within a queue in theirs. Groups that ask for the same
stand in one row: when the first of them is refused for want of quota, so are the others, and
none of them is looked at again before something came free where it was missing, in the queue or
above it. So a queue of thousands that are alike costs one look each time a pod ends, and a queue in
which nothing came free costs nothing.

Who asks for more than its queue deserves by weight is refused for that, and has its turn when
nobody else can be served (`next_beyond`): nodes that are there are left to others first, but nobody
waits for those who cannot use them. That is soon, so nobody is told of it.

In a strict queue (`dequeueStrategy: fifo`) nobody overtakes a group that was refused. In others the
smaller overtake the larger, but not for ever: see `starvation`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import NamedTuple

from bayplan.queues.asks import Ask
from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger
from bayplan.queues.orders import Order, beyond_order, group_order, queue_order
from bayplan.queues.problems import NoRoom, Why
from bayplan.queues.starvation import StarvationGuard

FIFO = "fifo"
SLACK = 64
Turn = tuple[str, Ask]
"""The group whose turn it is, and what it asks for."""
HELD = Ask()
"""The ask of those that were let in before and ask for nothing more."""


class Head(NamedTuple):
    """A group in a row: its order, which of its asks that row is, and its key."""

    order: Order
    number: int
    key: str


@dataclass(slots=True)
class _Line:
    """One queue's groups."""

    rows: dict[Ask, list[Head]] = field(default_factory=dict)
    """By what they ask for; who has moved on is skipped when it comes up."""
    refused: dict[Ask, NoRoom] = field(default_factory=dict)
    """What was asked for in vain, and why."""
    untold: dict[Ask, list[str]] = field(default_factory=dict)
    """By what they ask for, those that came since it was refused last."""
    stopped: str = ""
    """The queue for whose room everybody waits behind the first, if it is strict."""
    stopped_by: str = ""
    """Who that is."""


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where a group stands."""

    queue: str
    asks: tuple[Ask, ...]
    order: Order

    def asks_as(self, number: int, ask: Ask, order: Order) -> bool:
        """Whether it still asks for that, as the one of that number and in that order."""
        return self.order == order and self.asks[number : number + 1] == (ask,)


class _Open:
    """Queues in their order, as it was; what has changed is seen when it comes up."""

    def __init__(self, order: Callable[[str], Order]) -> None:
        self._order = order
        self._queues: set[str] = set()
        self._heap: list[tuple[Order, str]] = []

    def add(self, queue: str) -> None:
        """Have a queue among them."""
        self._queues.add(queue)
        heapq.heappush(self._heap, (self._order(queue), queue))
        if len(self._heap) > 2 * len(self._queues) + SLACK:
            self._heap = [(self._order(one), one) for one in self._queues]
            heapq.heapify(self._heap)

    def discard(self, queue: str) -> None:
        """Have a queue among them no more."""
        self._queues.discard(queue)

    def first(self) -> str | None:
        """The one that comes first by now."""
        while self._heap:
            order, queue = self._heap[0]
            if queue in self._queues:
                current = self._order(queue)
                if current <= order:
                    return queue
                heapq.heapreplace(self._heap, (current, queue))
            else:
                heapq.heappop(self._heap)
        return None


class QueueOrder:
    """The groups that have something to ask for."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lines: dict[str, _Line] = {}
        self._standing: dict[str, _Standing] = {}
        self._to_admit = _Open(partial(queue_order, ledger))
        """The queues in which a group may be admitted."""
        self._open = _Open(partial(queue_order, ledger))
        """The queues in which pods of a group may be served."""
        self._beyond = _Open(partial(beyond_order, ledger))
        """Those in which somebody was refused for their share alone."""
        self._waiting_for: dict[str, dict[str, None]] = {}
        """By the queue that had no room, the queues in which somebody waits for it."""
        self.starvation = StarvationGuard()

    def __len__(self) -> int:
        return len(self._standing)

    def __contains__(self, key: str) -> bool:
        return key in self._standing

    def __iter__(self) -> Iterator[str]:
        return iter(self._standing)

    def put(self, group: Group, asks: Iterable[Ask], now: float) -> NoRoom | None:
        """Have a group wait for its turn, to ask for any of these; why it need not ask now, if
        others have asked for the same in vain.
        """
        self.starvation.begin(group.key, now)
        standing = _Standing(group.queue, tuple(asks), group_order(group))
        known = self._standing.get(group.key)
        if known != standing:
            self._stand(group, standing)
        return self._refusal(standing)

    def refusal(self, key: str) -> NoRoom | None:
        """Why a group waits that has had its turn, or behind which one it waits for it."""
        standing = self._standing[key]
        line = self._lines[standing.queue]
        if (no_room := self._refusal(standing)) is not None or not line.stopped_by:
            return no_room
        text = (
            f"group {line.stopped_by} is before it, and nobody overtakes in queue {standing.queue}"
        )
        return NoRoom(Why.EARLIER_GROUP, standing.queue, text)

    def _refusal(self, standing: _Standing) -> NoRoom | None:
        """Why a group waits: all that it asks for was refused, and not for its share alone."""
        refused = self._lines[standing.queue].refused
        answers = [refused.get(ask) for ask in standing.asks]
        waits = all(one is not None and one.why is not Why.SHARE for one in answers)
        return answers[0] if waits else None

    def _stand(self, group: Group, standing: _Standing) -> None:
        self._leave(group.key)
        self._standing[group.key] = standing
        line = self._lines.setdefault(group.queue, _Line())
        for number, ask in enumerate(standing.asks):
            head = Head(standing.order, number, group.key)
            heapq.heappush(line.rows.setdefault(ask, []), head)
            refused = line.refused.get(ask)
            if refused is None or refused.why is Why.SHARE:
                line.untold.setdefault(ask, []).append(group.key)
            if refused is None:
                self._queues_for(ask).add(group.queue)

    def remove(self, key: str) -> None:
        """The group asks for nothing any more."""
        self._leave(key)
        if self.starvation.end(key):
            self.let_all_look()

    def next(self, now: float) -> Turn | None:
        """The group whose turn it is: to be admitted, before any pods are served; None if nobody
        can be served now.
        """
        self._look_again()
        return self._next_of(self._to_admit, now) or self._next_of(self._open, now)

    def _next_of(self, queues: _Open, now: float) -> Turn | None:
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

    def _queues_for(self, ask: Ask) -> _Open:
        return self._open if ask.needs is None else self._to_admit

    def _reopen(self, queue: str) -> None:
        """Look again at all who wait in a queue."""
        self._to_admit.add(queue)
        self._open.add(queue)

    def next_beyond(self, now: float) -> Turn | None:
        """The group whose turn it is of those that ask for more than their queues deserve; the
        others of its queue ask again.
        """
        while (queue := self._beyond.first()) is not None:
            self._beyond.discard(queue)
            line = self._lines[queue]
            line.refused = {a: why for a, why in line.refused.items() if why.why is not Why.SHARE}
            line.stopped = "" if line.stopped == queue else line.stopped
            self._open.add(queue)
            holder = self.starvation.holder(self._ledger.tree.path(queue), now)
            found = self._first_of(line, holder, self._open)
            if found is not None:
                return found
        return None

    def refuse(
        self, turn: Turn, no_room: NoRoom, now: float, *, ever: bool = True
    ) -> dict[str, NoRoom]:
        """There is no room for what a group asks, nor for others that ask for the same; returns
        why they wait, for those to whom that is news. Unless it could not have it ever, it holds
        these up when its patience is over.
        """
        (key, ask), level = turn, no_room.queue
        standing = self._standing[key]
        line = self._lines[standing.queue]
        line.refused[ask] = no_room
        self._waiting_for.setdefault(level, {})[standing.queue] = None
        node = self._ledger.tree.get(standing.queue)
        if node is not None and node.queue.spec.dequeue_strategy == FIFO:
            line.stopped, line.stopped_by = level, key
        elif ever and no_room.why is not Why.SHARE:
            self.starvation.refused(key, level, now)
        if no_room.why is Why.SHARE:
            self._ledger.wait_for_share(level)
            self._beyond.add(standing.queue)
            return {}
        told = dict.fromkeys((key, *line.untold.pop(ask, ())))
        known = {one: self._standing[one] for one in told if one in self._standing}
        waits = {one: self._refusal(standing) for one, standing in known.items()}
        return {one: why for one, why in waits.items() if why is not None}

    def let_all_look(self) -> None:
        """Whoever was held up is not any more."""
        for queue in self._lines:
            self._reopen(queue)

    # -- queues ----------------------------------------------------------------------------------

    def _look_again(self) -> None:
        """Open the queues that wait for room where something has come free."""
        for level in self._ledger.take_freed():
            for queue in self._waiting_for.pop(level, ()):
                line = self._lines.get(queue)
                if line is None:
                    continue
                line.refused = {a: why for a, why in line.refused.items() if why.queue != level}
                line.stopped = "" if line.stopped == level else line.stopped
                self._reopen(queue)

    # -- groups ----------------------------------------------------------------------------------

    def _first_of(self, line: _Line, holder: str, queues: _Open) -> Turn | None:
        """The first of a queue who was not refused, and whom nobody holds up; who was let in before
        and asks for nothing more is held up by nobody.
        """
        if queues is self._open:
            let_in = self._head(HELD, line.rows.get(HELD, []))
            if let_in is not None:
                return let_in.key, HELD
        asks = (ask for ask in line.rows if self._queues_for(ask) is queues)
        rows = ((ask, line.rows[ask]) for ask in asks if ask not in line.refused)
        firsts = ((self._head(ask, row), ask) for ask, row in rows)
        stop = self._stop(line)
        heads = ((head, ask) for head, ask in firsts if head and self._may_go(line, head, stop))
        found = min(heads, default=None, key=itemgetter(0))
        if found is None or (holder and found[0].key != holder):
            return self._ask_of(line, holder, queues) if holder else None
        return found[0].key, found[1]

    @staticmethod
    def _may_go(line: _Line, head: Head, stop: Order | None) -> bool:
        """Whether a group overtakes nobody in a strict queue; its own pods are no others."""
        return stop is None or head.order < stop or head.key == line.stopped_by

    def _stop(self, line: _Line) -> Order | None:
        """Where those stand who wait behind the one that was refused; who has come before it since
        overtakes nobody.
        """
        first = self._standing.get(line.stopped_by) if line.stopped else None
        return None if first is None else first.order

    def _ask_of(self, line: _Line, key: str, queues: _Open) -> Turn | None:
        """What a group of a queue may ask for that was not refused."""
        standing = self._standing.get(key)
        if standing is None or self._lines[standing.queue] is not line:
            return None
        asks = (ask for ask in standing.asks if self._queues_for(ask) is queues)
        return next(((key, ask) for ask in asks if ask not in line.refused), None)

    def _head(self, ask: Ask, row: list[Head]) -> Head | None:
        while row:
            order, number, key = row[0]
            standing = self._standing.get(key)
            if standing is not None and standing.asks_as(number, ask, order):
                return row[0]
            heapq.heappop(row)
        return None

    def _leave(self, key: str) -> None:
        standing = self._standing.pop(key, None)
        if standing is None:
            return
        line = self._lines[standing.queue]
        for ask in standing.asks:
            if self._head(ask, line.rows[ask]) is None:
                del line.rows[ask]
                line.refused.pop(ask, None)
                line.untold.pop(ask, None)
        if not line.rows:
            del self._lines[standing.queue]
            self._open.discard(standing.queue)
            self._to_admit.discard(standing.queue)
            self._beyond.discard(standing.queue)
        elif line.stopped_by == key:
            # Another may have been stopped before it: whoever is first now asks again.
            line.stopped = line.stopped_by = ""
            line.refused.clear()
            self._reopen(standing.queue)
