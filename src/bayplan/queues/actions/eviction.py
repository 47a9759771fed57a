"""Evictions for groups that cannot start: preempt in their own queue, reclaim from others.

- *Preempt*: a group takes room from groups of its own queue that matter less. Within a group, too,
  pods may leave for those of higher priority.
- *Reclaim*: a queue that has less than it deserves takes room from queues that have more.

Who may leave is in `victims`. Before anybody has to, a node is looked for that has room. Nodes
are tried by name, and not all of many; victims go one by one, and only until there is room. Where
disruption budgets count, nobody leaves whom they protect as long as others could, there or on
another node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from bayplan.queues.actions.allocate import is_overused
from bayplan.queues.actions.lines import Lines
from bayplan.queues.actions.victims import preemptable, reclaimable, somebody_yields
from bayplan.queues.groups import Group
from bayplan.queues.members import Gate, Member, Status
from bayplan.queues.orders import member_key
from bayplan.queues.placement import Choice
from bayplan.queues.session import Evicting, Session, Statement

MOST_TRIED = 100
"""Nodes with victims on them that are looked at for one pod."""
VictimsOn = Callable[[Member, str], list[Member] | None]
"""The pods that may leave a node for another, in their order; None if it is not to be used."""
HasRoom = Callable[[Member, str], bool]
Anybody = Callable[[Member], bool]
"""Whether anybody may leave any node for a pod: where nobody may, no node has to be looked at."""


def starving(session: Session) -> list[Group]:
    """The admitted groups that have too few pods with a node, and overtake nobody."""
    return [
        group
        for group in session.groups()
        if not group.is_pending
        and group.invalid is None
        and group.is_starving
        and not session.is_held_up(group)
    ]


def in_need(session: Session, group: Group) -> list[Member]:
    """A group's pods that wait for room and for nobody else's gate, the last one first."""
    removed = () if session.rules.gated_pods_do_not_preempt else session.removable_gates
    gates = {Gate.NONE, *removed}
    pending = group.of_status(Status.PENDING)
    return sorted((one for one in pending if one.gate in gates), key=member_key, reverse=True)


class RoomMaker:
    """Makes room in one way: by preempting, or by reclaiming."""

    def __init__(
        self,
        session: Session,
        action: Evicting,
        victims_on: VictimsOn,
        has_room: HasRoom,
        anybody: Anybody = lambda _: True,
    ) -> None:
        self._session = session
        self._action = action
        self._victims_on = victims_on
        self._has_room = has_room
        self._anybody = anybody

    def make(self, statement: Statement, member: Member) -> bool:
        """Find a node for a pod, and let those leave it that have to; whether there is one."""
        if member.never_preempts:
            return False
        if not self._session.rules.needless_eviction and self._fits_already(statement, member):
            return True
        protected: list[tuple[str, list[Member]]] = []
        for node, victims in islice(self._candidates(member), MOST_TRIED):
            kept, others = self._session.by_budget(victims)
            if self._clear(statement, member, node, others):
                return True
            if kept:
                protected.append((node, others + kept))
        return any(self._clear(statement, member, *one) for one in protected)

    def _clear(
        self, statement: Statement, member: Member, node: str, victims: list[Member]
    ) -> bool:
        """Let those leave a node that have to; whether that makes room."""
        trial = Statement(self._session)
        if not self._try(trial, member, node, victims):
            trial.discard()
            return False
        statement.merge(trial)
        return True

    def _candidates(self, member: Member) -> Iterator[tuple[str, list[Member]]]:
        """The nodes that would take a pod if all left that may, with these."""
        if not (self._session.rules.needless_eviction or self._anybody(member)):
            return
        for node in self._session.placement.helpful(member):
            victims = self._victims_on(member, node)
            if victims is None or not (victims or self._session.rules.needless_eviction):
                continue
            if self._session.placement.fits_without(member, node, victims):
                yield node, victims

    def _try(self, trial: Statement, member: Member, node: str, victims: list[Member]) -> bool:
        for victim in victims:
            if self._has_room(member, node):
                break
            trial.evict(victim, member, self._action)
        if not self._has_room(member, node):
            return False
        trial.take(member, Choice(node, now=False))
        return True

    def _fits_already(self, statement: Statement, member: Member) -> bool:
        """Take a node that has room, or will have, without anybody's leaving for it."""
        if self._session.ledger.may_allocate(member) is not None:
            return False
        choice = self._session.placement.choose(member)
        if choice is None:
            return False
        statement.take(member, choice)
        return True


