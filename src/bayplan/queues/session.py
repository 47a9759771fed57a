"""One cycle of decisions: the books, the nodes and the plan, changed together and undone together.

A `Statement` collects placements, pipelines and evictions. All are entered in the books and on the
nodes at once, so that the next question sees them. A gang that cannot be completed is discarded:
everything is taken back in reverse. What is committed goes into
the `Plan`: values for whoever writes it to the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from bayplan.fit.state.workloads import CompiledBudget, DisruptionBudgets, breaks_one
from bayplan.queues.accounts import Accounts
from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger
from bayplan.queues.members import Gate, Member, Status
from bayplan.queues.placement import Choice, Placement
from bayplan.queues.problems import NoRoom, Why
from bayplan.queues.rules import Rules
from bayplan.queues.status import said_of


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod, and the node that was chosen for it."""

    pod: str
    node: str


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that has to leave, for whom and why."""

    pod: str
    node: str
    preemptor: str
    action: Literal["preempt", "reclaim"]


@dataclass(slots=True)
class Plan:
    """The decisions of one cycle; pods and groups by their keys."""

    admitted: list[str] = field(default_factory=list)
    """Groups that are now Inqueue."""
    ungated: list[str] = field(default_factory=list)
    """Pods that lose the gate of queue admission; they hold their quota from now on."""
    placed: list[Placed] = field(default_factory=list)
    """Pods to be bound; each pod's gang is complete."""
    pipelined: list[Placed] = field(default_factory=list)
    """Pods that a node is kept for until others have left it."""
    evicted: list[Eviction] = field(default_factory=list)
    unplaced: list[str] = field(default_factory=list)
    """Pods that quota lets run and no node takes: what nodes are to be bought for."""
    waiting: dict[str, NoRoom] = field(default_factory=dict)
    """By group what it waits for."""


Evicting = Literal["preempt", "reclaim"]
Undo = Callable[[], None]


class Session:
    """What one cycle decides with, and what it has decided."""

    def __init__(
        self, ledger: Ledger, placement: Placement, budgets: DisruptionBudgets | None = None
    ) -> None:
        self.ledger = ledger
        self.placement = placement
        self.budgets = budgets
        """The disruption budgets that are kept as long as others can leave; None if none are."""
        self.plan = Plan()
        if ledger.rules.session_keeps_inqueue:
            ledger.freeze()
        self.evicted: dict[str, Member] = {}
        """Those who leave so far."""
        self._ungated: set[str] = set()
        unasked = () if ledger.rules.unasked_gates_stay else (Gate.OURS_UNASKED,)
        self.removable_gates = frozenset((Gate.OURS, *unasked))
        """The gates that are the queue's to remove."""

    @property
    def rules(self) -> Rules:
        """Volcano's habits, or none of them."""
        return self.ledger.rules

    @property
    def accounts(self) -> Accounts:
        """The sums of all queues."""
        return self.ledger.accounts

    def group_of(self, member: Member) -> Group:
        """The group of a pod."""
        return self.ledger.groups[member.group]

    def groups(self) -> Iterator[Group]:
        """The groups that wait for something in a queue that exists."""
        nodes = self.ledger.tree.nodes
        return (group for group in self.ledger.waiting() if group.queue in nodes)

    def wait(self, group: Group, why: NoRoom | Why) -> None:
        """Note what a group waits for."""
        if isinstance(why, Why):
            why = NoRoom(why, group.queue, said_of(group, why))
        self.plan.waiting[group.key] = why

    def is_held_up(self, group: Group) -> bool:
        """Whether a group waits behind another of its queue."""
        waits = self.plan.waiting.get(group.key)
        return waits is not None and waits.why is Why.EARLIER_GROUP

    def ungate(self, member: Member) -> None:
        """Let the gate of a pod go, if it has ours."""
        if member.gate in self.removable_gates and member.key not in self._ungated:
            self._ungated.add(member.key)
            self.plan.ungated.append(member.key)

    def by_budget(self, victims: Sequence[Member]) -> tuple[list[Member], list[Member]]:
        """Victims whom budgets protect, beside those who leave already, and the others."""
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
        """The pods of groups on a node."""
        members = self.ledger.members
        return [members[key] for key in self.placement.pods_on(node) if key in members]


@dataclass(frozen=True, slots=True)
class _Step:
    """One thing that was done to a pod, and how it is undone."""

    member: Member
    undo: Undo
    eviction: Eviction | None = None
    is_choice: bool = False
    """Whether a node was chosen for it, or else only quota held."""


class Statement:
    """Placements and evictions that stand or fall together."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._steps: list[_Step] = []

    def take(self, member: Member, choice: Choice) -> None:
        """Place a pod on a node that has room, or keep one for it that will have."""
        status, reserved = member.status, member.reserved
        placement, ledger = self._session.placement, self._session.ledger
        if choice.now:
            placement.place(member, choice.node)
        else:
            placement.pipeline(member, choice.node)
        member.node = choice.node
        ledger.move(member, Status.ALLOCATED if choice.now else Status.PIPELINED)

        def undo() -> None:
            placement.withdraw(member)
            member.node = ""
            ledger.move(member, status, reserved=reserved)

        self._steps.append(_Step(member, undo, is_choice=True))

    def evict(self, member: Member, preemptor: Member, action: Evicting) -> None:
        """Let a pod leave its node."""
        status, reserved = member.status, member.reserved
        placement, ledger, rules = (
            self._session.placement,
            self._session.ledger,
            self._session.rules,
        )
        if rules.spared_pods_run:
            status = Status.RUNNING
        stays = rules.victims_stay_reserved and member.opted_in
        ledger.move(member, Status.RELEASING, reserved=stays)
        placement.evict(member)
        self._session.evicted[member.key] = member

        def undo() -> None:
            del self._session.evicted[member.key]
            placement.spare(member)
            ledger.move(member, status, reserved=reserved)

        told = Eviction(member.key, member.node, preemptor.key, action)
        self._steps.append(_Step(member, undo, told))

    def reserve(self, member: Member) -> None:
        """Hold a part of the quota for a pod, whose gate goes."""
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
        """Let everything stand; nodes are only kept as long as nobody is to be bound."""
        plan = self._session.plan
        for step in self._steps:
            if step.eviction is not None:
                plan.evicted.append(step.eviction)
                continue
            self._session.ungate(step.member)
            if step.is_choice:
                self._enter(step.member, bind=bind)
        self._steps = []

    def discard(self) -> None:
        """Take everything back, in reverse."""
        for step in reversed(self._steps):
            step.undo()
        self._steps = []

    def _enter(self, member: Member, *, bind: bool) -> None:
        placed = Placed(member.key, member.node)
        if bind and member.status is Status.ALLOCATED:
            self._session.ledger.move(member, Status.BINDING)
            self._session.plan.placed.append(placed)
        else:
            self._session.plan.pipelined.append(placed)
