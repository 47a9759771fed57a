"""Admission: what quota decides about a group's turn, before any node is looked at.

The scheduler decides every turn by `decide_turn`, and so does `survey`, which only looks.

`hold_again` holds quota again for pods without a node, after quota was lowered, a queue was closed,
or a restart, when only the pods themselves say that they were admitted. It is held as far as it
goes, the first groups' first, and of a group all or nothing. A gang of which some have nodes
already is not split: what it needs to start stays held.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.queues.asks import Asking
from bayplan.queues.gangs import select_by_quota
from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger
from bayplan.queues.members import Member
from bayplan.queues.orders import group_key
from bayplan.queues.problems import NoRoom, Why
from bayplan.queues.resources import NOTHING, Resources


@dataclass(frozen=True, slots=True)
class Admitted:
    """Quota has room: for these pods, or, if there are none, for the group itself."""

    members: tuple[Member, ...]
    within_share: bool
    """Whether its queue has no more than it deserves with them."""


def decide_turn(
    ledger: Ledger, group: Group, asked: Asking, *, beyond_share: bool
) -> Admitted | NoRoom:
    """Decide by quota what a group gets in its turn; if it asks to be admitted, it is.

    Pods with which its queue has more than it deserves wait, unless it is the turn of such.
    """
    if asked.ask.needs is not None:
        return _admit(ledger, group) or Admitted((), within_share=True)
    chosen = chosen_by_quota(ledger, group, asked)
    if isinstance(chosen, NoRoom):
        return chosen
    over = ledger.asks_beyond_share(group, asked.ask.request)
    return over if over is not None and not beyond_share else Admitted(chosen, over is None)


def _admit(ledger: Ledger, group: Group) -> NoRoom | None:
    """Admit a group; why not, if there is no room for what it needs."""
    no_room = ledger.may_enqueue(group)
    if no_room is None:
        ledger.admit(group)
    return no_room


def chosen_by_quota(ledger: Ledger, group: Group, asked: Asking) -> tuple[Member, ...] | NoRoom:
    """The pods that quota has room for, of those that a group asks for or instead of some."""
    if all(one.reserved for one in asked.members):
        return asked.members
    no_room = ledger.may_allocate_all(group, asked.members)
    if no_room is None or not asked.spare:
        return no_room or asked.members
    return select_by_quota(group, asked.pods, ledger.room_for(group))


def fits_when_empty(ledger: Ledger, group: Group, asked: Asking) -> bool:
    """Whether its queue would have room for what a group asks if it had nothing else."""
    nodes, path = ledger.tree.nodes, ledger.tree.path(group.queue)

    def room_for(request: Resources, _held: Resources = NOTHING) -> NoRoom | None:
        over = (request.over(nodes[name].quota.real_capability, request.asked) for name in path)
        return NoRoom(Why.QUOTA, group.queue, "") if any(over) else None

    if asked.ask.needs is not None:
        return room_for(asked.ask.needs) is None
    if not asked.spare:
        return room_for(asked.ask.request) is None
    return not isinstance(select_by_quota(group, asked.pods, room_for), NoRoom)


def hold_again(ledger: Ledger, members: Iterable[Member]) -> dict[str, list[Member]]:
    """Hold quota for these pods as far as it goes, and for no others of them; says for whom, by
    group.
    """
    by_group: dict[str, list[Member]] = {}
    for member in members:
        by_group.setdefault(member.group, []).append(member)
        if member.reserved:
            ledger.release(member)
    groups = sorted((ledger.groups[key] for key in by_group), key=_turn)
    return {one.key: by_group[one.key] for one in groups if _held(ledger, one, by_group[one.key])}


def _turn(group: Group) -> tuple[object, ...]:
    return not _has_begun(group), *group_key(group)


def _has_begun(group: Group) -> bool:
    return group.allocated_count > 0 and not group.is_ready


def _held(ledger: Ledger, group: Group, members: Iterable[Member]) -> bool:
    pods = list(members)
    if not group.is_known:
        return False
    if not _has_begun(group) and ledger.may_allocate_all(group, pods) is not None:
        return False
    for member in pods:
        ledger.reserve(member)
    return True
