"""Queues and pod groups, as Volcano names them (`scheduling.volcano.sh/v1beta1`), and what a pod
says of its own.

Amounts and counts are kept as they are written: what is wrong with them is told on the object
itself, by whoever reckons with it, instead of hiding the object.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from bayplan.kube.meta import Int64, KubeObject, Quantity, Struct

GROUP = "scheduling.volcano.sh"
QUEUE_ALLOCATION_GATE = f"{GROUP}/queue-allocation-gate"
"""The scheduling gate that queue admission removes, and the annotation that asks for it."""
GATE_ANNOTATIONS = (QUEUE_ALLOCATION_GATE, "volcano.sh/queue-allocation-gate")
"""The annotations that ask for the gate, the second as its proposal spells it."""
GROUP_NAME_ANNOTATIONS = ("scheduling.k8s.io/group-name", f"{GROUP}/group-name")
QUEUE_NAME_ANNOTATIONS = (f"{GROUP}/queue-name", "volcano.sh/queue-name")
GROUP_MIN_MEMBER = f"{GROUP}/group-min-member"
TASK_SPEC = "volcano.sh/task-spec"
TASK_PRIORITY = "volcano.sh/task-priority"
PREEMPTABLE = "volcano.sh/preemptable"

ROOT_QUEUE = "root"
DEFAULT_QUEUE = "default"

QueueState = Literal["Open", "Closed", "Closing", "Unknown"]
PodGroupPhase = Literal["Pending", "Inqueue", "Running", "Unknown", "Completed"]


class Guarantee(Struct):
    """What is kept for a queue, whether it uses it or not."""

    resource: dict[str, Quantity] = {}


class QueueSpec(Struct):
    """What a queue may have."""

    weight: Int64 = 1
    capability: dict[str, Quantity] = {}
    deserved: dict[str, Quantity] = {}
    guarantee: Guarantee = msgspec.field(default_factory=Guarantee)
    reclaimable: bool = True
    parent: str = ""
    priority: Int64 = 0
    dequeue_strategy: str = "traverse"


class QueueStatus(Struct):
    """What a queue has: whether it takes work, pod groups by phase, and what its pods use."""

    state: str = ""
    pending: Int64 = 0
    inqueue: Int64 = 0
    running: Int64 = 0
    unknown: Int64 = 0
    completed: Int64 = 0
    allocated: dict[str, Quantity] = {}


class Queue(KubeObject):
    """A share of the cluster; queues form a tree by their parents."""

    spec: QueueSpec = msgspec.field(default_factory=QueueSpec)
    status: QueueStatus = msgspec.field(default_factory=QueueStatus)


class PodGroupSpec(Struct):
    """What a group of pods needs to start at all."""

    min_member: Int64 = 0
    min_task_member: dict[str, Int64] = {}
    min_resources: dict[str, Quantity] | None = None
    queue: str = DEFAULT_QUEUE
    priority_class_name: str = ""


class PodGroupCondition(Struct):
    """One thing that is known of a pod group."""

    type: str = ""
    status: str = ""
    transition_id: str = msgspec.field(default="", name="transitionID")
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(Struct):
    """Where a pod group stands."""

    phase: str = ""
    conditions: list[PodGroupCondition] = []
    running: Int64 = 0
    succeeded: Int64 = 0
    failed: Int64 = 0


class PodGroup(KubeObject):
    """Pods that start together or not at all."""

    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus = msgspec.field(default_factory=PodGroupStatus)
