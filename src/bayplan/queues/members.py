"""Pods as members of groups: requests, task status and scheduling gates.

A pod names its group by annotation. One that does not belongs to the group of its controller, or to
one of its own; that is the name its PodGroup is given (`podgroup-…`).

A `GroupMembers` has the pods of a group by where they stand, and their sums, kept as they change.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.quantity import QuantityError
from bayplan.kube.volcano import (
    DEFAULT_QUEUE,
    GATE_ANNOTATIONS,
    GROUP_NAME_ANNOTATIONS,
    PREEMPTABLE,
    QUEUE_NAME_ANNOTATIONS,
    QUEUE_SCHEDULING_GATE,
    TASK_PRIORITY,
    TASK_SPEC,
)
from bayplan.queues.resources import NOTHING, Resources, pod_amounts

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
UNSET_PRIORITY = 1
"""The priority of a pod that has none, among the pods of its group."""


class TaskStatus(enum.Enum):
    """The status of a pod of a group, in Volcano's words."""

    PENDING = "pending"
    ALLOCATED = "allocated"
    """A node was chosen for it, and it waits for the rest of its gang."""
    PIPELINED = "pipelined"
    """A node was chosen for it that others have yet to leave."""
    BINDING = "binding"
    BOUND = "bound"
    RUNNING = "running"
    RELEASING = "releasing"
    """It is being deleted, or was chosen to be evicted."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"

    @property
    def is_allocated(self) -> bool:
        """Whether it counts in what its queue has."""
        return self in _ALLOCATED

    @property
    def is_ready(self) -> bool:
        """Whether it counts towards what its gang needs to start."""
        return self in _ALLOCATED or self is TaskStatus.SUCCEEDED


_ALLOCATED = frozenset(
    (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)
)


class Gate(enum.Enum):
    """The scheduling gates of a pod, as queues see them."""

    NONE = "none"
    OURS = "ours"
    """The gate of queue admission alone."""
    OURS_UNASKED = "ours-unasked"
    """The gate of queue admission alone, on a pod that does not ask for it."""
    FOREIGN = "foreign"
    """A gate of another controller, whatever else is there."""


def wants_gate(pod: Pod) -> bool:
    """Whether a pod asks to be gated until its queue has quota for it."""
    annotations = pod.metadata.annotations
    return any(annotations.get(name) == "true" for name in GATE_ANNOTATIONS)


def gate_of(pod: Pod) -> Gate:
    """Return the kind of gates that a pod has."""
    gates = pod.spec.scheduling_gates
    if not gates:
        return Gate.NONE
    if len(gates) > 1 or gates[0].name != QUEUE_SCHEDULING_GATE:
        return Gate.FOREIGN
    return Gate.OURS if wants_gate(pod) else Gate.OURS_UNASKED


def queue_name_of(pod: Pod) -> str:
    """Return the queue that a pod names; its PodGroup's queue goes before it."""
    return _annotation(pod, QUEUE_NAME_ANNOTATIONS) or DEFAULT_QUEUE


def group_name_of(pod: Pod) -> str:
    """Return the name of a pod's PodGroup, in the namespace of the pod."""
    named = _annotation(pod, GROUP_NAME_ANNOTATIONS)
    if named:
        return named
    owners = pod.metadata.owner_references
    owner = next((one.uid for one in owners if one.controller and one.uid), "")
    return f"podgroup-{owner or pod.metadata.uid or pod.name}"


def group_key_of(pod: Pod) -> str:
    """`namespace/name` of the PodGroup that a pod belongs to."""
    return f"{pod.namespace}/{group_name_of(pod)}"


def role_of(pod: Pod) -> str:
    """Return the task of its job that a pod is of; empty if it names none."""
    meta = pod.metadata
    return meta.annotations.get(TASK_SPEC) or meta.labels.get(TASK_SPEC, "")


def is_preemptable(pod: Pod) -> bool:
    """Whether a pod may be evicted for others; an unknown value means no."""
    meta = pod.metadata
    said = meta.annotations.get(PREEMPTABLE, meta.labels.get(PREEMPTABLE))
    return said is None or said in _TRUE


def status_of(pod: Pod) -> TaskStatus:
    """Return the status of a pod as observed."""
    phase = pod.status.phase
    if phase in _ENDED:
        return _ENDED[phase]
    if phase not in {"Running", "Pending", ""}:
        return TaskStatus.UNKNOWN
    if pod.is_terminating:
        return TaskStatus.RELEASING
    if phase == "Running":
        return TaskStatus.RUNNING
    return TaskStatus.BOUND if pod.spec.node_name else TaskStatus.PENDING


_ENDED = {"Succeeded": TaskStatus.SUCCEEDED, "Failed": TaskStatus.FAILED}


