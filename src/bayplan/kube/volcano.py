"""Volcano's queues and pod groups (`scheduling.volcano.sh/v1beta1`), and its annotations of pods.

Amounts and counts are kept as written: an invalid one is reported in the status of its object by
the code that uses it, instead of dropping the object.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from bayplan.kube.meta import Int64, KubeObject, Quantity, Struct

GROUP = "scheduling.volcano.sh"
QUEUE_SCHEDULING_GATE = f"{GROUP}/queue-allocation-gate"
"""The scheduling gate that queue admission removes, and the annotation that requests it."""
GATE_ANNOTATIONS = (QUEUE_SCHEDULING_GATE, "volcano.sh/queue-allocation-gate")
"""The annotations that request the gate; the second is the spelling of its proposal."""
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
    """Resources reserved for a queue, whether it uses them or not."""

    resource: dict[str, Quantity] = {}


class QueueSpec(Struct):
    """The spec of a queue."""

    weight: Int64 = 1
    capability: dict[str, Quantity] = {}
    deserved: dict[str, Quantity] = {}
    guarantee: Guarantee = msgspec.field(default_factory=Guarantee)
    reclaimable: bool = True
    parent: str = ""
    priority: Int64 = 0
    dequeue_strategy: str = "traverse"


class QueueStatus(Struct):
    """The status of a queue: its state, pod groups by phase, and the resources in use."""

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
    """The spec of a pod group: what it needs to start."""

    min_member: Int64 = 0
    min_task_member: dict[str, Int64] = {}
    min_resources: dict[str, Quantity] | None = None
    queue: str = DEFAULT_QUEUE
    priority_class_name: str = ""


class PodGroupCondition(Struct):
    """A condition of a pod group."""

    type: str = ""
    status: str = ""
    transition_id: str = msgspec.field(default="", name="transitionID")
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(Struct):
    """The status of a pod group."""

    phase: str = ""
    conditions: list[PodGroupCondition] = []
    running: Int64 = 0
    succeeded: Int64 = 0
    failed: Int64 = 0


class PodGroup(KubeObject):
    """Pods that start together or not at all."""

    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus = msgspec.field(default_factory=PodGroupStatus)
