"""In which order queues and groups are served, as Volcano has it."""

from __future__ import annotations

from bayplan.queues import Group, Ledger

Order = tuple[object, ...]


def queue_order(ledger: Ledger, queue: str) -> Order:
    """Sorts queues: by priority, by how little they have of what they deserve, by age and name;
    two queues are told apart where their paths part.
    """
    node = ledger.tree.get(queue)
    if node is None:
        return (0, (), "", queue)
    levels = tuple(_level(ledger, name) for name in reversed(node.path[:-1]))
    age = node.queue.metadata.creation_timestamp or ""
    return (-node.queue.spec.priority, levels, age, queue)


def _level(ledger: Ledger, name: str) -> tuple[float, bool]:
    return ledger.share(name), ledger.quota(name).deserved.is_nothing


def group_order(group: Group) -> Order:
    """Sorts groups of one queue: those that were let in and have no nodes yet, then by priority,
    those that have not started, by age and by name.
    """
    created = group.podgroup.metadata.creation_timestamp or ""
    return (group.reserved.is_nothing, -group.priority, group.is_ready, created, group.key)
