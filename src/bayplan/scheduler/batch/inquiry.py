"""Asking groups, one after another, what they wait for.

Who has room takes it before the next is asked, so that of two groups for one place the second is
told that there is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.queues import NOTHING, Gate, Group, Member, NoRoom, Resources, Status, Why
from bayplan.queues.asks import Asking, Stage, asks_of
from bayplan.queues.gangs import chosen_by_quota
from bayplan.scheduler.batch.book import Book
from bayplan.scheduler.batch.lineup import FIFO
from bayplan.scheduler.messages import POD_SCHEDULED

_OURS = (Gate.OURS, Gate.OURS_UNASKED)
_WAITS_FOR_ITSELF = (Why.NOT_ENOUGH_PODS, Why.NOT_ENOUGH_PODS_OF_TASK, Why.FOREIGN_GATE)
"""What keeps a group from starting that stands in no other's way."""


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """A group that has pods without a node, and what it waits for."""

    group: str
    queue: str
    position: int
    """Its place among those that wait in its queue, from 1."""
    pods: tuple[str, ...]
    gated: int
    """How many of these have our gate."""
    asks: Resources
    """What it needs of the quota next."""
    why: Why | None
    """What it waits for; None if its queue has room for it."""
    text: str

    @property
    def is_for_queue(self) -> bool:
        """Whether it waits for its queue, and not for nodes."""
        return self.why not in {None, Why.NO_NODE}


class Inquiry:
    """Groups as they are asked, one after another."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._ledger = book.ledger
        self._waiting: dict[str, list[WaitingGroup]] = {}
        self._first: dict[str, str] = {}
        """By strict queue the first group that has no room."""

    def ask_all(self, groups: Iterable[Group]) -> dict[str, list[WaitingGroup]]:
        """By queue those who wait in it, and for what."""
        for group in groups:
            self._ask(group)
        return self._waiting

    def _ask(self, group: Group) -> None:
        """Note what a group waits for; one that waits for nodes alone has its room from now on."""
        pending = list(group.of_status(Status.PENDING))
        asked = self._asked(group)
        asks = _amount(asked)
        no_room = asked if isinstance(asked, NoRoom) else self._no_room(group, asked or ())
        if no_room is None and asked is not None:
            no_room = _no_node(group, pending)
        line = self._waiting.setdefault(group.queue, [])
        line.append(
            WaitingGroup(
                group=group.key,
                queue=group.queue,
                position=len(line) + 1,
                pods=tuple(sorted(one.key for one in pending)),
                gated=sum(one.gate in _OURS for one in pending),
                asks=asks,
                why=no_room.why if no_room is not None else None,
                text=str(no_room) if no_room is not None else "its queue has room for it",
            )
        )

    def _asked(self, group: Group) -> tuple[Asking, ...] | NoRoom | None:
        if not group.is_known:
            text = f"PodGroup {group.key} does not exist"
            return NoRoom(Why.BAD_GROUP, group.queue, text)
        refusal = self._ledger.tree.refusal(group.queue)
        return refusal or asks_of(group, self._book.candidates, _stage_of)

    def _no_room(self, group: Group, asked: tuple[Asking, ...]) -> NoRoom | None:
        """Why a group that asks is not let in, or why it has nothing to ask for; who has room takes
        it.
        """
        if not asked:
            foreign = all(one.gate is Gate.FOREIGN for one in group.of_status(Status.PENDING))
            text = "its pods are held by others' gates"
            return NoRoom(Why.FOREIGN_GATE, group.queue, text) if foreign else None
        if (first := self._first.get(group.queue)) is not None:
            text = f"group {first} is before it, and nobody overtakes in queue {group.queue}"
            return NoRoom(Why.EARLIER_GROUP, group.queue, text)
        no_room = self._admit(group) or self._let_in(group, asked)
        stops = no_room is not None and no_room.why not in _WAITS_FOR_ITSELF
        if stops and self._is_strict(group.queue):
            self._first[group.queue] = group.key
        return no_room

    def _admit(self, group: Group) -> NoRoom | None:
        """Admit a group where there is room; why it has to wait all the same, if it has."""
        if not group.is_pending:
            return None
        no_room = self._ledger.may_enqueue(group)
        if no_room is None:
            self._ledger.admit(group)
            again = self._asked(group)
            no_room = again if isinstance(again, NoRoom) else None
        return no_room

    def _let_in(self, group: Group, asked: tuple[Asking, ...]) -> NoRoom | None:
        """Hold quota for what a group asks for; why there is none for the first, if for nothing."""
        answers = [chosen_by_quota(self._ledger, group, one) for one in asked]
        for chosen in answers:
            if not isinstance(chosen, NoRoom):
                for member in chosen:
                    if not member.reserved:
                        self._ledger.reserve(member)
                return None
        return next(one for one in answers if isinstance(one, NoRoom))

    def _is_strict(self, queue: str) -> bool:
        node = self._ledger.tree.get(queue)
        return node is not None and node.queue.spec.dequeue_strategy == FIFO


def _amount(asked: tuple[Asking, ...] | NoRoom | None) -> Resources:
    """What a group needs of the quota next."""
    return asked[0].ask.request if isinstance(asked, tuple) else NOTHING


def _no_node(group: Group, pending: Iterable[Member]) -> NoRoom | None:
    """What a pod of a group that has room was told of nodes."""
    for member in pending:
        for one in member.pod.status.conditions:
            if (
                one.type == POD_SCHEDULED
                and one.reason == "Unschedulable"
                and member.gate is Gate.NONE
            ):
                return NoRoom(Why.NO_NODE, group.queue, one.message or "no node fits")
    return None


def _stage_of(member: Member) -> Stage:
    """Where a pod stands, as far as its object tells."""
    if member.gate is Gate.FOREIGN:
        return Stage.ELSEWHERE
    return Stage.HELD if member.gate is Gate.NONE else Stage.GATED
