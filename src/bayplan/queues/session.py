"""A session: the ledger, the nodes and the plan of one cycle, changed and undone together.

A `Statement` collects placements, pipelines and evictions. All are entered in the ledger and on the
nodes at once, so that the next decision sees them. A gang that cannot be completed is discarded:
everything is undone in reverse. What is committed goes into the `CyclePlan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import ClassVar, Literal

from bayplan.fit.state.workloads import CompiledBudget, DisruptionBudgets, breaks_one
from bayplan.queues.accounts import Accounts
from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger
from bayplan.queues.members import Gate, Member, TaskStatus
from bayplan.queues.placement import Choice, Placement
from bayplan.queues.problems import QueueReason, WaitCode
from bayplan.queues.status import wait_text


@dataclass(frozen=True, slots=True)
class PodAssignment:
    """A pod, and the node that was chosen for it."""

    pod: str
    node: str


@dataclass(frozen=True, slots=True)
class PlannedEviction:
    """A pod to be evicted, for which pod and by which action."""

    pod: str
    node: str
    preemptor: str
    action: Literal["preempt", "reclaim"]


@dataclass(slots=True)
class CyclePlan:
    """The decisions of one cycle; pods and groups by their keys."""

    admitted: list[str] = field(default_factory=list)
    """Groups that are now Inqueue."""
    ungated: list[str] = field(default_factory=list)
    """Pods that lose the gate of queue admission; quota is reserved for them from now on."""
    placed: list[PodAssignment] = field(default_factory=list)
    """Pods to be bound; each pod's gang is complete."""
    pipelined: list[PodAssignment] = field(default_factory=list)
    """Pods that a node is kept for until others have left it."""
    evicted: list[PlannedEviction] = field(default_factory=list)
    unplaced: list[str] = field(default_factory=list)
    """Pods that quota admits and no node fits: nodes have to be added for them."""
    waiting: dict[str, QueueReason] = field(default_factory=dict)
    """By group what it waits for."""


Evicting = Literal["preempt", "reclaim"]
Undo = Callable[[], None]


class Session:
    """The state and the decisions of one cycle."""

    removable_gates: ClassVar[frozenset[Gate]] = frozenset((Gate.OURS, Gate.OURS_UNASKED))
    """The gates that are the queue's to remove."""
    preemptor_gates: ClassVar[frozenset[Gate]] = frozenset((Gate.NONE, *removable_gates))
    """The gates of pods that may make others leave."""

    def __init__(
        self, ledger: Ledger, placement: Placement, budgets: DisruptionBudgets | None = None
    ) -> None:
        self.ledger = ledger
        self.placement = placement
        self.budgets = budgets
        """The disruption budgets that are kept as long as other pods can be evicted; None if none
        are.
        """
        self.plan = CyclePlan()
        self.evicted: dict[str, Member] = {}
        """The pods evicted so far."""
        self._ungated: set[str] = set()
        self._least_priority: dict[str, float] = {}
        self._done: list[_Step] = []
        """All that stands, in order."""

    @property
    def accounts(self) -> Accounts:
        """The sums of all queues."""
        return self.ledger.accounts

    def group_of(self, member: Member) -> Group:
        """Return the group of a pod."""
        return self.ledger.groups[member.group]

    def groups(self) -> Iterator[Group]:
        """Return the waiting groups of existing queues."""
        nodes = self.ledger.tree.nodes
        return (group for group in self.ledger.waiting() if group.queue in nodes)

    def least_priority(self, queue: str) -> float:
        """Return the lowest priority among a queue's groups that had pods on nodes at the start."""
        least = self._least_priority.get(queue)
        if least is None:
            groups = (one for one in self.ledger.groups_in(queue) if one.allocated_count)
            least = min((one.priority for one in groups), default=inf)
            self._least_priority[queue] = least
        return least

    def wait(self, group: Group, why: QueueReason | WaitCode) -> None:
        """Note what a group waits for."""
        if isinstance(why, WaitCode):
            why = QueueReason(why, group.queue, wait_text(group, why))
        self.plan.waiting[group.key] = why

    def is_held_up(self, group: Group) -> bool:
        """Whether a group waits behind another of its queue."""
        waits = self.plan.waiting.get(group.key)
        return waits is not None and waits.code is WaitCode.EARLIER_GROUP

    def ungate(self, member: Member) -> None:
        """Have the gate of a pod removed, if it has ours."""
        if member.gate in self.removable_gates and member.key not in self._ungated:
            self._ungated.add(member.key)
            self.plan.ungated.append(member.key)

    def status_if_spared(self, victim: Member) -> TaskStatus:
        """Return where a pod stands that was to be evicted, and then is not."""
        return victim.status

    def keeps_quota(self, victim: Member) -> bool:
        """Whether a pod that is evicted goes on reserving quota."""
        del victim
        return False

    def may_preempt_within(self, group: Group) -> bool:
        """Whether pods of a group may leave for others of it: only if it can start then."""
        return group.is_pipelined

    def may_reclaim(self, member: Member) -> bool:
        """Whether quota takes a pod for which others leave: in its queue and in all above it."""
        return self.ledger.may_allocate(member) is None

    def revert(self) -> None:
        """Take back all that was decided, in reverse; the plan still has it."""
        for step in reversed(self._done):
            step.undo()
        self._done = []

    def keep(self, steps: Iterable[_Step]) -> None:
        """Note steps that stand."""
        self._done += steps

    def by_budget(self, victims: Sequence[Member]) -> tuple[list[Member], list[Member]]:
        """Return the victims that budgets protect, beside those evicted already, and the others."""
        if self.budgets is None:
            return [], list(victims)
        left: dict[CompiledBudget, int] = {}
        kept: list[Member] = []
        others: list[Member] = []
        for one in self.evicted.values():
            self._breaks_budget(one, left)
        for one in victims:
            (kept if self._breaks_budget(one, left) else others).append(one)
        return kept, others

    def _breaks_budget(self, member: Member, left: dict[CompiledBudget, int]) -> bool:
        pod = member.pod
        budgets = self.budgets.of(pod.namespace, pod.metadata.labels) if self.budgets else ()
        return breaks_one(budgets, pod.name, left)

    def members_on(self, node: str) -> Iterable[Member]:
        """Return the pods of groups on a node."""
        members = self.ledger.members
        return [members[key] for key in self.placement.pods_on(node) if key in members]


