"""Whether a queue has room: for a group to be admitted, and for a pod to be let through.

A group may be admitted where what it needs to start fits beside what is there and what earlier
groups were promised; what groups have beyond their needs does not stand in its way, since it can be
taken back. A pod may be let through where its request fits beside what pods have or reserve. Both
must hold in the queue and in all above it.
"""

from __future__ import annotations

from bayplan.queues.accounts import Accounts
from bayplan.queues.groups import Group
from bayplan.queues.problems import NoRoom, Why
from bayplan.queues.resources import NOTHING, Resources, write_amount


def room_for_group(accounts: Accounts, group: Group) -> NoRoom | None:
    """Why a group cannot be admitted; None if it can."""
    refusal = accounts.tree.refusal(group.queue)
    if refusal is not None:
        return refusal
    if group.problems:
        return NoRoom(Why.BAD_GROUP, group.queue, "; ".join(group.problems))
    needs = group.needs
    for queue in accounts.tree.path(group.queue):
        usage, limit = accounts.usage(queue), accounts.tree.nodes[queue].quota.real_capability
        held = usage.allocated if accounts.rules.session_keeps_inqueue else usage.held
        used = held + usage.inqueue - usage.elastic
        over = (needs + used).over(limit, needs.asked)
        if over:
            return _no_room(queue, over, needs, limit.beyond(used))
    return None


def room_for_request(
    accounts: Accounts, queue: str, request: Resources, reserved: Resources = NOTHING
) -> NoRoom | None:
    """Why a queue has no room for a request, of which so much is reserved already; None if it
    has.
    """
    refusal = accounts.tree.refusal(queue)
    if refusal is not None:
        return refusal
    asked = request.asked
    for name in accounts.tree.path(queue):
        limit, used = accounts.limit(name), _used_beside(accounts, name, queue, request, reserved)
        over = (request + used).over(limit, asked)
        if over:
            return _no_room(name, over, request, limit.beyond(used))
    return None


def _used_beside(
    accounts: Accounts, name: str, queue: str, request: Resources, reserved: Resources
) -> Resources:
    """What is used in a queue beside a request of which so much is reserved.

    Where all of it is reserved, other reservations do not count: those that together pass the
    limit would keep each other from being placed.
    """
    usage, rules = accounts.usage(name), accounts.rules
    if rules.proportion_caps_at_share and accounts.tree.policy == "proportion":
        return usage.allocated
    if name != queue and rules.reserved_not_in_ancestors:
        return usage.allocated
    if not rules.reserved_deadlock and request.fits(reserved):
        return usage.allocated
    return usage.allocated + usage.reserved - reserved


def over_share(accounts: Accounts, queue: str, request: Resources) -> NoRoom | None:
    """Why a request is more than a queue deserves by weight; None if it is not, or if weights do
    not matter.
    """
    if accounts.tree.policy != "proportion":
        return None
    deserved, used = accounts.quota(queue).deserved, accounts.usage(queue).allocated
    over = (request + used).over(deserved, request.asked)
    if not over:
        return None
    text = f"queue {queue} has what it deserves of {', '.join(over)}"
    return NoRoom(Why.SHARE, queue, text, tuple(over))


def _no_room(queue: str, over: list[str], request: Resources, left: Resources) -> NoRoom:
    asked = ", ".join(f"{write_amount(n, request[n])} {n}" for n in over)
    has = ", ".join(f"{write_amount(n, left[n])} {n}" for n in over)
    text = f"queue {queue} has {has} left of its quota, and {asked} is asked for"
    return NoRoom(Why.QUOTA, queue, text, tuple(over))
