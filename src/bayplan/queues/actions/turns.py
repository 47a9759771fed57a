"""Turns over a still picture: groups are admitted, gates go, and pods are placed, gang by gang.

Queues take turns; in its turn a queue's first group gets what it needs to start, all or nothing,
and one more pod in each turn after that (`bayplan.queues.turns`). Pods that quota takes lose their
gates whether or not nodes take them; until a node does, they hold their part of the quota.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.queues.admission import Admitted, restore_reservations
from bayplan.queues.gangs import pods_without_nodes, try_nodes, with_first
from bayplan.queues.groups import Group
from bayplan.queues.members import Gate, Member, TaskStatus
from bayplan.queues.problems import WaitCode
from bayplan.queues.requests import Candidates, Stage
from bayplan.queues.session import Session, Statement
from bayplan.queues.turns import SchedulingTurns, Turn

_NOW = 0.0
"""No time goes by in a cycle."""


def enqueue(session: Session) -> None:
    """Admit groups while there is quota for what they need, queue by queue in turns."""
    _CycleTurns(session, (group for group in session.groups() if group.is_pending)).run()


def allocate(session: Session) -> None:
    """Place pods of admitted groups, queue by queue in turns."""
    _settle(session)
    _CycleTurns(session, (group for group in session.groups() if not group.is_pending)).run()


def _settle(session: Session) -> None:
    """Keep reservations as far as quota goes, the first groups' first.

    A pod without its gate counts as reserved. It may never have had one, and quota may have been
    lowered since.
    """
    waiting = (one for group in session.groups() for one in group.of_status(TaskStatus.PENDING))
    restore_reservations(session.ledger, [one for one in waiting if one.reserved])


class _CycleTurns:
    """The turns of some groups, until none of them can be served."""

    def __init__(self, session: Session, groups: Iterable[Group]) -> None:
        self._session = session
        self._ledger = session.ledger
        self._tried: set[str] = set()
        """The pods that no node took."""
        candidates = Candidates()
        self._turns = SchedulingTurns(session.ledger, candidates, self._stage_of)
        for group in groups:
            for member in group.of_status(TaskStatus.PENDING):
                candidates.put(member)
            self._update(group)

    def run(self) -> None:
        """Give all turns that there are."""
        while (turn := self._turns.next(_NOW)) is not None:
            self._serve(turn)
        for key in self._turns.order:
            if (reason := self._turns.order.refusal(key)) is not None:
                self._session.wait(self._ledger.groups[key], reason)

    def _stage_of(self, member: Member) -> Stage:
        is_held = member.gate is not Gate.NONE and member.gate not in self._session.removable_gates
        if is_held or member.status is not TaskStatus.PENDING:
            return Stage.ELSEWHERE
        if member.key in self._tried:
            return Stage.RESTING
        return Stage.HELD if member.gate is Gate.NONE else Stage.GATED

    def _update(self, group: Group) -> None:
        if (reason := self._turns.update(group, _NOW)) is not None:
            self._session.wait(group, reason)

    def _serve(self, turn: Turn) -> None:
        decided = self._turns.decide(turn, _NOW)
        if not isinstance(decided, Admitted):
            for key, reason in decided.waiting.items():
                self._session.wait(self._ledger.groups[key], reason)
            return
        if not decided.members:
            self._session.plan.admitted.append(turn.group.key)
            return
        self._place(turn, decided)
        if turn.group.is_ready or not turn.group.is_pipelined:
            self._update(turn.group)

    def _place(self, turn: Turn, decided: Admitted) -> None:
        group, requested = turn.group, turn.requested
        pods = with_first(decided.members, requested.pods)
        trial = try_nodes(self._session, group, pods, is_gang=requested.is_gang)
        if trial.is_complete:
            trial.statement.commit(bind=group.is_ready or not requested.is_gang)
            return
        trial.statement.discard()
        self._tried.update(one.key for one in pods)
        waiting = pods_without_nodes(self._ledger, group, requested, decided.members, trial.taken)
        self._leave_waiting(group, waiting, trial.taken)

    def _leave_waiting(
        self, group: Group, pods: Iterable[Member], fitting: Iterable[Member]
    ) -> None:
        """Let pods wait for nodes; quota stays reserved for them if they ask for gates."""
        statement, members, fit = Statement(self._session), list(pods), set(fitting)
        for member in members:
            statement.reserve(member)
        statement.commit()
        self._session.plan.unplaced += [one.key for one in members if one not in fit]
        self._session.wait(group, WaitCode.NO_NODE)
        if not any(one.opted_in for one in members):
            for member in members:
                self._ledger.release(member)
