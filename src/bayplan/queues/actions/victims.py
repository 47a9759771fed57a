"""The pods that may be evicted: for a pod of the same queue, or for one of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bayplan.queues.groups import Group
from bayplan.queues.members import Member, TaskStatus
from bayplan.queues.orders import VictimOrder
from bayplan.queues.resources import Resources
from bayplan.queues.session import Session


def spare_gangs(session: Session, victims: Iterable[Member]) -> list[Member]:
    """Return the victims whose gangs can do without them, in the same order."""
    left: Counter[str] = Counter()
    spared: list[Member] = []
    for member in victims:
        group = session.group_of(member)
        if group.key not in left:
            left[group.key] = group.ready_count - group.min_member
        if left[group.key] > 0:
            left[group.key] -= 1
            spared.append(member)
    return spared


def in_order(session: Session, victims: Iterable[Member], queue: str) -> list[Member]:
    """Sort the victims for a pod of a queue; those that budgets protect are last."""
    order = VictimOrder(session.accounts, session.ledger.groups, queue)
    protected, others = session.by_budget(sorted(victims, key=order.key))
    return others + protected


# -- in the same queue ---------------------------------------------------------------------------


def preemptable(session: Session, preemptor: Member, node: str, *, own: bool) -> list[Member]:
    """Return the possible victims on a node for a pod of their queue, or (`own`) group."""
    group = session.group_of(preemptor)
    found = [
        one
        for one in session.members_on(node)
        if one.status in {TaskStatus.BOUND, TaskStatus.RUNNING}
        and one.preemptable
        and (one.is_best_effort or not preemptor.is_best_effort)
        and _yields(session, one, preemptor, group, own=own)
    ]
    return spare_gangs(session, in_order(session, found, group.queue))


def _yields(
    session: Session, victim: Member, preemptor: Member, group: Group, *, own: bool
) -> bool:
    if (victim.group == group.key) != own:
        return False
    if own:
        return victim.priority < preemptor.priority
    return _matters_less(session.ledger.groups[victim.group], group)


def has_lesser_pods(session: Session, preemptor: Member, *, own: bool) -> bool:
    """Whether there are pods of lower priority in the queue, or (`own`) in the group."""
    group = session.group_of(preemptor)
    if own:
        there = group.of_status(TaskStatus.BOUND, TaskStatus.RUNNING)
        return any(one.priority < preemptor.priority for one in there)
    return session.least_priority(group.queue) < group.priority


def _matters_less(other: Group, group: Group) -> bool:
    return other.queue == group.queue and other.is_known and other.priority < group.priority


# -- in other queues -----------------------------------------------------------------------------


def reclaimable(session: Session, reclaimer: Member, node: str) -> list[Member] | None:
    """Return the possible victims on a node in other queues that have more than they deserve.

    None if the node has no pods of other, reclaimable queues.
    """
    others = _others_on(session, reclaimer, node)
    if not others:
        return None
    ordered = in_order(session, others, session.group_of(reclaimer).queue)
    surplus = _Surplus(session, reclaimer).of(ordered)
    return [one for one in spare_gangs(session, ordered) if one.key in surplus]


def _others_on(session: Session, reclaimer: Member, node: str) -> list[Member]:
    """Return the preemptable pods of other, reclaimable queues on a node."""
    queue = session.group_of(reclaimer).queue
    nodes = session.ledger.tree.nodes
    found = []
    for one in session.members_on(node):
        if one.status is not TaskStatus.RUNNING or not one.preemptable:
            continue
        group = session.group_of(one)
        of = nodes.get(group.queue) if group.is_known else None
        if of is not None and of.name != queue and of.queue.spec.reclaimable:
            found.append(one)
    return found


class _Surplus:
    """The amounts of queues beyond what they deserve, without the victims chosen so far."""

    def __init__(self, session: Session, reclaimer: Member) -> None:
        self._session = session
        self._asked = reclaimer.request
        self._left: dict[str, Resources] = {}

    def of(self, victims: Iterable[Member]) -> set[str]:
        """Return the keys of the pods whose queues keep what they deserve without them."""
        accounts, found = self._session.accounts, set()
        for member in victims:
            queue = self._session.group_of(member).queue
            left = self._left.get(queue) or accounts.usage(queue).allocated
            quota = accounts.quota(queue)
            if accounts.policy.may_leave(quota, left, member.request, self._asked):
                self._left[queue] = left - member.request
                found.add(member.key)
        return found
