"""In which order queues and groups are served, as Volcano has it."""

from __future__ import annotations

from bayplan.queues import Group, Ledger
from bayplan.queues.orders import age, group_key, queue_key

Order = tuple[object, ...]


def queue_order(ledger: Ledger, queue: str) -> Order:
    """Sorts queues: by priority, by how little they have of what they deserve, by age and name;
    two queues are told apart where their paths part.
    """
    node = ledger.tree.get(queue)
    if node is None:
        return (0, (), "", queue)
    above = reversed(node.path[:-1])
    levels = tuple(queue_key(ledger.accounts, name)[:2] for name in above)
    return (-node.queue.spec.priority, levels, age(node.queue), queue)


def beyond_order(ledger: Ledger, queue: str) -> Order:
    """Sorts queues that ask for more than they deserve: by priority, by how little they have or
    reserve of what they deserve, by age and name.
    """
    node = ledger.tree.get(queue)
    if node is None:
        return (0, 0.0, "", queue)
    deserved, held = ledger.quota(queue).deserved, ledger.usage(queue).held
    share = max((held[name] / deserved[name] for name in deserved.weighty), default=0.0)
    return (-node.queue.spec.priority, share, age(node.queue), queue)


def group_order(group: Group) -> Order:
    """Sorts groups of one queue: those that were let in and have no nodes yet, then by priority,
    those that have not started, by age and by name.
    """
    return (group.reserved.is_nothing, *group_key(group))
