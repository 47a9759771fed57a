"""Allocate: pods of admitted groups are let through by quota and placed, gang by gang.

Queues take turns; in its turn a queue's first group gets what it needs to start, all or nothing,
and one more pod in each turn after that. Quota comes first: a pod that it does not let through
keeps its gate and waits. One that it lets through loses its gate, whether or not a node takes it;
until a node does, it holds its part of the quota.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.queues.actions.lines import Lines
from bayplan.queues.actions.pod_by_pod import PodByPod
from bayplan.queues.actions.whole_gangs import WholeGangs
from bayplan.queues.groups import Group
from bayplan.queues.members import Gate, Member, Status
from bayplan.queues.orders import member_key
from bayplan.queues.problems import Why
from bayplan.queues.session import Session


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
    """Whether a queue has all that it deserves by weight, and may have no more."""
    accounts = session.accounts
    if accounts.tree.policy != "proportion" or not session.rules.proportion_caps_at_share:
        return False
    return accounts.quota(queue).deserved.fits(accounts.usage(queue).allocated)


def _waiting(session: Session) -> Iterator[tuple[Group, list[Member]]]:
    """The groups that can be placed, with their pods that wait, the last one first."""
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
            if one.gate is not Gate.FOREIGN and (light or not one.is_best_effort)
        ]
        if pods:
            yield group, sorted(pods, key=member_key, reverse=True)
        elif not group.is_ready:
            session.wait(group, Why.FOREIGN_GATE)
