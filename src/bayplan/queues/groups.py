"""A group of pods as queues see it: whether it can start, and what it means to its queue.

It is *ready* when as many pods as it needs (`minMember`, and of each task's pods `minTaskMember`)
have a node, *pipelined* when they have one as soon as others have left, and *let through* when
quota is held for those that have none. Minima of tasks count only if `minMember` is at least their
sum, as Volcano has it.

What it adds to its queue's sums follows from those of its roster, so that its pods need not be
looked at again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.kube.meta import ObjectMeta
from bayplan.kube.queueing import PodGroup
from bayplan.queues.accounts import Usage
from bayplan.queues.members import WAITING, Roster, Status
from bayplan.queues.problems import Why
from bayplan.queues.resources import NOTHING, AmountError, Resources, read_amounts
from bayplan.queues.rules import OURS, Rules


class Group(Roster):
    """A PodGroup and its pods."""

    def __init__(self, podgroup: PodGroup, priority: int = 0, rules: Rules = OURS) -> None:
        super().__init__()
        self._rules = rules
        self._frozen: Usage | None = None
        self._admitted = False
        """Whether it was admitted, and its object does not say so yet."""
        self.take(podgroup, priority)

    @classmethod
    def unknown(cls, namespace: str, name: str, rules: Rules = OURS) -> Group:
        """The group of pods whose PodGroup has not been seen yet."""
        group = cls(PodGroup(metadata=ObjectMeta(namespace=namespace, name=name)), rules=rules)
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
        if self._frozen is not None:
            promised = self.without_foreign(self.needs)
            self._frozen = replace(self._frozen, inqueue=self._frozen.inqueue + promised)
        self._admitted = True

    def freeze(self) -> None:
        """Let what is asked, promised and elastic stand as it is, whatever is placed."""
        self._frozen = self.usage

    @property
    def phase(self) -> str:
        """Its phase, as its object says or as was decided since."""
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
        """Whether as many pods as it needs have a node or request nothing, tasks apart."""
        return self.ready_count + self._light_count >= self.min_member

    @property
    def is_ready(self) -> bool:
        """Whether it can start."""
        return self.has_enough and self._roles_reached(ready_only=True)

    @property
    def is_pipelined(self) -> bool:
        """Whether it can start once others have left."""
        enough = self.placed_count + self._light_count >= self.min_member
        return enough and self._roles_reached(ready_only=False)

    @property
    def is_let_through(self) -> bool:
        """Whether quota has let as many pods through as it needs, with or without nodes."""
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
    def invalid(self) -> Why | None:
        """Why it cannot start whatever the room: too few pods in all, or of a task."""
        if self.counts_roles:
            alive = self.alive_roles()
            if any(alive[role] < least for role, least in self.min_of_role.items()):
                return Why.NOT_ENOUGH_PODS_OF_TASK
        if self.ready_count + self.count(*WAITING) < self.min_member:
            return Why.NOT_ENOUGH_PODS
        return None

    @property
    def _light_count(self) -> int:
        return self.light_roles.total() if self._rules.best_effort_counts_as_placed else 0

    def _roles_reached(self, *, ready_only: bool) -> bool:
        if not self.counts_roles or not self.min_of_role:
            return True
        placed = self.role_counts(ready_only=ready_only)
        return all(placed[role] >= least for role, least in self.min_of_role.items())

    def role_counts(self, *, ready_only: bool = True) -> Counter[str]:
        """By task the pods that have a node or request nothing, and those that are to have one."""
        also = () if ready_only else (Status.PIPELINED,)
        light = self.light_roles if self._rules.best_effort_counts_as_placed else ()
        placed = Counter(light)
        for (status, role), number in self.roles.items():
            if status.is_ready or status in also:
                placed[role] += number
        return placed

    # -- what it means to its queue --------------------------------------------------------------

    @property
    def needs(self) -> Resources:
        """What it needs to start, as its object says."""
        return self.min_resources or NOTHING

    @property
    def usage(self) -> Usage:
        """What it adds to its queue's sums."""
        if self._frozen is not None:
            allocated = self.allocated + self.pipelined
            return replace(self._frozen, allocated=allocated, reserved=self.reserved)
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
        held = self.allocated
        if not self._rules.session_keeps_inqueue:
            held += self.reserved + self.pipelined
        return self.without_foreign(_of_named(self.min_resources.beyond(held), self.min_resources))

    def without_foreign(self, amounts: Resources) -> Resources:
        """Amounts without what pods request that others' gates hold back."""
        if self.foreign.is_nothing:
            return amounts
        return _of_named(amounts.beyond(self.foreign), amounts)


def _of_named(amounts: Resources, named: Iterable[str]) -> Resources:
    return Resources({name: amounts[name] for name in named})
