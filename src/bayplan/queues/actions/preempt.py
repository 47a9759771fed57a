"""Preempt: a group that cannot start takes room from groups of its own queue that matter less.

Within a group, too, pods may leave for those of higher priority.
"""

from __future__ import annotations

from functools import partial

from bayplan.queues.actions.lines import Lines
from bayplan.queues.actions.making_room import RoomMaker, in_need, starving
from bayplan.queues.actions.victims import preemptable, somebody_yields
from bayplan.queues.groups import Group
from bayplan.queues.members import Member
from bayplan.queues.session import Session, Statement


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
    has_room = partial(_has_room, session)
    if own:
        return RoomMaker(session, "preempt", victims_on, has_room)
    return RoomMaker(session, "preempt", victims_on, has_room, partial(somebody_yields, session))


def _has_room(session: Session, member: Member, node: str) -> bool:
    if session.ledger.may_allocate(member) is not None:
        return False
    return session.placement.fits_without(member, node)
