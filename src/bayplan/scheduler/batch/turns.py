"""Turns: a group asks, and is let in, tried or refused. One at a time, in the order of the lineup.

- *No quota*: the group waits, gates stay, and nobody is told to buy a node for it.
- *Quota, and gates*: the quota is held, and the gates are removed in the background. The pods come
  back without them, to be tried.
- *Quota, no gates*: nodes are tried. Who has a place is bound. Who has none is Unschedulable; if it
  asked for the gate, its quota stays held until its time is over, else it is given back at once.
- *Quota, a bind that failed*: the quota stays held, and the pod is tried again after its rest.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.kube.pods import Pod
from bayplan.queues import Gate, Group, Ledger, Member, NoRoom, Status, Why
from bayplan.scheduler.attempt import Refused
from bayplan.scheduler.batch.asking import Asking, Stage, what_is_asked
from bayplan.scheduler.batch.book import Book
from bayplan.scheduler.batch.evictions import Evictions
from bayplan.scheduler.batch.lineup import Lineup
from bayplan.scheduler.batch.ordering import group_order, queue_order
from bayplan.scheduler.batch.reservations import Reservations
from bayplan.scheduler.batch.telling import Telling, says_timed_out
from bayplan.scheduler.batch.trial import Fitted, Unfit, try_together
from bayplan.scheduler.batch.ungating import Ungating
from bayplan.scheduler.desk import Desk
from bayplan.scheduler.queue import Place, QueuedPod
from bayplan.scheduler.tries import Tries

log = logging.getLogger(__name__)
_RESTING = (Place.UNSCHEDULABLE, Place.BACKOFF)


@dataclass(frozen=True, slots=True)
class Hands:
    """Whoever carries out what a turn comes to."""

    tries: Tries
    ungating: Ungating
    telling: Telling
    evictions: Evictions


class Turns:
    """Gives groups their turns."""

    def __init__(
        self, desk: Desk, book: Book, hands: Hands, reservations: Reservations, *, gates: bool
    ) -> None:
        self._desk = desk
        self._book = book
        self._hands = hands
        self._gates = gates
        """Whether quota stays held for pods that asked for the gate, and have no node yet."""
        self.reservations = reservations
        self.lineup = Lineup(book.ledger, lambda queue: queue_order(self._ledger, queue))

    @property
    def _ledger(self) -> Ledger:
        return self._book.ledger

    # -- whose turn it is ------------------------------------------------------------------------

    def one(self) -> bool:
        """Give the next group its turn; says whether there was one."""
        now = self._desk.clock.monotonic()
        self._see_to_times(now)
        self._take_in(now)
        key = self.lineup.next(now)
        if key is None:
            return False
        group = self._ledger.groups[key]
        try:
            self._serve(group, now)
        except Exception:
            log.exception("group %s could not be served", key)
            self._give_up(group, now)
        return True

    def next_due(self) -> float | None:
        """When there may be something to do without anybody telling us; None if never."""
        times = (self.reservations.next_due(), self.lineup.patience.next_due())
        return min((time for time in times if time is not None), default=None)

    def _take_in(self, now: float) -> None:
        """Have those wait for a turn about whom something is new."""
        for entry in self._desk.queue.newly_held():
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
        if group is None or not isinstance(asked, Asking):
            self.lineup.remove(key)
        if group is None:
            self.reservations.end(key)
            self._hands.telling.forget(key)
            self._hands.evictions.forget(key)
        elif isinstance(asked, Asking):
            known = self.lineup.put(group, asked.ask, group_order(group), now)
            if known is not None:
                self._wait(group, known)
        elif isinstance(asked, NoRoom):
            self._wait(group, asked)

    def _asked(self, group: Group) -> Asking | NoRoom | None:
        if not group.is_known:
            text = f"PodGroup {group.key} does not exist"
            return NoRoom(Why.BAD_GROUP, group.queue, text) if group.members else None
        if (text := self._book.malformed(group)) and group.count(Status.PENDING):
            return NoRoom(Why.BAD_GROUP, group.queue, text)
        return what_is_asked(group, self._book.candidates, self.stage_of)

    def stage_of(self, member: Member) -> Stage:
        """Where a pod without a node stands."""
        if member.gate is Gate.FOREIGN:
            return Stage.ELSEWHERE
        if member.gate is not Gate.NONE:
            return Stage.COMING if member.reserved else Stage.GATED
        entry = self._desk.queue.get(member.pod.metadata.uid)
        if entry is None:
            return Stage.ELSEWHERE
        if entry.place is Place.HELD:
            return Stage.HELD
        return Stage.RESTING if entry.place in _RESTING else Stage.COMING

    # -- a turn ----------------------------------------------------------------------------------

    def _serve(self, group: Group, now: float) -> None:
        asked = self._asked(group)
        if not isinstance(asked, Asking) or asked.ask != self.lineup.asks(group.key):
            self._line_up(group.key, now)
            return
        if self.reservations.rests(group.key, now) and _gated(asked.members):
            self.lineup.remove(group.key)
            return
        no_room = self._no_room(group, asked)
        if no_room is not None:
            ever = self._fits_ever(group, asked)
            for key in self.lineup.refuse(group.key, no_room, now, ever=ever):
                if (told := self._ledger.groups.get(key)) is not None:
                    self._wait(told, no_room)
            if no_room.why is Why.QUOTA and ever:
                self._hands.evictions.make_room(group, now, in_other_queues=False)
            return
        self.lineup.remove(group.key)
        self._hands.telling.forget(group.key)
        self._book.touch(group.key)
        self._let_in(group, asked, now)

    def _wait(self, group: Group, no_room: NoRoom) -> None:
        if self._hands.telling.waits(group, no_room):
            self._book.touch(group.key)

    def _no_room(self, group: Group, asked: Asking) -> NoRoom | None:
        if group.is_pending:
            no_room = self._ledger.may_enqueue(group)
            if no_room is not None:
                return no_room
            self._ledger.admit(group)
        if all(one.reserved for one in asked.members):
            return None
        return self._ledger.may_allocate_all(group, asked.members)

    def _fits_ever(self, group: Group, asked: Asking) -> bool:
        """Whether the queue would have room if it were empty."""
        nodes, ask = self._ledger.tree.nodes, asked.ask
        path = self._ledger.tree.path(group.queue)
        return not any(ask.over(nodes[name].quota.real_capability, ask.asked) for name in path)

    def _let_in(self, group: Group, asked: Asking, now: float) -> None:
        for member in asked.members:
            if not member.reserved:
                self._ledger.reserve(member)
        gated = _gated(asked.members)
        for member in gated:
            self._hands.ungating.start(member.pod)
        if gated:
            self.reservations.begin(group.key, now)
        else:
            self._try(group, asked.members, now)

    def _try(self, group: Group, members: Iterable[Member], now: float) -> None:
        entries = [entry for one in members if (entry := self._taken(one, now)) is not None]
        outcome = try_together(self._desk, entries)
        self._desk.told.metrics.decided(self._desk.clock.monotonic() - now)
        if isinstance(outcome, Fitted):
            self._place(group, outcome, now)
        else:
            self._refuse(group, outcome, now)

    def _taken(self, member: Member, now: float) -> QueuedPod | None:
        queue, uid = self._desk.queue, member.pod.metadata.uid
        queue.activate(uid)
        entry = queue.get(uid)
        return None if entry is None else queue.take(entry, now)

    def _place(self, group: Group, fitted: Fitted, began: float) -> None:
        for place in fitted.places:
            member = self._book.member(place.entry.pod)
            if member is not None:
                self._ledger.move(member, Status.BINDING)
            self._hands.tries.start(place.entry, place.found, place.assumption, began)
        if not _reserved(group):
            self.reservations.end(group.key)
        self._hands.evictions.forget(group.key)
        self._book.stir(group.key)

    def _refuse(self, group: Group, unfit: Unfit, began: float) -> None:
        tries, telling = self._hands.tries, self._hands.telling
        rests = self.reservations.rests(group.key, began)
        silent = rests or self.reservations.is_over(group.key)
        for entry, refused in unfit.refused:
            tries.count_refusal(entry, refused, began)
            if not silent:
                telling.refused(entry.pod, refused.message)
        for entry in unfit.could:
            tries.count_refusal(entry, Refused(unfit.plugins, ""), began)
            if not silent:
                telling.would_fit(entry.pod, group.key)
        self._hands.evictions.make_room(group, began, in_other_queues=True)
        if self._keeps(group) and not rests:
            self.reservations.begin(group.key, began)
        else:
            self._release(group)
        self._book.stir(group.key)

    def _keeps(self, group: Group) -> bool:
        return self._gates and any(one.opted_in for one in group.of_status(Status.PENDING))

    def _release(self, group: Group) -> list[Member]:
        """Give back the quota of pods that have no node."""
        released = _reserved(group)
        for member in released:
            self._ledger.release(member)
        return released

    def _give_up(self, group: Group, now: float) -> None:
        """Something went wrong with a group: it rests, and the others go on."""
        self.lineup.remove(group.key)
        self._release(group)
        for member in group.of_status(Status.PENDING):
            entry = self._desk.queue.get(member.pod.metadata.uid)
            if entry is not None:
                self._desk.queue.failed(entry, now)

    # -- what comes of it ------------------------------------------------------------------------

    def forgotten(self, pod: Pod) -> None:
        """A pod has not got the node that it was to have: its quota stays held."""
        member = self._book.member(pod)
        if member is not None and member.status.is_allocated and not member.pod.spec.node_name:
            self._ledger.move(member, Status.PENDING, reserved=True)
            self.reservations.begin(member.group, self._desk.clock.monotonic())

    def recover(self, keys: Iterable[str]) -> None:
        """Hold quota again for pods that were let in before we came, as far as it goes."""
        now = self._desk.clock.monotonic()
        known = (self._ledger.members.get(key) for key in keys)
        members = [one for one in known if one is not None and one.status is Status.PENDING]
        groups = {one.group: self._book.group_of(one) for one in members}
        for group in sorted(groups.values(), key=group_order):
            own = [one for one in members if one.group == group.key]
            if group.is_known and self._ledger.may_allocate_all(group, own) is None:
                for one in own:
                    self._ledger.reserve(one)
                self.reservations.begin(group.key, now)

    def _see_to_times(self, now: float) -> None:
        if self.lineup.patience.expire(now):
            self.lineup.let_all_look()
        for due in self.reservations.due(now):
            group = self._ledger.groups.get(due.group)
            if group is not None and due.is_over:
                self._time_out(group, now)
            elif group is not None:
                for member in group.of_status(Status.PENDING):
                    self._desk.queue.activate(member.pod.metadata.uid)
                self._book.stir(group.key)

    def _time_out(self, group: Group, now: float) -> None:
        """Give a group's quota back, once its pods say so: until then a node may be bought."""
        waiting = _reserved(group)
        for member in _gated(waiting):
            self._hands.ungating.drop(member.pod.metadata.uid)
            self._ledger.release(member)
        untold = [one for one in waiting if one.gate is Gate.NONE and not says_timed_out(one.pod)]
        if untold:
            self._hands.telling.timed_out(untold, group)
            self.reservations.again(group.key, now)
            return
        log.info("reservation timed out", extra={"group": group.key, "queue": group.queue})
        self._release(group)
        self.reservations.rest(group.key, now)
        self._book.stir(group.key)


def _gated(members: Iterable[Member]) -> list[Member]:
    return [one for one in members if one.gate is not Gate.NONE]


def _reserved(group: Group) -> list[Member]:
    return [one for one in group.of_status(Status.PENDING) if one.reserved]
