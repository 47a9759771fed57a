"""The ledger, kept as the cluster says: pods, groups and queues as they come, change and go.

Only pods of ours that use queues are counted, with a node or without. `stirred` collects the groups
about which something is new, for whoever gives them their turns.

What differs from the plain ledger is what only a live cluster knows:
- A pod that is being deleted and has a node holds its quota until it is gone, as it holds its node.
- Whether a pod without a gate was let in by us, or never had one, its PodScheduled condition tells:
  the API server writes SchedulingGated when a pod is made with gates, we write Unschedulable only
  for those that were let in, and other reasons for those that wait. What was let in before a
  restart is let in again first, as far as the quota still has room for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bayplan.kube.pods import POD_SCHEDULED, Pod
from bayplan.kube.queueing import PodGroup
from bayplan.kube.requests import is_resize_infeasible
from bayplan.queues.admission import hold_again
from bayplan.queues.asks import Candidates
from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger
from bayplan.queues.members import Gate, Member, Status, group_key_of
from bayplan.queues.podgroups import group_for, malformed, names_group, uses_queues

LET_IN = frozenset(("SchedulingGated", "Unschedulable", "Schedulable", "SchedulerError"))
"""What the condition of a pod says that was let in, once its gate is gone."""


class QueueRegistry:
    """Keeps a ledger of the pods that use queues, and of their groups and queues."""

    def __init__(self, ledger: Ledger, is_ours: Callable[[Pod], bool]) -> None:
        self.ledger = ledger
        self.candidates = Candidates()
        self.stirred: dict[str, None] = {}
        """The groups about which something is new."""
        self.unsaid: dict[str, None] = {}
        """The groups that may stand otherwise than their objects say."""
        self.recovered: dict[str, None] | None = {}
        """The pods that were let in before we came; None once that is looked after."""
        self._is_ours = is_ours
        self.on_news: Callable[[], None] = lambda: None
        """Called when groups may stand otherwise than their objects say."""
        self._terms: int | None = None
        """The terms of the ledger by which quota is held; None if some of it has moved."""
        self._malformed: dict[str, str] = {}
        """By pod what is wrong with its annotations."""
        self.made: dict[str, PodGroup] = {}
        """The PodGroups that the server has."""

    # -- what is there -------------------------------------------------------------------------

    def member(self, pod: Pod) -> Member | None:
        """What a pod is to its group, if it uses queues and is known."""
        found = self.ledger.members.get(pod.key)
        return found if found is not None and _is_same(found.pod, pod) else None

    def group_of(self, member: Member) -> Group:
        """The group of a pod."""
        return self.ledger.groups[member.group]

    def malformed(self, group: Group) -> str:
        """What a pod says wrongly of a group that is its own; empty if nothing."""
        return next((text for key, text in self._malformed.items() if key in group.members), "")

    # -- pods ----------------------------------------------------------------------------------

    def see_pod(self, pod: Pod) -> None:
        """A pod is there, or has changed."""
        if not self._is_ours(pod):
            return
        if not uses_queues(pod):
            if self.ledger.members:
                self.lose_pod(pod)
            return
        known = self.ledger.members.get(pod.key)
        if known is not None and not _matters(known.pod, pod):
            known.pod = pod
            return
        if _only_leaves(pod):
            self.lose_pod(pod)
            return
        self._count(pod, known)

    def lose_pod(self, pod: Pod) -> None:
        """A pod is gone, or has ended: one that ran to its end counts for its gang."""
        member = self.member(pod)
        if member is None or member.status is Status.SUCCEEDED:
            return
        self._malformed.pop(member.key, None)
        group = self.group_of(member)
        ended = member.status.is_allocated and not pod.is_terminating
        if ended and group.count(Status.SUCCEEDED) < max(group.min_member, 1):
            self.ledger.move(member, Status.SUCCEEDED)
        else:
            self.ledger.delete_pod(member.key)
        self._tidy(group)
        self.stir(group.key)

    def _tidy(self, group: Group) -> None:
        """Forget a group that nobody made and that has no pods any more."""
        if group.key not in self.made and group.count(Status.SUCCEEDED) == len(group.members):
            self._forget(group)
            self.candidates.forget(group.key)

    def _forget(self, group: Group) -> None:
        for key in [one.key for one in group.of_status(Status.SUCCEEDED)]:
            self.ledger.delete_pod(key)
        self.ledger.delete_group(group.key)

    def _count(self, pod: Pod, known: Member | None) -> None:
        was_in = known is not None and known.reserved and _is_in_same_group(known, pod)
        member = self.ledger.put_pod(pod)
        if (text := malformed(pod)) and not names_group(pod):
            self._malformed[member.key] = text
        elif self._malformed:
            self._malformed.pop(member.key, None)
        if member.status is Status.RELEASING:
            self.ledger.reserve(member)
        elif member.reserved and not was_in:
            self.ledger.release(member)
            if self.recovered is not None and _was_let_in(pod):
                self.recovered[member.key] = None
        self._see_to_group(member)
        if member.status is Status.PENDING and member.gate is not Gate.FOREIGN:
            self.candidates.put(member)
        self.stir(member.group)

    def _see_to_group(self, member: Member) -> None:
        if not self.group_of(member).is_known and not names_group(member.pod):
            self.ledger.put_group(group_for(member.pod))

    def recover(self) -> dict[str, list[Member]]:
        """Hold quota again for pods that were let in before we came, as far as it goes; says for
        whom, by group.
        """
        keys, self.recovered = self.recovered or {}, None
        known = (self.ledger.members.get(key) for key in keys)
        return hold_again(self.ledger, [one for one in known if one and _waits(one)])

    def settle(self) -> list[Member]:
        """Have quota held only as far as it goes by now; says who holds none any more."""
        if self._terms == self.ledger.terms:
            return []
        self._terms = self.ledger.terms
        held = [one for group in self.ledger.groups.values() for one in reserved_of(group)]
        hold_again(self.ledger, held)
        lost = [one for one in held if not one.reserved]
        for member in lost:
            self.candidates.put(member)
        return lost

    def release(self, member: Member) -> None:
        """Hold no quota for a pod without a node any more; it may ask again."""
        self.ledger.release(member)
        self.candidates.put(member)

    # -- groups and queues ---------------------------------------------------------------------

    def see_group(self, group: PodGroup) -> None:
        """A PodGroup came, or has changed."""
        self.made[group.key] = group
        self._put_group(group)
        self.stir(group.key)

    def lose_group(self, group: PodGroup) -> None:
        """A PodGroup is gone."""
        self.made.pop(group.key, None)
        self._lose_group(group.key)
        self.stir(group.key)

    def _put_group(self, group: PodGroup) -> None:
        known = self.ledger.groups.get(group.key)
        if known is not None and known.queue != group.spec.queue and reserved_of(known):
            self._terms = None
        self.ledger.put_group(group)

    def _lose_group(self, key: str) -> None:
        if (known := self.ledger.groups.get(key)) is not None:
            self._forget(known)
        group = self.ledger.groups.get(key)
        members: Iterable[Member] = group.members.values() if group is not None else ()
        if (first := next(iter(members), None)) is not None:
            self._see_to_group(first)

    def see_priorities(self) -> None:
        """A PriorityClass changed: groups may be of another rank."""
        for group in self.ledger.groups.values():
            if group.is_known:
                self.ledger.put_group(group.podgroup)
                self.stir(group.key)

    def stir(self, group: str) -> None:
        """Something is new about a group."""
        self.stirred[group] = None
        self.touch(group)

    def touch(self, group: str) -> None:
        """A group may stand otherwise than its object says."""
        self.unsaid[group] = None
        self.on_news()


def reserved_of(group: Group) -> list[Member]:
    """The pods of a group that hold quota and have no node."""
    if not group.reserved_roles.total():
        return []
    return [one for one in group.of_status(Status.PENDING) if one.reserved]


def _waits(member: Member) -> bool:
    return member.status is Status.PENDING


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
    """All that a pod's request is reckoned from, which changes when it is resized."""
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


def _was_let_in(pod: Pod) -> bool:
    conditions = pod.status.conditions
    return any(one.type == POD_SCHEDULED and one.reason in LET_IN for one in conditions)
