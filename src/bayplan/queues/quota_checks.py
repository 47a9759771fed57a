"""Checks of quota: whether a group may be admitted, and whether a pod may be.

A group may be admitted where what it needs to start fits beside what is allocated and what earlier
groups were promised; what groups have beyond their needs does not count, since it can be reclaimed.
A pod may be admitted where its request fits beside what pods have or reserve. Both must hold in the
queue and in all above it.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.queues.accounts import Accounts
from bayplan.queues.groups import Group
from bayplan.queues.problems import QueueReason, WaitCode
from bayplan.queues.resources import NOTHING, Resources, write_amount


def check_group(accounts: Accounts, group: Group) -> QueueReason | None:
    """Return why a group cannot be admitted; None if it can."""
    refusal = accounts.tree.refusal(group.queue)
    if refusal is not None:
        return refusal
    if group.problems:
        return QueueReason(WaitCode.BAD_GROUP, group.queue, "; ".join(group.problems))
    needs = group.needs
    asked = needs.nonzero
    for queue in accounts.tree.path(group.queue):
        limit = accounts.tree.nodes[queue].quota.real_capability
        left = {n: limit[n] - accounts.promised(queue, n) for n in asked}
        over = [name for name in asked if needs[name] > left[name]]
        if over:
            return _quota_reason(queue, over, needs, left)
    return None


def check_request(
    accounts: Accounts, queue: str, request: Resources, reserved: Resources = NOTHING
) -> QueueReason | None:
    """Return why quota refuses a request, of which so much is reserved already; None if it does
    not.
    """
    refusal = accounts.tree.refusal(queue)
    if refusal is not None:
        return refusal
    asked = request.nonzero
    counts_reservations = accounts.counts_reservations(request, reserved)
    for name in accounts.tree.path(queue):
        limit, usage = accounts.limit(name), accounts.usage(name)
        left = {n: limit[n] - usage.allocated[n] for n in asked}
        if counts_reservations and (held := accounts.reserved_in(name, queue)).amounts:
            left = {n: a - held[n] + reserved[n] for n, a in left.items()}
        over = [n for n in asked if request[n] > left[n]]
        if over:
            return _quota_reason(name, over, request, left)
    return None


def check_share(accounts: Accounts, queue: str, ask: Resources) -> QueueReason | None:
    """Return why a queue would exceed its share of the existing nodes by weight with this request,
    beside what its pods have or reserve; None if not, or if these nodes could never hold it.
    """
    if ask.over(accounts.shared, ask.nonzero):
        return None
    deserved, used = accounts.quota(queue).deserved, accounts.usage(queue).held
    over = accounts.policy.beyond_share(deserved, used, ask)
    if not over:
        return None
    text = f"queue {queue} has what it deserves of {', '.join(over)}"
    return QueueReason(WaitCode.SHARE, queue, text, tuple(over))


def _quota_reason(
    queue: str, over: list[str], request: Resources, left: Mapping[str, float]
) -> QueueReason:
    asked = ", ".join(f"{write_amount(n, request[n])} {n}" for n in over)
    has = ", ".join(f"{write_amount(n, max(left[n], 0))} {n}" for n in over)
    text = f"queue {queue} has {has} left of its quota, and {asked} is asked for"
    return QueueReason(WaitCode.QUOTA, queue, text, tuple(over))
