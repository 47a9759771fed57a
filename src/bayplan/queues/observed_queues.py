"""The ledger of a live cluster: pods, groups and queues as they are observed.

Only pods of ours that use queues are counted, with a node or without. `changed_groups` collects the
groups whose turns have to be decided again.

What differs from the plain ledger:
- A pod that is being deleted and has a node holds its quota until it is gone, as it holds its node.
- Whether a pod without a gate was admitted, or never had one, its PodScheduled condition shows: the
  API server writes SchedulingGated when a pod is created with gates, we write Unschedulable only
  for admitted pods, and other reasons for those that wait. Pods that were admitted before a restart
  are admitted again first, as far as quota goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bayplan.kube.pods import POD_SCHEDULED, Pod
from bayplan.kube.requests import is_resize_infeasible
from bayplan.kube.volcano import PodGroup
from bayplan.queues.admission import restore_reservations
from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger
from bayplan.queues.members import Gate, Member, TaskStatus, group_key_of
from bayplan.queues.podgroups import group_for, malformed, names_group, uses_queues
from bayplan.queues.requests import Candidates

ADMITTED_REASONS = frozenset(("SchedulingGated", "Unschedulable", "Schedulable", "SchedulerError"))
"""The reasons of the condition of a pod that was admitted, once its gate is gone."""


class ObservedQueues:
    """The pods that use queues, their groups and queues, entered into a ledger."""

    def __init__(self, ledger: Ledger, is_ours: Callable[[Pod], bool]) -> None:
        self.ledger = ledger
        self.candidates = Candidates()
        self.changed_groups: dict[str, None] = {}
        """The groups that have changed."""
        self.unreported_groups: dict[str, None] = {}
        """The groups whose status may have to be written."""
        self.recovered: dict[str, None] | None = {}
        """The pods that were admitted before the start; None once they have quota again."""
        self._is_ours = is_ours
        self.on_unreported: Callable[[], None] = lambda: None
        """Called when the status of groups may have to be written."""
        self._settled_version: int | None = None
        """The version of the quota by which it is reserved; None if some of it has moved."""
        self._malformed: dict[str, str] = {}
        """By pod what is wrong with its annotations."""
        self.podgroups: dict[str, PodGroup] = {}
        """The PodGroups that were observed."""

    # -- what is there -------------------------------------------------------------------------

    def member(self, pod: Pod) -> Member | None:
        """Return the member of a pod; None if it does not use queues."""
        found = self.ledger.members.get(pod.key)
        return found if found is not None and _is_same(found.pod, pod) else None

    def group_of(self, member: Member) -> Group:
        """Return the group of a pod."""
        return self.ledger.groups[member.group]

    def malformed(self, group: Group) -> str:
        """Return what is wrong with the annotations of a group's pods; empty if nothing."""
        return next((text for key, text in self._malformed.items() if key in group.members), "")

    # -- pods ----------------------------------------------------------------------------------

    def observe_pod(self, pod: Pod) -> None:
        """Enter a pod that is new or has changed."""
        if not self._is_ours(pod):
            return
        if not uses_queues(pod):
            if self.ledger.members:
                self.remove_pod(pod)
            return
        known = self.ledger.members.get(pod.key)
        if known is not None and not _matters(known.pod, pod):
            known.pod = pod
            return
        if _only_leaves(pod):
            self.remove_pod(pod)
            return
        self._count(pod, known)

    def remove_pod(self, pod: Pod) -> None:
        """Remove a pod that is gone or has ended; one that succeeded counts for its gang."""
        member = self.member(pod)
        if member is None or member.status is TaskStatus.SUCCEEDED:
            return
        self._malformed.pop(member.key, None)
        group = self.group_of(member)
        ended = member.status.is_allocated and not pod.is_terminating
        if ended and group.count(TaskStatus.SUCCEEDED) < max(group.min_member, 1):
            self.ledger.move(member, TaskStatus.SUCCEEDED)
        else:
            self.ledger.delete_pod(member.key)
        self._forget_if_empty(group)
        self.mark_changed(group.key)

    def _forget_if_empty(self, group: Group) -> None:
        """Forget a group without a PodGroup that has no pods any more."""
        if group.key not in self.podgroups and group.count(TaskStatus.SUCCEEDED) == len(
            group.members
        ):
            self._forget(group)
            self.candidates.forget(group.key)

    def _forget(self, group: Group) -> None:
        for key in [one.key for one in group.of_status(TaskStatus.SUCCEEDED)]:
            self.ledger.delete_pod(key)
        self.ledger.delete_group(group.key)

    def _count(self, pod: Pod, known: Member | None) -> None:
        was_in = known is not None and known.reserved and _is_in_same_group(known, pod)
        member = self.ledger.put_pod(pod)
        if (text := malformed(pod)) and not names_group(pod):
            self._malformed[member.key] = text
        elif self._malformed:
            self._malformed.pop(member.key, None)
        if member.status is TaskStatus.RELEASING:
            self.ledger.reserve(member)
        elif member.reserved and not was_in:
            self.ledger.release(member)
            if self.recovered is not None and _was_admitted(pod):
                self.recovered[member.key] = None
        self._ensure_group(member)
        if member.status is TaskStatus.PENDING and member.gate is not Gate.FOREIGN:
            self.candidates.put(member)
        self.mark_changed(member.group)

    def _ensure_group(self, member: Member) -> None:
        if not self.group_of(member).is_known and not names_group(member.pod):
            self.ledger.put_group(group_for(member.pod))

    def recover(self) -> dict[str, list[Member]]:
        """Reserve quota again for pods that were admitted before the start, as far as it goes;
        returns those that have it, by group.
        """
        keys, self.recovered = self.recovered or {}, None
        known = (self.ledger.members.get(key) for key in keys)
        return restore_reservations(self.ledger, [one for one in known if one and _waits(one)])

    def settle(self) -> list[Member]:
        """Reserve quota only as far as it goes by now; returns the pods that lost theirs."""
        if self._settled_version == self.ledger.quota_version:
            return []
        self._settled_version = self.ledger.quota_version
        held = [one for group in self.ledger.groups.values() for one in reserved_of(group)]
        restore_reservations(self.ledger, held)
        lost = [one for one in held if not one.reserved]
        for member in lost:
            self.candidates.put(member)
        return lost

    def release(self, member: Member) -> None:
        """Release the quota of a pod without a node; it may be admitted again."""
        self.ledger.release(member)
        self.candidates.put(member)

    # -- groups and queues ---------------------------------------------------------------------

    def observe_group(self, group: PodGroup) -> None:
        """Enter a PodGroup that is new or has changed."""
        self.podgroups[group.key] = group
        self._put_group(group)
        self.mark_changed(group.key)

    def remove_group(self, group: PodGroup) -> None:
        """Remove a PodGroup that is gone."""
        self.podgroups.pop(group.key, None)
        self._remove_group(group.key)
        self.mark_changed(group.key)

    def _put_group(self, group: PodGroup) -> None:
        known = self.ledger.groups.get(group.key)
        if known is not None and known.queue != group.spec.queue and reserved_of(known):
            self._settled_version = None
        self.ledger.put_group(group)

    def _remove_group(self, key: str) -> None:
        if (known := self.ledger.groups.get(key)) is not None:
            self._forget(known)
        group = self.ledger.groups.get(key)
        members: Iterable[Member] = group.members.values() if group is not None else ()
        if (first := next(iter(members), None)) is not None:
            self._ensure_group(first)

    def observe_priorities(self) -> None:
        """Update the priorities of groups after a PriorityClass has changed."""
        for group in self.ledger.groups.values():
            if group.is_known:
                self.ledger.put_group(group.podgroup)
                self.mark_changed(group.key)

    def mark_changed(self, group: str) -> None:
        """Note that a group has changed."""
        self.changed_groups[group] = None
        self.mark_unreported(group)

    def mark_unreported(self, group: str) -> None:
        """Note that the status of a group may have to be written."""
        self.unreported_groups[group] = None
        self.on_unreported()