@dataclass(slots=True, eq=False)
class Member:
    """One pod of a group; `status`, `reserved` and `node` change as decisions are made."""

    pod: Pod
    key: str
    group: str
    request: Resources
    status: TaskStatus
    gate: Gate
    opted_in: bool
    role: str
    priority: int
    preemptable: bool
    node: str = ""
    reserved: bool = False
    """Whether it holds a part of its queue's quota without being placed."""

    @classmethod
    def of(cls, pod: Pod) -> Member:
        """Return a pod as observed."""
        status, gate, opted_in = status_of(pod), gate_of(pod), wants_gate(pod)
        return cls(
            pod=pod,
            key=pod.key,
            group=group_key_of(pod),
            request=_request(pod),
            status=status,
            gate=gate,
            opted_in=opted_in,
            role=role_of(pod),
            priority=_priority(pod),
            preemptable=is_preemptable(pod),
            node=pod.spec.node_name,
            reserved=status is TaskStatus.PENDING and gate is Gate.NONE and opted_in,
        )

    def keep_decisions(self, old: Member) -> None:
        """Keep what was decided about this pod and is not observed yet."""
        same = old.pod.metadata.uid == self.pod.metadata.uid
        if not same or self.status is not TaskStatus.PENDING:
            return
        if old.status.is_allocated or old.status is TaskStatus.PIPELINED:
            self.status, self.node, self.reserved = old.status, old.node, False
        elif old.reserved or old.gate is self.gate:
            self.reserved = old.reserved

    @property
    def is_best_effort(self) -> bool:
        """Whether it requests nothing."""
        return self.request.is_nothing

    @property
    def never_preempts(self) -> bool:
        """Whether it may not make others leave."""
        return self.pod.spec.preemption_policy == "Never"

    @property
    def index(self) -> int | None:
        """Its number among the pods of its task, if its name ends in one."""
        parts = self.pod.name.split("-")
        last = parts[-1]
        return int(last) if len(parts) >= 3 and _is_index(last) else None


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 18


def _request(pod: Pod) -> Resources:
    try:
        return pod_amounts(pod)
    except QuantityError:
        return NOTHING


def _priority(pod: Pod) -> int:
    said = pod.metadata.annotations.get(TASK_PRIORITY, "")
    if _is_index(said.removeprefix("-")):
        return int(said)
    return UNSET_PRIORITY if pod.spec.priority is None else pod.spec.priority


def _annotation(obj: KubeObject, names: tuple[str, ...]) -> str:
    annotations = obj.metadata.annotations
    return next((annotations[name] for name in names if annotations.get(name)), "")


WAITING = (TaskStatus.PENDING, TaskStatus.PIPELINED)


class GroupMembers:
    """Pods, counted."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self._by_status: dict[TaskStatus, dict[str, Member]] = {}
        self.roles: Counter[tuple[TaskStatus, str]] = Counter()
        """By status and role how many pods there are."""
        self.reserved_roles: Counter[str] = Counter()
        """By role the waiting pods that hold a part of the quota."""
        self.allocated = NOTHING
        self.pending = NOTHING
        self.pipelined = NOTHING
        self.reserved = NOTHING
        self.foreign = NOTHING
        """What pods request that others' gates hold back."""

    def add(self, member: Member) -> None:
        """Count a pod."""
        self.members[member.key] = member
        self._by_status.setdefault(member.status, {})[member.key] = member
        self._count(member, 1)

    def remove(self, member: Member) -> None:
        """Count a pod no longer."""
        del self.members[member.key]
        del self._by_status[member.status][member.key]
        self._count(member, -1)

    def move(self, member: Member, status: TaskStatus, *, reserved: bool = False) -> None:
        """Count a pod where it stands now."""
        del self._by_status[member.status][member.key]
        self._count(member, -1)
        member.status, member.reserved = status, reserved
        self._by_status.setdefault(status, {})[member.key] = member
        self._count(member, 1)

    def _count(self, member: Member, sign: int) -> None:
        status, request = member.status, member.request
        self.roles[status, member.role] += sign
        if status.is_allocated:
            self.allocated = _changed(self.allocated, request, sign)
        elif status is TaskStatus.PENDING:
            self.pending = _changed(self.pending, request, sign)
        elif status is TaskStatus.PIPELINED:
            self.pipelined = _changed(self.pipelined, request, sign)
        if member.reserved:
            self.reserved = _changed(self.reserved, request, sign)
            if status is TaskStatus.PENDING:
                self.reserved_roles[member.role] += sign
        if member.gate is Gate.FOREIGN:
            self.foreign = _changed(self.foreign, request, sign)

    def of_status(self, *statuses: TaskStatus) -> Iterator[Member]:
        """Yield the pods with one of these statuses."""
        for status in statuses:
            yield from self._by_status.get(status, {}).values()

    def count(self, *statuses: TaskStatus) -> int:
        """Return the number of pods with one of these statuses."""
        return sum(len(self._by_status.get(status, ())) for status in statuses)

    @property
    def allocated_count(self) -> int:
        """The number of pods that have a node."""
        return sum(len(pods) for s, pods in self._by_status.items() if s.is_allocated)

    @property
    def ready_count(self) -> int:
        """The number of pods that have a node, or have succeeded."""
        return sum(len(pods) for s, pods in self._by_status.items() if s.is_ready)

    @property
    def placed_count(self) -> int:
        """The number of pods that have or will get a node, or have succeeded."""
        return self.ready_count + self.count(TaskStatus.PIPELINED)

    def alive_roles(self) -> Counter[str]:
        """By task the pods that have a node, had one, or may yet have one."""
        alive: Counter[str] = Counter()
        for (status, role), number in self.roles.items():
            if status.is_ready or status in WAITING:
                alive[role] += number
        return alive


def _changed(total: Resources, request: Resources, sign: int) -> Resources:
    return total + request if sign > 0 else total - request
