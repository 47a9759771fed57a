"""Allocate: pods of admitted groups are let through by quota and placed, gang by gang.

Queues take turns; in its turn a queue's first group gets what it needs to start, all or nothing,
and one more pod in each turn after that. Quota comes first: a pod that it does not let through
keeps its gate and waits. One that it lets through loses its gate, whether or not a node takes it;
until a node does, it holds its part of the quota.

What a group gets in its turn is decided as in the scheduler (`gangs`): pods that quota and nodes
both take, until the group can start; else, if quota alone takes enough of them, their gates go and
they hold their quota, which is what nodes are bought for; else nobody is let through, and the group
says what it waits for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bayplan.queues.actions.lines import Lines
from bayplan.queues.actions.volcano import PodByPod
from bayplan.queues.admission import hold_again
from bayplan.queues.asks import needed_first
from bayplan.queues.gangs import Trial, select_by_quota, with_first
from bayplan.queues.groups import Group
from bayplan.queues.members import Gate, Member, Status
from bayplan.queues.orders import member_key
from bayplan.queues.problems import NoRoom, Why
from bayplan.queues.session import Session, Statement


def allocate(session: Session) -> None:
    """Place pods, queue by queue in turns."""
    waiting = {group.key: pods for group, pods in _waiting(session)}
    lines = Lines(session, (session.ledger.groups[key] for key in waiting))
    way = PodByPod(session) if session.rules.gates_of_incomplete_gang else WholeGangs(session)
    while (queue := lines.turns.first()) is not None:
        group = None if is_overused(session, queue) else lines.pop(queue)
        if group is None:
            lines.turns.drop()
            continue
        pods = waiting[group.key]
        if not way.turn(group, pods):
            lines.stop_behind(group)
        elif pods:
            lines.push(group)
        lines.turns.keep()


def is_overused(session: Session, queue: str) -> bool:
    """Whether a queue has all that it deserves, and may have no more."""
    accounts = session.accounts
    if not accounts.policy.caps_at_deserved:
        return False
    return accounts.quota(queue).deserved.fits(accounts.usage(queue).allocated)


def _waiting(session: Session) -> Iterator[tuple[Group, list[Member]]]:
    """The groups that can be placed, with their pods that wait, the last one first."""
    may_go = {Gate.NONE, *session.removable_gates}
    for group in session.groups():
        if group.is_pending or not group.count(Status.PENDING):
            continue
        if (why := group.invalid) is not None:
            session.wait(group, why)
            continue
        light = not session.rules.best_effort_counts_as_placed and not group.is_ready
        pods = [
            one
            for one in group.of_status(Status.PENDING)
            if one.gate in may_go and (light or not one.is_best_effort)
        ]
        if pods:
            yield group, sorted(pods, key=member_key, reverse=True)
        elif not group.is_ready:
            session.wait(group, Why.FOREIGN_GATE)


class WholeGangs:
    """Turns in which a group gets all that it needs to start, or nothing; then one pod each."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ledger = session.ledger
        self._placement = session.placement
        self._refused: dict[str, NoRoom] = {}
        """By group why quota has refused one of its pods."""
        self._settle()

    def _settle(self) -> None:
        """Let reservations stand as far as quota goes, the first groups' first.

        A pod reserves by its own word, that it has lost its gate. It may never have had one, and
        quota may have been cut since.
        """
        groups = self._session.groups()
        waiting = (one for group in groups for one in group.of_status(Status.PENDING))
        hold_again(self._ledger, [one for one in waiting if one.reserved])

    def turn(self, group: Group, pods: list[Member]) -> bool:
        """One turn of a group; whether it placed something, and quota has refused it nothing."""
        if group.is_ready or not group.is_gang:
            return self._one_more(group, pods)
        if group.placed_count + len(pods) < group.min_member:
            self._session.wait(group, Why.FOREIGN_GATE)
            return False
        order = needed_first(group, pods[::-1])
        order.sort(key=lambda one: not one.reserved)
        trial = Trial(self._session, group, self._refusal)
        if trial.run(order):
            pods[:] = [one for one in pods if one.status is Status.PENDING]
            return trial.statement.end(group)
        trial.statement.discard()
        self._let_through(group, trial.taken, order)
        return False

    def _refusal(self, member: Member) -> NoRoom | None:
        return self._ledger.may_allocate(member) or self._ledger.over_share(member)

    def _let_through(self, group: Group, fitting: Sequence[Member], pods: Sequence[Member]) -> None:
        """Let the gates of a gang go if quota takes it, although nodes take only some of it."""
        room_for, order = self._ledger.room_for(group), with_first(fitting, pods)
        chosen = select_by_quota(group, order, room_for, self._left_to_others)
        if isinstance(chosen, NoRoom):
            self._session.wait(group, chosen)
            return
        statement = Statement(self._session)
        for member in chosen:
            statement.reserve(member)
        self._leave_waiting(statement, group, chosen, fitting)

    def _leave_waiting(
        self,
        statement: Statement,
        group: Group,
        pods: Sequence[Member],
        fitting: Sequence[Member] = (),
    ) -> None:
        """Let pods wait for nodes; quota stays held for them if they ask for gates."""
        statement.commit()
        fit = set(fitting)
        self._session.plan.unplaced += [one.key for one in pods if one not in fit]
        self._session.wait(group, Why.NO_NODE)
        if not any(one.opted_in for one in pods):
            for member in pods:
                self._ledger.release(member)

    def _left_to_others(self, member: Member) -> NoRoom | None:
        """Why a pod leaves nodes that there are to others: it is more than its queue's share."""
        over = self._ledger.over_share(member)
        return over if over is not None and self._placement.choose(member) else None

    def _one_more(self, group: Group, pods: list[Member]) -> bool:
        """Place one more pod; those that quota refuses wait, those that no node takes are let
        through on the way. Whether it may have another turn, and nobody waits behind it.
        """
        placed = False
        while pods and not placed:
            placed = self._place(group, pods.pop())
        refused = self._refused.get(group.key)
        if refused is not None:
            self._session.wait(group, refused)
        return refused is None or bool(pods)

    def _place(self, group: Group, member: Member) -> bool:
        refused = self._ledger.may_allocate(member) or self._left_to_others(member)
        if refused is not None:
            self._refused.setdefault(group.key, refused)
            return False
        statement = Statement(self._session)
        choice = self._placement.choose(member)
        if choice is None:
            statement.reserve(member)
            self._leave_waiting(statement, group, [member])
            return False
        statement.take(member, choice)
        statement.commit()
        return True
