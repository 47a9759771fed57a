"""Backfill: pods that request nothing are placed wherever they may be; they take no quota.

They wait until their gang can start without them, or with those that are placed here.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.queues.actions.lines import Lines
from bayplan.queues.groups import Group
from bayplan.queues.members import Gate, Member, Status
from bayplan.queues.orders import member_key
from bayplan.queues.session import Placed, Session


def backfill(session: Session) -> None:
    """Place pods that request nothing, queue by queue."""
    lines = Lines(session, _groups(session))
    while (queue := lines.turns.first()) is not None:
        if session.rules.backfill_into_closed or session.ledger.tree.refusal(queue) is None:
            while (group := lines.pop(queue)) is not None:
                _fill(session, group)
        lines.turns.drop()


def _groups(session: Session) -> Iterator[Group]:
    for group in session.groups():
        if group.is_pending or not group.count(Status.PENDING) or group.invalid is not None:
            continue
        if group.is_ready or session.rules.best_effort_counts_as_placed:
            yield group


def _fill(session: Session, group: Group) -> None:
    for member in sorted(_light(session, group), key=member_key):
        session.ungate(member)
        choice = session.placement.choose(member)
        if choice is not None and choice.now:
            session.placement.place(member, choice.node)
            member.node = choice.node
            session.ledger.move(member, Status.ALLOCATED)
            _bind_complete(session, group)
        else:
            session.plan.unplaced.append(member.key)


def _light(session: Session, group: Group) -> list[Member]:
    removed = () if session.rules.best_effort_stays_gated else session.removable_gates
    gates = {Gate.NONE, *removed}
    pending = group.of_status(Status.PENDING)
    return [one for one in pending if one.is_best_effort and one.gate in gates]


def _bind_complete(session: Session, group: Group) -> None:
    if not group.is_ready:
        return
    for member in list(group.of_status(Status.ALLOCATED)):
        session.ledger.move(member, Status.BINDING)
        session.plan.placed.append(Placed(member.key, member.node))
