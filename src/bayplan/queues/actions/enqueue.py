"""Enqueue: groups that wait are admitted to their queues while there is room for what they need."""

from __future__ import annotations

from bayplan.queues.actions.lines import Lines
from bayplan.queues.groups import Group
from bayplan.queues.problems import NoRoom
from bayplan.queues.session import Session


def enqueue(session: Session) -> None:
    """Admit groups, queue by queue in turns."""
    lines = Lines(session, (group for group in session.groups() if group.is_pending))
    while (group := lines.next()) is not None:
        if not _admit(session, group):
            lines.stop_behind(group)
        lines.turns.keep()


def _admit(session: Session, group: Group) -> bool:
    refusal = _refusal(session, group)
    if refusal is not None:
        session.wait(group, refusal)
        return False
    session.ledger.admit(group)
    session.plan.admitted.append(group.key)
    return True


def _refusal(session: Session, group: Group) -> NoRoom | None:
    if group.min_resources is None and session.rules.closed_without_min_resources:
        return None
    return session.ledger.may_enqueue(group)
