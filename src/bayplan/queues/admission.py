"""Admission: what quota decides about a group's turn, before any node is looked at.

`restore_reservations` reserves quota again for pods without a node: after quota was lowered, a
queue was closed, or a restart, when only the pods show that they were admitted. It is reserved as
far as it goes, the first groups' first, and for a group all or nothing. A gang of which some have
nodes already is not split: what it needs to start stays reserved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.queues.gangs import select_by_quota
from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger
from bayplan.queues.members import Member
from bayplan.queues.orders import group_key
from bayplan.queues.problems import QueueReason, WaitCode
from bayplan.queues.requests import GroupRequest
from bayplan.queues.resources import NOTHING, Resources


@dataclass(frozen=True, slots=True)
class Admitted:
    """Quota is available for these pods, or, if there are none, for the group itself."""

    members: tuple[Member, ...]
    within_share: bool
    """Whether its queue has no more than it deserves with them."""


def decide_turn(
    ledger: Ledger, group: Group, requested: GroupRequest, *, beyond_share: bool
) -> Admitted | QueueReason:
    """Decide by quota what a group gets in its turn; if it asks to be admitted, it is.

    Pods with which its queue has more than it deserves wait, unless it is the turn of such.
    """
    if requested.quota.needs is not None:
        return _admit(ledger, group) or Admitted((), within_share=True)
    chosen = chosen_by_quota(ledger, group, requested)
    if isinstance(chosen, QueueReason):
        return chosen
    over = ledger.check_share(group, requested.quota.request)
    return over if over is not None and not beyond_share else Admitted(chosen, over is None)


def _admit(ledger: Ledger, group: Group) -> QueueReason | None:
    """Admit a group; return the reason if quota does not allow it."""
    reason = ledger.may_enqueue(group)
    if reason is None:
        ledger.admit(group)
    return reason


def chosen_by_quota(
    ledger: Ledger, group: Group, requested: GroupRequest
) -> tuple[Member, ...] | QueueReason:
    """Return the pods that quota allows: those that were requested, or spare ones instead."""
    if all(one.reserved for one in requested.members):
        return requested.members
    reason = ledger.may_allocate_all(group, requested.members)
    if reason is None or not requested.spare:
        return reason or requested.members
    return select_by_quota(group, requested.pods, ledger.quota_check_of(group))


def fits_when_empty(ledger: Ledger, group: Group, requested: GroupRequest) -> bool:
    """Whether its queue would have room for what a group asks if it had nothing else."""
    nodes, path = ledger.tree.nodes, ledger.tree.path(group.queue)

    def quota_check_of(request: Resources, _held: Resources = NOTHING) -> QueueReason | None:
        over = (request.over(nodes[name].quota.real_capability, request.nonzero) for name in path)
        return QueueReason(WaitCode.QUOTA, group.queue, "") if any(over) else None

    if requested.quota.needs is not None:
        return quota_check_of(requested.quota.needs) is None
    if not requested.spare:
        return quota_check_of(requested.quota.request) is None
    return not isinstance(select_by_quota(group, requested.pods, quota_check_of), QueueReason)


def restore_reservations(ledger: Ledger, members: Iterable[Member]) -> dict[str, list[Member]]:
    """Reserve quota for these pods as far as it goes; returns those that have it, by group."""
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
