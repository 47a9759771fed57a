"""Quota that is held for pods without a node, held again after something has changed.

Quota may have been lowered since, or a queue closed; after a restart pods say only themselves that
they were let in. What is held then is held as far as quota goes, the first groups' first, and of a
group all or nothing. A gang of which some have nodes already is not split: what it needs to start
stays held.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger
from bayplan.queues.members import Member
from bayplan.queues.orders import group_key


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
