"""The ledger of all queues: groups and pods as they come and go, and the quota that they use.

    ledger = Ledger()
    ledger.put_queue(queue); ledger.put_group(podgroup); ledger.put_pod(pod)
    ledger.may_enqueue(group)            # None, or why not
    ledger.may_allocate(member)          # None, or why not
    ledger.move(member, Status.BOUND)    # decided, and not seen yet

Every change moves the sums of one queue and of those above it. What is decided is entered at once
(`admit`, `reserve`, `move`) and holds until it is observed. `take_freed` returns where quota may
have come free: a group that was refused there need not be asked again before.

The tree of queues is made anew when a queue's spec has changed: once, when it is next needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar

from bayplan.kube.pods import Pod
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.queues.accounts import UNUSED, Accounts, Usage
from bayplan.queues.groups import Group
from bayplan.queues.members import Member, TaskStatus
from bayplan.queues.policies import POLICIES, QueuePolicy, QueuePolicyName
from bayplan.queues.problems import QueueReason
from bayplan.queues.queue_quota import Quota
from bayplan.queues.quota_checks import check_group, check_request, check_share
from bayplan.queues.resources import NOTHING, UNLIMITED, Resources
from bayplan.queues.tree import QueueTree

PriorityOf = Callable[[str], int]
"""The value of a PriorityClass by its name; the default's for an empty name."""


