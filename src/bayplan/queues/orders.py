"""The orders of queues, of groups in a queue, of pods in a group, and of victims.

- *Queues*: priority high first, then share low first, those that deserve something before those
  that do not, older, name. Shares are compared where the paths of two queues part (see
  `queue_heap`).
- *Groups*: the value of their PriorityClass, high first; those that cannot start yet before those
  that can; older; key.
- *Pods*: priority, high first; the index at the end of the name; older; uid.
- *Turns*: `QueueHeap` and `group_order`; queues that exceed their share are sorted by `beyond_key`.
- *Victims*: those in queues nearest to the preemptor's, then the other way round.
"""

from __future__ import annotations

from functools import cmp_to_key

from bayplan.kube.meta import KubeObject
from bayplan.queues.accounts import Accounts
from bayplan.queues.groups import Group
from bayplan.queues.members import Member

QueueKey = tuple[float, bool, str, str]
GroupKey = tuple[int, bool, str, str]
Order = tuple[object, ...]


def age(obj: KubeObject) -> str:
    """Return the sort key by age, oldest first."""
    return obj.metadata.creation_timestamp or ""


def queue_key(accounts: Accounts, name: str) -> QueueKey:
    """Return the sort key of sibling queues of equal priority."""
    node = accounts.tree.get(name)
    if node is None:
        return 0.0, False, "", name
    idle = accounts.policy.comes_last(accounts.quota(name).deserved)
    return accounts.share(name), idle, age(node.queue), name


def group_key(group: Group) -> GroupKey:
    """Return the sort key of the groups of a queue."""
    return -group.priority, group.has_enough, age(group.podgroup), group.key


def _compare(a: Member, b: Member) -> int:
    if a.priority != b.priority:
        return b.priority - a.priority
    if a.index is not None and b.index is not None and a.index != b.index:
        return a.index - b.index
    mine, other = _birth(a), _birth(b)
    return (mine > other) - (mine < other)


def _birth(member: Member) -> tuple[str, str]:
    return age(member.pod), member.pod.metadata.uid


member_key = cmp_to_key(_compare)
"""The sort key of the pods of a group."""


def beyond_key(accounts: Accounts, name: str) -> QueueKey:
    """Return the sort key of queues that request more than they deserve.

    The least used share first, then by age and name.
    """
    node = accounts.tree.get(name)
    if node is None:
        return 0.0, False, "", name
    deserved, held = accounts.quota(name).deserved, accounts.usage(name).held
    share = max((held[one] / deserved[one] for one in deserved.significant), default=0.0)
    return share, False, age(node.queue), name


def group_order(group: Group) -> Order:
    """Return what sorts groups of one queue: first those that hold quota and have no nodes yet,
    then by priority, those that have not started, by age and by name.
    """
    return (group.reserved.is_nothing, *group_key(group))


class VictimOrder:
    """The order of victims, for a pod of one queue."""

    def __init__(self, accounts: Accounts, groups: dict[str, Group], queue: str) -> None:
        self._accounts = accounts
        self._groups = groups
        self._path = accounts.tree.path(queue)[::-1]
        self.key = cmp_to_key(self._compare)

    def _compare(self, a: Member, b: Member) -> int:
        if a.group == b.group:
            return _compare(b, a)
        first, second = self._groups[a.group], self._groups[b.group]
        if first.queue != second.queue:
            return self._compare_queues(first.queue, second.queue)
        mine, other = group_key(first)[:2], group_key(second)[:2]
        return (mine < other) - (mine > other) or _compare(b, a)

    def _compare_queues(self, a: str, b: str) -> int:
        near_a, near_b = self._shared_levels(a), self._shared_levels(b)
        return near_b - near_a or compare_queues(self._accounts, b, a)

    def _shared_levels(self, queue: str) -> int:
        """Return the number of ancestors that a queue shares with the preemptor's queue."""
        path = self._accounts.tree.path(queue)[:0:-1]
        pairs = list(zip(self._path[:-1], path, strict=False))
        return next((n for n, (mine, other) in enumerate(pairs) if mine != other), len(pairs))


def compare_queues(accounts: Accounts, a: str, b: str) -> int:
    """Compare two queues; negative if the first one is served first."""
    nodes = accounts.tree.nodes
    priority = nodes[b].queue.spec.priority - nodes[a].queue.spec.priority
    if priority:
        return priority
    above_a, above_b = _parting(nodes[a].path, nodes[b].path)
    mine = *queue_key(accounts, above_a)[:2], age(nodes[a].queue), a
    other = *queue_key(accounts, above_b)[:2], age(nodes[b].queue), b
    return (mine > other) - (mine < other)


def _parting(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, str]:
    """Return the first two queues that differ in two paths from the root."""
    pairs = zip(a[::-1], b[::-1], strict=False)
    return next(((one, two) for one, two in pairs if one != two), (a[0], b[0]))