def reserved_of(group: Group) -> list[Member]:
    """Return the pods of a group that have reserved quota and no node."""
    if not group.reserved_roles.total():
        return []
    return [one for one in group.of_status(TaskStatus.PENDING) if one.reserved]


def _waits(member: Member) -> bool:
    return member.status is TaskStatus.PENDING


def _is_same(one: Pod, other: Pod) -> bool:
    return one.metadata.uid == other.metadata.uid


def _is_in_same_group(known: Member, pod: Pod) -> bool:
    return _is_same(known.pod, pod) and known.group == group_key_of(pod)


def _matters(old: Pod, new: Pod) -> bool:
    """Whether queues see a difference between two versions of a pod."""
    return (
        old.metadata.uid != new.metadata.uid
        or old.spec.node_name != new.spec.node_name
        or old.status.phase != new.status.phase
        or old.is_terminating != new.is_terminating
        or old.spec.scheduling_gates != new.spec.scheduling_gates
        or old.metadata.annotations != new.metadata.annotations
        or old.metadata.labels != new.metadata.labels
        or _resources(old) != _resources(new)
    )


def _resources(pod: Pod) -> tuple[object, ...]:
    """Return the fields from which a pod's request is computed; a resize changes them."""
    spec, status = pod.spec, pod.status
    return (
        spec.containers,
        spec.init_containers,
        spec.resources,
        status.container_statuses,
        status.init_container_statuses,
        status.allocated_resources,
        status.resources,
        is_resize_infeasible(pod),
    )


def _only_leaves(pod: Pod) -> bool:
    return pod.is_terminal or (pod.is_terminating and not pod.spec.node_name)


def _was_admitted(pod: Pod) -> bool:
    conditions = pod.status.conditions
    return any(one.type == POD_SCHEDULED and one.reason in ADMITTED_REASONS for one in conditions)