def preempt(session: Session) -> None:
    """Make room in queues for their own groups."""
    lines = Lines(session, starving(session))
    while (queue := lines.turns.first()) is not None:
        groups = []
        while (group := lines.pop(queue)) is not None:
            groups.append(group)
            preempt_for(session, group)
        for group in groups:
            _within(session, group)
        lines.turns.drop()


def preempt_for(session: Session, group: Group) -> bool:
    """Make room in its queue for one group; whether it can start once others have left.

    What it comes to is in the session's plan: who leaves, and which nodes are kept for whom.
    """
    statement, pods = Statement(session), in_need(session, group)
    maker = _maker(session, own=False)
    while group.is_starving and pods:
        maker.make(statement, pods.pop())
    statement.end(group)
    return group.is_pipelined


def _within(session: Session, group: Group) -> None:
    maker = _maker(session, own=True)
    for member in reversed(in_need(session, group)):
        statement = Statement(session)
        made = maker.make(statement, member)
        if not made or not (group.is_pipelined or session.rules.room_within_incomplete_gang):
            statement.discard()
            return
        statement.commit(bind=group.is_ready)


def _maker(session: Session, *, own: bool) -> RoomMaker:
    victims_on = partial(preemptable, session, own=own)
    has_room = partial(_has_room_to_preempt, session)
    if own:
        return RoomMaker(session, "preempt", victims_on, has_room)
    return RoomMaker(session, "preempt", victims_on, has_room, partial(somebody_yields, session))


def _has_room_to_preempt(session: Session, member: Member, node: str) -> bool:
    if session.ledger.may_allocate(member) is not None:
        return False
    return session.placement.fits_without(member, node)


def reclaim(session: Session) -> None:
    """Make room for queues in others."""
    lines = Lines(session, starving(session))
    while (queue := lines.turns.first()) is not None:
        if not is_overused(session, queue):
            while (group := lines.pop(queue)) is not None:
                reclaim_for(session, group)
        lines.turns.drop()


def reclaim_for(session: Session, group: Group) -> bool:
    """Make room in other queues for one group; whether it can start once others have left.

    What it comes to is in the session's plan: who leaves, and which nodes are kept for whom.
    """
    statement, pods = Statement(session), in_need(session, group)
    maker = RoomMaker(
        session, "reclaim", partial(reclaimable, session), partial(_has_room_to_reclaim, session)
    )
    while group.is_starving and pods:
        member = pods.pop()
        if _may_reclaim(session, member, group.queue):
            maker.make(statement, member)
    statement.end(group)
    return group.is_pipelined


def _may_reclaim(session: Session, member: Member, queue: str) -> bool:
    """Whether a queue would, with a pod, still have no more than it deserves."""
    accounts, request = session.accounts, member.request
    if not accounts.tree.is_open(queue):
        return False
    used = accounts.usage(queue).allocated + request
    return accounts.policy.may_reclaim(accounts.quota(queue), used, request)


def _has_room_to_reclaim(session: Session, member: Member, node: str) -> bool:
    """Whether a node will have room, and so have the queues above the reclaimer's."""
    if not session.placement.fits_without(member, node):
        return False
    if session.rules.reclaim_ignores_ancestor_limit:
        return True
    return session.ledger.may_allocate(member) is None
