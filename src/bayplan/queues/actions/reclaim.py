"""Reclaim: a queue that has less than it deserves takes room from queues that have more."""

from __future__ import annotations

from functools import partial

from bayplan.queues.actions.allocate import is_overused
from bayplan.queues.actions.lines import Lines
from bayplan.queues.actions.making_room import RoomMaker, in_need, starving
from bayplan.queues.actions.victims import reclaimable
from bayplan.queues.groups import Group
from bayplan.queues.members import Member
from bayplan.queues.session import Session, Statement


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
        session, "reclaim", partial(reclaimable, session), partial(_has_room, session)
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


def _has_room(session: Session, member: Member, node: str) -> bool:
    """Whether a node will have room, and so have the queues above the reclaimer's."""
    if not session.placement.fits_without(member, node):
        return False
    if session.rules.reclaim_ignores_ancestor_limit:
        return True
    return session.ledger.may_allocate(member) is None
