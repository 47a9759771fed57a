"""Allocating whole gangs: all that a group needs to start is let through together, or nothing.

First pods are looked for that both quota and nodes take, until the group can start; if there are
enough of them, they are placed. If not, but quota alone would take enough of them, their gates go
and they hold their quota: that is what nodes are bought for. Otherwise nobody is let through, and
the group says what it waits for.

A group that has started, or that any one of its pods can start, gets its pods one by one, in the
same manner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from bayplan.queues.groups import Group
from bayplan.queues.holding import hold_again
from bayplan.queues.members import Gate, Member, Status
from bayplan.queues.problems import NoRoom, Why
from bayplan.queues.session import Session, Statement


class WholeGangs:
    """Our way to give groups their turns."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ledger = session.ledger
        self._placement = session.placement
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
        """One turn of a group; whether it placed something and may have another."""
        pods[:] = [one for one in pods if one.gate is not Gate.OURS_UNASKED]
        if group.is_ready or not group.is_gang:
            return self._one_more(group, pods)
        if not self._can_be_reached(group, len(pods)):
            self._session.wait(group, Why.FOREIGN_GATE)
            return False
        order = _needed_first(group, pods[::-1])
        statement = Statement(self._session)
        self._place(statement, group, order)
        if group.is_pipelined:
            pods[:] = [one for one in pods if one.status is Status.PENDING]
            return statement.end(group)
        statement.discard()
        self._let_through(group, order)
        return False

    # -- what a group needs to start -------------------------------------------------------------

    def _place(self, statement: Statement, group: Group, pods: Sequence[Member]) -> None:
        """Place pods until the group can start."""
        hopeless: set[Hashable] = set()
        for tried, member in enumerate(pods):
            if group.is_ready or not self._can_be_reached(group, len(pods) - tried):
                return
            like = self._placement.likeness(member)
            if like in hopeless or self._refusal(member) is not None:
                continue
            choice = self._placement.choose(member)
            if choice is None:
                hopeless.add(like)
            else:
                statement.take(member, choice)

    @staticmethod
    def _can_be_reached(group: Group, left: int) -> bool:
        return group.placed_count + left >= group.min_member

    def _refusal(self, member: Member) -> NoRoom | None:
        return self._ledger.may_allocate(member) or self._ledger.over_share(member)

    def _let_through(self, group: Group, pods: Sequence[Member]) -> None:
        """Let the gates of a gang go if quota takes it, although no nodes do."""
        statement = Statement(self._session)
        refusal: NoRoom | None = None
        let: list[Member] = []
        for member in pods:
            if group.is_let_through:
                break
            refused = self._gate_refusal(member)
            if refused is None:
                statement.reserve(member)
                let.append(member)
            refusal = refusal or refused
        if group.is_let_through:
            self._leave_waiting(statement, group, let)
        else:
            statement.discard()
            self._session.wait(group, refusal or Why.FOREIGN_GATE)

    def _leave_waiting(self, statement: Statement, group: Group, pods: list[Member]) -> None:
        """Let pods wait for nodes; quota stays held for them if they ask for gates."""
        statement.commit()
        self._session.plan.unplaced += [one.key for one in pods]
        self._session.wait(group, Why.NO_NODE)
        if not any(one.opted_in for one in pods):
            for member in pods:
                self._ledger.release(member)

    def _gate_refusal(self, member: Member) -> NoRoom | None:
        """Why a pod's gate stays: no quota, or only others' share of the nodes that there are."""
        refused = self._ledger.may_allocate(member)
        if refused is not None:
            return refused
        over = self._ledger.over_share(member)
        return over if over is not None and self._placement.choose(member) else None

    # -- the rest --------------------------------------------------------------------------------

    def _one_more(self, group: Group, pods: list[Member]) -> bool:
        """Place one more pod; those that no node takes are let through on the way. Whether quota
        has refused none.
        """
        while pods:
            member = pods.pop()
            refused = self._gate_refusal(member)
            if refused is not None:
                self._session.wait(group, refused)
                return False
            statement = Statement(self._session)
            choice = self._placement.choose(member)
            if choice is None:
                statement.reserve(member)
                self._leave_waiting(statement, group, [member])
                continue
            statement.take(member, choice)
            statement.commit()
            return True
        return True


def _needed_first(group: Group, pods: list[Member]) -> list[Member]:
    """Pods in their order, but first as many of each task as it needs to start."""
    if not group.counts_roles or not group.min_of_role:
        return pods
    missing = Counter(group.min_of_role) - group.role_counts(ready_only=False)
    first: list[Member] = []
    rest: list[Member] = []
    for member in pods:
        (first if missing[member.role] > 0 else rest).append(member)
        missing[member.role] -= 1
    return first + rest
