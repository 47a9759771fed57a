"""Letting in: quota is held for pods, gates go, nodes are tried, and what comes of it is told.

Who has a place is bound. Who has none is Unschedulable; if it asked for the gate, its quota stays
held until its time is over, else it is given back at once. A gang is placed whole, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.queues import Gate, Group, Member, Status
from bayplan.scheduler.attempt import Refused
from bayplan.scheduler.batch.book import Book, reserved_of
from bayplan.scheduler.batch.evictions import Evictions
from bayplan.scheduler.batch.reservations import Reservations
from bayplan.scheduler.batch.telling import Telling
from bayplan.scheduler.batch.trial import Fitted, Unfit, try_together
from bayplan.scheduler.batch.ungating import Ungating
from bayplan.scheduler.desk import Desk
from bayplan.scheduler.queue import QueuedPod
from bayplan.scheduler.tries import Tries


@dataclass(frozen=True, slots=True)
class Hands:
    """Whoever carries out what a turn comes to."""

    tries: Tries
    ungating: Ungating
    telling: Telling
    evictions: Evictions


class Admitting:
    """Lets groups in that quota has room for."""

    def __init__(
        self, desk: Desk, book: Book, hands: Hands, reservations: Reservations, *, gates: bool
    ) -> None:
        self._desk = desk
        self._book = book
        self._hands = hands
        self._gates = gates
        """Whether quota stays held for pods that asked for the gate, and have no node yet."""
        self._reservations = reservations

    def let_in(self, group: Group, members: Iterable[Member], now: float) -> None:
        """Hold quota for some pods of a group, and take their gates away, or try them."""
        for member in members:
            if not member.reserved:
                self._book.ledger.reserve(member)
        gated = gated_of(members)
        for member in gated:
            self._hands.ungating.start(member.pod)
        if gated:
            self._reservations.begin(group.key, now)
        else:
            self._try(group, members, now)

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
                self._book.ledger.move(member, Status.BINDING)
            self._hands.tries.start(place.entry, place.found, place.assumption, began)
        if not reserved_of(group):
            self._reservations.end(group.key)
        self._hands.evictions.forget(group.key)
        self._book.stir(group.key)

    def _refuse(self, group: Group, unfit: Unfit, began: float) -> None:
        tries, telling = self._hands.tries, self._hands.telling
        rests = self._reservations.rests(group.key, began)
        silent = rests or self._reservations.is_over(group.key)
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
            self._reservations.begin(group.key, began)
        else:
            self.release(group)
        self._book.stir(group.key)

    def _keeps(self, group: Group) -> bool:
        return self._gates and any(one.opted_in for one in group.of_status(Status.PENDING))

    def release(self, group: Group) -> list[Member]:
        """Give back the quota of pods that have no node."""
        released = reserved_of(group)
        for member in released:
            self._book.release(member)
        return released


def gated_of(members: Iterable[Member]) -> list[Member]:
    """Those that have a gate."""
    return [one for one in members if one.gate is not Gate.NONE]
