"""Holding: quota of pods without a node, after a failed bind, a restart, or for too long."""

from __future__ import annotations

import logging

from bayplan.kube.pods import Pod
from bayplan.queues import Gate, Group, Ledger, Status
from bayplan.queues.registry import QueueRegistry, reserved_of
from bayplan.scheduler.batch.admitting import Admitting, Hands, gated_of
from bayplan.scheduler.batch.reservations import Reservations
from bayplan.scheduler.batch.telling import says_timed_out
from bayplan.scheduler.desk import Desk

log = logging.getLogger(__name__)


class Holding:
    """Sees to it that quota is held once, and not for ever."""

    def __init__(
        self,
        desk: Desk,
        book: QueueRegistry,
        hands: Hands,
        reservations: Reservations,
        admitting: Admitting,
    ) -> None:
        self._desk = desk
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
            self._reservations.begin(member.group, self._desk.clock.monotonic())

    def recover(self) -> None:
        """Hold quota again for pods that were let in before we came, as far as it goes."""
        now = self._desk.clock.monotonic()
        for group in self._book.recover():
            self._reservations.begin(group, now)

    def settle(self) -> None:
        """Have those ask again whose quota is lowered, or who are in another queue now."""
        for member in self._book.settle():
            self._hands.ungating.drop(member.pod.metadata.uid)
            self._desk.queue.activate(member.pod.metadata.uid)
            self._book.stir(member.group)

    def see_to_times(self, now: float) -> None:
        """Give back what has been held for too long, and let those hold again who have rested."""
        for due in self._reservations.due(now):
            group = self._ledger.groups.get(due.group)
            if group is not None and due.is_over:
                self._time_out(group, now)
            elif group is not None:
                for member in group.of_status(Status.PENDING):
                    self._desk.queue.activate(member.pod.metadata.uid)
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