class Ledger:
    """Live accounts of queues, groups and pods."""

    tree_type: ClassVar[type[QueueTree]] = QueueTree
    accounts_type: ClassVar[type[Accounts]] = Accounts
    group_type: ClassVar[type[Group]] = Group

    def __init__(
        self,
        *,
        policy: QueuePolicyName = "capacity",
        hierarchy: bool = True,
        total: Resources = UNLIMITED,
        priority_of: PriorityOf = lambda _name: 0,
    ) -> None:
        self.policy: QueuePolicy = POLICIES[policy]
        self.hierarchy = hierarchy
        self.groups: dict[str, Group] = {}
        self.members: dict[str, Member] = {}
        self.quota_version = 0
        """Grows when what queues may have, or whether they are open, has changed."""
        self._priority_of = priority_of
        self._total = total
        self._shared: Resources | None = None
        self._queues: dict[str, Queue] = {}
        self._accounts: Accounts | None = None
        self._counted: dict[str, tuple[tuple[str, ...], Usage]] = {}
        """By group the queues that it is counted in, and as what."""
        self._by_queue: dict[str, dict[str, Group]] = {}
        self._waiting: dict[str, Group] = {}
        self._leaving: dict[str, Member] = {}

    # -- queues ----------------------------------------------------------------------------------

    @property
    def accounts(self) -> Accounts:
        """The sums of the queues as they now are."""
        if self._accounts is None:
            self._accounts = self.accounts_type(self._made_tree(), self._shared or self._total)
            self._counted.clear()
            self._by_queue.clear()
            for group in self.groups.values():
                self.count(group)
            self._accounts.note_freed(tuple(self._accounts.tree.nodes))
        return self._accounts

    def _made_tree(self) -> QueueTree:
        return self.tree_type.of(
            self._queues.values(),
            total=self._total,
            policy=self.policy,
            hierarchy=self.hierarchy,
        )

    @property
    def tree(self) -> QueueTree:
        """The queues as they now are."""
        return self.accounts.tree

    def set_shared(self, shared: Resources) -> None:
        """Share this by weight: the nodes that there are, where the total is no limit."""
        self._shared = shared
        if self._accounts is not None:
            self._accounts.share_anew(shared)

    def put_queue(self, queue: Queue) -> None:
        """Take a queue's object."""
        old = self._queues.get(queue.name)
        self._queues[queue.name] = queue
        if old is None or old.spec != queue.spec:
            self._make_anew()
        elif self._accounts is not None:
            self._accounts.tree = self._accounts.tree.with_status(queue)
            if old.status.state != queue.status.state:
                nodes = self._accounts.tree.nodes.values()
                below = [node.name for node in nodes if queue.name in node.path]
                self._accounts.note_freed(below)
                self.quota_version += 1

    def delete_queue(self, name: str) -> None:
        """Forget a queue."""
        if self._queues.pop(name, None) is not None:
            self._make_anew()

    def _make_anew(self) -> None:
        self._accounts = None
        self.quota_version += 1

    # -- groups and pods -------------------------------------------------------------------------

    def put_group(self, podgroup: PodGroup) -> Group:
        """Take a PodGroup's object."""
        priority = self._priority_of(podgroup.spec.priority_class_name)
        group = self.groups.get(podgroup.key)
        if group is None:
            group = self.groups[podgroup.key] = self.group_type(podgroup, priority)
        else:
            group.take(podgroup, priority)
        self.count(group)
        return group

    def delete_group(self, key: str) -> None:
        """Forget a PodGroup; its pods are kept for when it comes again."""
        group = self.groups.pop(key, None)
        self._waiting.pop(key, None)
        if group is None:
            return
        self._uncount(key)
        for member in group.members.values():
            self._group_of(member).add(member)

    def put_pod(self, pod: Pod) -> Member:
        """Enter an observed pod; what is observed replaces what was decided about it."""
        member = Member.of(pod)
        old = self.members.get(member.key)
        if old is not None:
            member.keep_decisions(old)
            if old.group == member.group:
                self.groups[old.group].remove(old)  # it is counted anew below, once
            else:
                self._drop(old)
        self.members[member.key] = member
        group = self._group_of(member)
        group.add(member)
        self._note_leaving(member)
        self.count(group)
        return member

    def delete_pod(self, key: str) -> None:
        """Forget a pod."""
        member = self.members.get(key)
        if member is not None:
            self._drop(member)

    def groups_in(self, queue: str) -> Iterable[Group]:
        """Return the groups of a queue."""
        _ = self.accounts
        return self._by_queue.get(queue, {}).values()

    def waiting(self) -> list[Group]:
        """Return the groups that are not admitted yet, or have pods without a node."""
        return list(self._waiting.values())

    def leaving(self) -> list[Member]:
        """Return the pods that are being removed from their nodes."""
        return list(self._leaving.values())

    def _note_leaving(self, member: Member) -> None:
        if member.status is TaskStatus.RELEASING:
            self._leaving[member.key] = member
        else:
            self._leaving.pop(member.key, None)

    def _drop(self, member: Member) -> None:
        del self.members[member.key]
        self._leaving.pop(member.key, None)
        group = self.groups[member.group]
        group.remove(member)
        if group.is_known or group.members:
            self.count(group)
        else:
            del self.groups[group.key]

    def _group_of(self, member: Member) -> Group:
        """Return the group of a pod; one without a PodGroup yet is not counted."""
        group = self.groups.get(member.group)
        if group is None:
            namespace, _, name = member.group.partition("/")
            group = self.groups[member.group] = self.group_type.unknown(namespace, name)
        return group

    # -- decisions -------------------------------------------------------------------------------

    def admit(self, group: Group) -> None:
        """Count a group as admitted, before that is observed."""
        group.admit()
        self.count(group)

    def move(self, member: Member, status: TaskStatus, *, reserved: bool = False) -> None:
        """Set the status of a pod, before that is observed."""
        group = self.groups[member.group]
        group.move(member, status, reserved=reserved)
        self._note_leaving(member)
        self.count(group)

    def reserve(self, member: Member) -> None:
        """Reserve quota for a pod that waits for a node."""
        self.move(member, member.status, reserved=True)

    def release(self, member: Member) -> None:
        """Release the quota that is reserved for a pod."""
        self.move(member, member.status)

    # -- questions -------------------------------------------------------------------------------

    def usage(self, queue: str) -> Usage:
        """Return the usage of a queue and its descendants."""
        return self.accounts.usage(queue)

    def quota(self, queue: str) -> Quota:
        """Return the quota of a queue, with what it deserves now."""
        return self.accounts.quota(queue)

    def share(self, queue: str) -> float:
        """Return the share of a queue: allocated relative to deserved; 1 if it deserves nothing."""
        return self.accounts.share(queue)

    def take_freed(self) -> set[str]:
        """Return the queues in which quota may have come free since the last call: those that
        lacked it themselves, not those below them.
        """
        return self.accounts.take_freed()

    def wait_for_share(self, queue: str) -> None:
        """Report a queue as freed, too, once it may deserve more by weight than it does now."""
        self.accounts.wait_for_share(queue)

    def may_enqueue(self, group: Group) -> QueueReason | None:
        """Why a group cannot be admitted; None if it can."""
        return check_group(self.accounts, group)

    def may_allocate(self, member: Member) -> QueueReason | None:
        """Return why quota refuses a pod; None if it does not. What it reserves is its own."""
        queue = self.groups[member.group].queue
        own = member.request if member.reserved else NOTHING
        return check_request(self.accounts, queue, member.request, own)

    def may_allocate_all(self, group: Group, members: Iterable[Member]) -> QueueReason | None:
        """Return why quota refuses some pods of a group together; None if it does not."""
        pods = list(members)
        request = sum((one.request for one in pods), NOTHING)
        own = sum((one.request for one in pods if one.reserved), NOTHING)
        return check_request(self.accounts, group.queue, request, own)

    def quota_check_of(self, group: Group) -> Callable[[Resources, Resources], QueueReason | None]:
        """Return the check of a request of a group, of which so much is reserved already."""
        return partial(check_request, self.accounts, group.queue)

    def check_share(self, group: Group, ask: Resources) -> QueueReason | None:
        """Return why a group would exceed its queue's share by weight with so much more,
        reservations included; None if not, or if weights do not matter.
        """
        return check_share(self.accounts, group.queue, ask)

    # -- counting --------------------------------------------------------------------------------

    def count(self, group: Group) -> None:
        """Bring what a group is counted as up to date."""
        if group.is_known and (group.is_pending or group.count(TaskStatus.PENDING)):
            self._waiting[group.key] = group
        else:
            self._waiting.pop(group.key, None)
        if self._accounts is None:
            return
        path = self._accounts.tree.path(group.queue) if group.is_known else ()
        old_path, old = self._counted.get(group.key, ((), UNUSED))
        if old_path != path:
            self._uncount(group.key)
            self._enter(group, path)
            old = UNUSED
        new = group.usage
        self._accounts.move(path, old, new)
        self._counted[group.key] = (path, new)

    def _enter(self, group: Group, path: tuple[str, ...]) -> None:
        if path and self._accounts is not None:
            self._by_queue.setdefault(path[0], {})[group.key] = group
            self._accounts.enter(path[0])

    def _uncount(self, key: str) -> None:
        path, old = self._counted.pop(key, ((), UNUSED))
        if path and self._accounts is not None:
            self._accounts.move(path, old, UNUSED)
            self._accounts.enter(path[0], -1)
            del self._by_queue[path[0]][key]
