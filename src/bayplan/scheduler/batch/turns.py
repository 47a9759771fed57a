"""Turns: a group asks, and is let in, tried or refused. One at a time, in the order of queues.

- *No quota*: the group waits, gates stay, and nobody is told to buy a node for it.
- *Quota, but more than its queue deserves by weight*: it waits until nobody else can be served, and
  those who were let in before it have been tried.
- *Quota, and gates*: the quota is held, and the gates are removed in the background. The pods come
  back without them, to be tried.
- *Quota, no gates*: nodes are tried (`admitting`).
- *Quota, a bind that failed*: the quota stays held (`holding`), and the pod is tried again.
"""

from __future__ import annotations

import logging

from bayplan.kube.pods import Pod
from bayplan.queues import Gate, Group, Ledger, Member, NoRoom, Status, Why
from bayplan.queues.admission import decide_turn, fits_when_empty
from bayplan.queues.asks import Asking, Stage, asks_of
from bayplan.queues.queue_order import QueueOrder, Turn
from bayplan.queues.registry import QueueRegistry, reserved_of
from bayplan.scheduler.batch.actuation import Hands, TurnActuator, gated_of
from bayplan.scheduler.batch.pod_conditions import says_timed_out
from bayplan.scheduler.batch.reservations import Reservations
from bayplan.scheduler.context import SchedulerContext
from bayplan.scheduler.queue import Place

log = logging.getLogger(__name__)
_RESTING = (Place.UNSCHEDULABLE, Place.BACKOFF)


class ReservationKeeper:
    """Sees to it that quota is held once, and not for ever."""

    def __init__(
        self,
        context: SchedulerContext,
        book: QueueRegistry,
        hands: Hands,
        reservations: Reservations,
        admitting: TurnActuator,
    ) -> None:
        self._context = context
        self._book = book
        self._hands = hands
        self._reservations = reservations
        self._admitting = admitting

    @property
    def _ledger(self) -> Ledger:
        return self._book.ledger

    def forgotten(self, pod: Pod) -> None:
        """A pod has not got the node that it was to have: its quota stays held."""
        member = self._book.member(pod)
        if member is not None and member.status.is_allocated and not member.pod.spec.node_name:
            member.node = ""
            self._ledger.move(member, Status.PENDING, reserved=True)
            self._reservations.begin(member.group, self._context.clock.monotonic())

    def recover(self) -> None:
        """Hold quota again for pods that were let in before we came, as far as it goes."""
        now = self._context.clock.monotonic()
        for group in self._book.recover():
            self._reservations.begin(group, now)

    def settle(self) -> None:
        """Have those ask again whose quota is lowered, or who are in another queue now."""
        for member in self._book.settle():
            self._hands.ungating.drop(member.pod.metadata.uid)
            self._context.queue.activate(member.pod.metadata.uid)
            self._book.stir(member.group)

    def see_to_times(self, now: float) -> None:
        """Give back what has been held for too long, and let those hold again who have rested."""
        for due in self._reservations.due(now):
            group = self._ledger.groups.get(due.group)
            if group is not None and due.is_over:
                self._time_out(group, now)
            elif group is not None:
                for member in group.of_status(Status.PENDING):
                    self._context.queue.activate(member.pod.metadata.uid)
                self._book.stir(group.key)

    def _time_out(self, group: Group, now: float) -> None:
        """Give a group's quota back, once its pods say so: until then a node may be bought."""
        waiting = reserved_of(group)
        for member in gated_of(waiting):
            self._hands.ungating.drop(member.pod.metadata.uid)
            self._book.release(member)
        untold = [one for one in waiting if one.gate is Gate.NONE and not says_timed_out(one.pod)]
        if untold:
            self._hands.telling.timed_out(untold, group)
            self._reservations.again(group.key, now)
            return
        log.info("reservation timed out", extra={"group": group.key, "queue": group.queue})
        self._admitting.release(group)
        self._reservations.rest(group.key, now)
        self._book.stir(group.key)


