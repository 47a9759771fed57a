"""A group of pods as queues see it: whether it can start, and what it means to its queue.

It is *ready* when as many pods as it needs (`minMember`, and of each task's pods `minTaskMember`)
have a node, and *pipelined* when they have one as soon as others have left. Minima of tasks count
only if `minMember` is at least their sum, as Volcano has it.

What it adds to its queue's sums follows from those of its roster, so that its pods need not be
looked at again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Self

from bayplan.kube.meta import ObjectMeta
from bayplan.kube.volcano import PodGroup
from bayplan.queues.accounts import Usage
from bayplan.queues.members import WAITING, GroupMembers, TaskStatus
from bayplan.queues.problems import WaitCode
from bayplan.queues.resources import NOTHING, AmountError, Resources, read_amounts


class Group(GroupMembers):
    """A PodGroup and its pods."""

    def __init__(self, podgroup: PodGroup, priority: int = 0) -> None:
        super().__init__()
        self._admitted = False
        """Whether it was admitted, and its object does not say so yet."""
        self.take(podgroup, priority)

    @classmethod
    def unknown(cls, namespace: str, name: str) -> Self:
        """Return a group whose PodGroup has not been observed yet."""
        group = cls(PodGroup(metadata=ObjectMeta(namespace=namespace, name=name)))
        group.is_known = False
        return group

    def take(self, podgroup: PodGroup, priority: int) -> None:
        """Go by this object from now on."""
        self.podgroup = podgroup
        self.priority = priority
        self.is_known = True
        self.key = podgroup.key
        self._said = podgroup.status.phase or "Pending"
        self._admitted = self._admitted and self._said == "Pending"
        self.problems: list[str] = []
        self.min_resources = self._read_min_resources()
        self.min_member = self._checked(podgroup.spec.min_member, "minMember")
        minima = podgroup.spec.min_task_member
        self.min_of_role = {r: self._checked(n, f"minTaskMember.{r}") for r, n in minima.items()}
        self.counts_roles = self.min_member >= sum(self.min_of_role.values())

    def _read_min_resources(self) -> Resources | None:
        written = self.podgroup.spec.min_resources
        try:
            return None if written is None else read_amounts(written)
        except AmountError as error:
            self.problems.append(f"minResources: {error}")
            return None

    def _checked(self, number: int, field: str) -> int:
        if 0 <= number < 2**31:
            return number
        self.problems.append(f"{field}: {number} is no number of pods")
        return 0

    @property
    def queue(self) -> str:
        """The queue that it is in."""
        return self.podgroup.spec.queue

    def admit(self) -> None:
        """Take it as admitted."""
        self._admitted = True

    @property
    def phase(self) -> str:
        """The phase, as observed or as decided since."""
        return "Inqueue" if self._admitted else self._said

    @property
    def is_pending(self) -> bool:
        """Whether it has yet to be admitted."""
        return self.phase == "Pending"

    # -- gangs -----------------------------------------------------------------------------------

    @property
    def is_gang(self) -> bool:
        """Whether it needs more than any one of its pods to start."""
        return self.min_member > 1 or any(self.min_of_role.values())

    @property
    def has_enough(self) -> bool:
        """Whether as many pods as it needs have a node, tasks apart."""
        return self.ready_count >= self.min_member

    @property
    def is_ready(self) -> bool:
        """Whether it can start."""
        return self.has_enough and self._roles_reached(ready_only=True)

    @property
    def is_pipelined(self) -> bool:
        """Whether it can start once others have left."""
        return self.will_have_enough and self._roles_reached(ready_only=False)

    @property
    def will_have_enough(self) -> bool:
        """Whether as many pods as it needs have a node or are to have one, tasks apart."""
        return self.placed_count >= self.min_member

    @property
    def needed_to_run(self) -> int:
        """The number of pods that must be on nodes, or have ended, for the phase Running."""
        return max(self.min_member, 1)

    @property
    def has_quota_to_start(self) -> bool:
        """Whether as many pods as it needs have quota, with or without nodes."""
        if self.placed_count + self.reserved_roles.total() < self.min_member:
            return False
        if not self.counts_roles:
            return True
        let = self.role_counts(ready_only=False) + self.reserved_roles
        return all(let[role] >= least for role, least in self.min_of_role.items())

    @property
    def is_starving(self) -> bool:
        """Whether it needs more pods to start than have a node, or are to have one."""
        return self.placed_count < min(self.min_member, len(self.members))

    @property
    def invalid(self) -> WaitCode | None:
        """Why it cannot start whatever the capacity: too few pods in all, or of a task."""
        if self.counts_roles:
            alive = self.alive_roles()
            if any(alive[role] < least for role, least in self.min_of_role.items()):
                return WaitCode.NOT_ENOUGH_PODS_OF_TASK
        if self.ready_count + self.count(*WAITING) < self.min_member:
            return WaitCode.NOT_ENOUGH_PODS
        return None

    def _roles_reached(self, *, ready_only: bool) -> bool:
        if not self.counts_roles or not self.min_of_role:
            return True
        placed = self.role_counts(ready_only=ready_only)
        return all(placed[role] >= least for role, least in self.min_of_role.items())

    def role_counts(self, *, ready_only: bool = True) -> Counter[str]:
        """By task the pods that have a node, and those that are to have one."""
        also = () if ready_only else (TaskStatus.PIPELINED,)
        placed: Counter[str] = Counter()
        for (status, role), number in self.roles.items():
            if status.is_ready or status in also:
                placed[role] += number
        return placed

    # -- what it means to its queue --------------------------------------------------------------

    @property
    def needs(self) -> Resources:
        """The resources that it needs to start: minResources."""
        return self.min_resources or NOTHING

    @property
    def usage(self) -> Usage:
        """The usage that it adds to its queue."""
        return Usage(
            allocated=self.allocated,
            request=self.allocated + self.pending + self.pipelined,
            inqueue=self._inqueue(),
            elastic=self.allocated.beyond(self.needs) if self.allocated.amounts else NOTHING,
            reserved=self.reserved + self.pipelined,
        )

    def _inqueue(self) -> Resources:
        if self.min_resources is None:
            return NOTHING
        started = self.phase == "Running" and self.allocated_count >= self.min_member
        if self.phase != "Inqueue" and not started:
            return NOTHING
        needs = self.min_resources
        return self.without_foreign(_of_named(needs.beyond(self.held_to_start), needs))

    @property
    def held_to_start(self) -> Resources:
        """The part of minResources that it uses or has reserved."""
        return self.allocated + self.reserved + self.pipelined

    def without_foreign(self, amounts: Resources) -> Resources:
        """Amounts without what pods request that others' gates hold back."""
        if self.foreign.is_nothing:
            return amounts
        return _of_named(amounts.beyond(self.foreign), amounts)


def _of_named(amounts: Resources, named: Iterable[str]) -> Resources:
    return Resources({name: amounts[name] for name in named})