@dataclass(frozen=True, slots=True)
class _Step:
    """An operation on a pod, and how to undo it."""

    member: Member
    undo: Undo
    eviction: PlannedEviction | None = None
    is_choice: bool = False
    """Whether a node was chosen for it, or else only quota held."""


class Statement:
    """Placements and evictions that stand or fall together."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._steps: list[_Step] = []

    def take(self, member: Member, choice: Choice) -> None:
        """Place a pod on a node on which it fits now, or keep one for it on which it will."""
        status, reserved = member.status, member.reserved
        placement, ledger = self._session.placement, self._session.ledger
        if choice.now:
            placement.place(member, choice.node)
        else:
            placement.pipeline(member, choice.node)
        member.node = choice.node
        ledger.move(member, TaskStatus.ALLOCATED if choice.now else TaskStatus.PIPELINED)

        def undo() -> None:
            placement.withdraw(member)
            member.node = ""
            ledger.move(member, status, reserved=reserved)

        self._steps.append(_Step(member, undo, is_choice=True))

    def evict(self, member: Member, preemptor: Member, action: Evicting) -> None:
        """Evict a pod from its node."""
        status, reserved = self._session.status_if_spared(member), member.reserved
        placement, ledger = self._session.placement, self._session.ledger
        keeps_quota = self._session.keeps_quota(member)
        ledger.move(member, TaskStatus.RELEASING, reserved=keeps_quota)
        placement.evict(member)
        self._session.evicted[member.key] = member

        def undo() -> None:
            del self._session.evicted[member.key]
            placement.spare(member)
            ledger.move(member, status, reserved=reserved)

        told = PlannedEviction(member.key, member.node, preemptor.key, action)
        self._steps.append(_Step(member, undo, told))

    def reserve(self, member: Member) -> None:
        """Reserve quota for a pod, whose gate is removed."""
        status, reserved = member.status, member.reserved
        self._session.ledger.reserve(member)
        undo = partial(self._session.ledger.move, member, status, reserved=reserved)
        self._steps.append(_Step(member, undo))

    def merge(self, other: Statement) -> None:
        """Let what another statement has done stand or fall with this one."""
        self._steps += other._steps
        other._steps = []

    def end(self, group: Group) -> bool:
        """Let everything stand if a group can start with it, now or later; whether it can now."""
        if group.is_ready or group.is_pipelined:
            self.commit(bind=group.is_ready)
        else:
            self.discard()
        return group.is_ready

    def commit(self, *, bind: bool = True) -> None:
        """Let everything stand; without `bind`, nodes are only kept.

        Pods for which others are evicted keep their gates: victims hold their quota until they are
        gone.
        """
        plan = self._session.plan
        makes_room = any(step.eviction is not None for step in self._steps)
        for step in self._steps:
            if step.eviction is not None:
                plan.evicted.append(step.eviction)
                continue
            if bind or not makes_room:
                self._session.ungate(step.member)
            if step.is_choice:
                self._enter(step.member, bind=bind)
        self._session.keep(self._steps)
        self._steps = []

    def discard(self) -> None:
        """Take everything back, in reverse."""
        for step in reversed(self._steps):
            step.undo()
        self._steps = []

    def _enter(self, member: Member, *, bind: bool) -> None:
        placed = PodAssignment(member.key, member.node)
        if bind and member.status is TaskStatus.ALLOCATED:
            self._session.ledger.move(member, TaskStatus.BINDING)
            self._session.plan.placed.append(placed)
        else:
            self._session.plan.pipelined.append(placed)