class Turns:
    """Gives groups their turns."""

    def __init__(
        self,
        context: SchedulerContext,
        book: QueueRegistry,
        hands: Hands,
        reservations: Reservations,
        *,
        gates: bool,
    ) -> None:
        self._context = context
        self._book = book
        self._hands = hands
        self._reservations = reservations
        self._admitting = TurnActuator(context, book, hands, reservations, gates=gates)
        self.holding = ReservationKeeper(context, book, hands, reservations, self._admitting)
        self.order = QueueOrder(book.ledger)
        self._coming: dict[str, None] = {}
        """The pods that lose their gates within their queue's share, and may not be tried yet."""

    @property
    def _ledger(self) -> Ledger:
        return self._book.ledger

    # -- whose turn it is ------------------------------------------------------------------------

    def one(self) -> bool:
        """Give the next group its turn; says whether there was one."""
        now = self._context.clock.monotonic()
        if self.order.starvation.expire(now):
            self.order.let_all_look()
        self.holding.settle()
        self.holding.see_to_times(now)
        self._take_in(now)
        turn = self.order.next(now)
        beyond = turn is None and not self._is_anyone_coming()
        if beyond:
            turn = self.order.next_beyond(now)
        if turn is None:
            return False
        group = self._ledger.groups[turn[0]]
        try:
            self._serve(group, turn, now, beyond=beyond)
        except Exception:
            log.exception("group %s could not be served", group.key)
            self._give_up(group, now)
        return True

    def next_due(self) -> float | None:
        """When there may be something to do without anybody telling us; None if never."""
        times = (self._reservations.next_due(), self.order.starvation.next_due())
        return min((time for time in times if time is not None), default=None)

    def _is_anyone_coming(self) -> bool:
        """Whether somebody is to be tried first, who asked for no more than its queue deserves."""
        while self._coming:
            key = next(iter(self._coming))
            member = self._ledger.members.get(key)
            if member is not None and member.reserved and member.gate is not Gate.NONE:
                return True
            del self._coming[key]
        return False

    def _take_in(self, now: float) -> None:
        """Have those wait for a turn about whom something is new."""
        for entry in self._context.queue.newly_held():
            member = self._book.member(entry.pod)
            if member is not None:
                self._book.candidates.put(member)
                self._hands.telling.came(member)
                self._book.stir(member.group)
        stirred, self._book.stirred = self._book.stirred, {}
        for key in stirred:
            self._line_up(key, now)

    def _line_up(self, key: str, now: float) -> None:
        group = self._ledger.groups.get(key)
        asked = self._asked(group) if group is not None else None
        if group is None or not isinstance(asked, tuple):
            self.order.remove(key)
        if group is None:
            self._reservations.end(key)
            self._hands.telling.forget(key)
            self._hands.evictions.forget(key)
        elif isinstance(asked, tuple):
            asks = [one.ask for one in asked]
            known = self.order.put(group, asks, now)
            if known is not None:
                self._wait(group, known)
        elif isinstance(asked, NoRoom):
            self._wait(group, asked)

    def _asked(self, group: Group) -> tuple[Asking, ...] | NoRoom | None:
        if not group.is_known:
            text = f"PodGroup {group.key} does not exist"
            return NoRoom(Why.BAD_GROUP, group.queue, text) if group.members else None
        if (text := self._book.malformed(group)) and group.count(Status.PENDING):
            return NoRoom(Why.BAD_GROUP, group.queue, text)
        return asks_of(group, self._book.candidates, self.stage_of)

    def stage_of(self, member: Member) -> Stage:
        """Where a pod without a node stands."""
        if member.gate is Gate.FOREIGN:
            return Stage.ELSEWHERE
        if member.gate is not Gate.NONE:
            return Stage.COMING if member.reserved else Stage.GATED
        entry = self._context.queue.get(member.pod.metadata.uid)
        if entry is None:
            return Stage.ELSEWHERE
        if entry.place is Place.HELD:
            return Stage.HELD
        return Stage.RESTING if entry.place in _RESTING else Stage.COMING

    # -- a turn ----------------------------------------------------------------------------------

    def _serve(self, group: Group, turn: Turn, now: float, *, beyond: bool) -> None:
        asked = self._asked_for(group, turn)
        if asked is None:
            self._line_up(group.key, now)
            return
        if self._reservations.rests(group.key, now) and gated_of(asked.members):
            self.order.remove(group.key)
            return
        decided = decide_turn(self._ledger, group, asked, beyond_share=beyond)
        if isinstance(decided, NoRoom):
            self._refuse(group, asked, decided, now)
            return
        self.order.remove(group.key)
        self._hands.telling.forget(group.key)
        if not decided.members:
            self._book.stir(group.key)
            return
        self._book.touch(group.key)
        if decided.within_share and self._ledger.policy.shares_nodes:
            self._coming.update(dict.fromkeys(one.key for one in gated_of(decided.members)))
        self._admitting.let_in(group, asked, decided.members, now)

    def _asked_for(self, group: Group, turn: Turn) -> Asking | None:
        """What a group asks for in its turn; None if it asks for something else by now."""
        asked = self._asked(group)
        found = asked if isinstance(asked, tuple) else ()
        return next((one for one in found if one.ask == turn[1]), None)

    def _refuse(self, group: Group, asked: Asking, no_room: NoRoom, now: float) -> None:
        ever = fits_when_empty(self._ledger, group, asked)
        waiting = self.order.refuse((group.key, asked.ask), no_room, now, ever=ever)
        for key, why in waiting.items():
            if (told := self._ledger.groups.get(key)) is not None:
                self._wait(told, why)
        if no_room.why is Why.QUOTA and ever:
            self._hands.evictions.make_room(group, now, in_other_queues=False)

    def _wait(self, group: Group, no_room: NoRoom) -> None:
        if self._hands.telling.waits(group, no_room):
            self._book.touch(group.key)

    def _give_up(self, group: Group, now: float) -> None:
        """Something went wrong with a group: it rests, and the others go on."""
        self.order.remove(group.key)
        self._admitting.release(group)
        for member in group.of_status(Status.PENDING):
            entry = self._context.queue.get(member.pod.metadata.uid)
            if entry is not None:
                self._context.queue.failed(entry, now)
