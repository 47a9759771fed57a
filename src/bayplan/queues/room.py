"""Whether a queue has room: for a group to be admitted, and for a pod to be let through.

A group may be admitted where what it needs to start fits beside what is there and what earlier
groups were promised; what groups have beyond their needs does not stand in its way, since it can be
taken back. A pod may be let through where its request fits beside what pods have or reserve. Both
must hold in the queue and in all above it.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.queues.accounts import Accounts, Usage
from bayplan.queues.groups import Group
from bayplan.queues.problems import NoRoom, Why
from bayplan.queues.resources import NOTHING, Resources, write_amount
from bayplan.queues.rules import Rules


def room_for_group(accounts: Accounts, group: Group) -> NoRoom | None:
    """Why a group cannot be admitted; None if it can."""
    refusal = accounts.tree.refusal(group.queue)
    if refusal is not None:
        return refusal
    if group.problems:
        return NoRoom(Why.BAD_GROUP, group.queue, "; ".join(group.problems))
    needs = group.needs
    asked = needs.asked
    for queue in accounts.tree.path(group.queue):
        usage, limit = accounts.usage(queue), accounts.tree.nodes[queue].quota.real_capability
        left = {n: limit[n] - _promised(usage, n, accounts.rules) for n in asked}
        over = [name for name in asked if needs[name] > left[name]]
        if over:
            return _no_room(queue, over, needs, left)
    return None


def _promised(usage: Usage, name: str, rules: Rules) -> float:
    """What a queue has of a resource, or has promised, and cannot take back."""
    promised = usage.allocated[name] + usage.inqueue[name] - usage.elastic[name]
    return promised if rules.session_keeps_inqueue else promised + usage.reserved[name]


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
    beside = _counts_reservations(accounts, request, reserved)
    for name in accounts.tree.path(queue):
        limit, usage = accounts.limit(name), accounts.usage(name)
        left = {n: limit[n] - usage.allocated[n] for n in asked}
        if beside and (name == queue or not accounts.rules.reserved_not_in_ancestors):
            left = {n: a - usage.reserved[n] + reserved[n] for n, a in left.items()}
        over = [n for n in asked if request[n] > left[n]]
        if over:
            return _no_room(name, over, request, left)
    return None


def _counts_reservations(accounts: Accounts, request: Resources, reserved: Resources) -> bool:
    """Whether others' reservations stand in the way of a request of which so much is reserved.

    Where all of it is reserved they do not: those that together pass the limit would keep each
    other from being placed.
    """
    rules = accounts.rules
    if accounts.policy.caps_at_deserved:
        return False
    return rules.reserved_deadlock or not reserved.amounts or not request.fits(reserved)


def over_share(accounts: Accounts, queue: str, request: Resources) -> NoRoom | None:
    """Why a request is more than a queue deserves by weight; None if it is not, or if weights do
    not matter.
    """
    return _beyond(accounts, queue, request, accounts.usage(queue).allocated)


def asks_beyond_share(accounts: Accounts, queue: str, ask: Resources) -> NoRoom | None:
    """Why a queue that is let have this much more, beside what its pods have or reserve, has more
    of the nodes that there are than it deserves by weight. What these nodes could not give in any
    case is kept from nobody.
    """
    if ask.over(accounts.shared, ask.asked):
        return None
    return _beyond(accounts, queue, ask, accounts.usage(queue).held)


def _beyond(accounts: Accounts, queue: str, ask: Resources, used: Resources) -> NoRoom | None:
    over = accounts.policy.beyond_share(accounts.quota(queue).deserved, used, ask)
    if not over:
        return None
    text = f"queue {queue} has what it deserves of {', '.join(over)}"
    return NoRoom(Why.SHARE, queue, text, tuple(over))


def _no_room(queue: str, over: list[str], request: Resources, left: Mapping[str, float]) -> NoRoom:
    asked = ", ".join(f"{write_amount(n, request[n])} {n}" for n in over)
    has = ", ".join(f"{write_amount(n, max(left[n], 0))} {n}" for n in over)
    text = f"queue {queue} has {has} left of its quota, and {asked} is asked for"
    return NoRoom(Why.QUOTA, queue, text, tuple(over))
