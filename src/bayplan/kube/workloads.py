"""What makes, guards and groups pods, as far as scheduling reads it."""

from __future__ import annotations

from typing import Literal

import msgspec

from bayplan.kube.meta import (
    Int32,
    KubeObject,
    Labels,
    LabelSelector,
    ObjectMeta,
    Quantity,
    Struct,
)
from bayplan.kube.pods import PodSpec


class Namespace(KubeObject):
    """A namespace; pod affinity looks at its labels."""


class ServiceSpec(Struct):
    """The pods behind a service."""

    selector: Labels = {}


class Service(KubeObject):
    """A service; default spreading keeps its pods apart."""

    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)


class ReplicationControllerSpec(ServiceSpec):
    """The pods that it owns, and how many it wants."""

    replicas: Int32 | None = None


class ReplicationController(KubeObject):
    """The ancestor of ReplicaSets, whose selector is a plain map."""

    spec: ReplicationControllerSpec = msgspec.field(default_factory=ReplicationControllerSpec)


class SelectingSpec(Struct):
    """The pods a workload owns."""

    selector: LabelSelector | None = None


class ReplicatedSpec(SelectingSpec):
    """The pods that a workload owns, and how many it wants."""

    replicas: Int32 | None = None


class ReplicaSet(KubeObject):
    """A set of equal pods."""

    spec: ReplicatedSpec = msgspec.field(default_factory=ReplicatedSpec)


class StatefulSet(KubeObject):
    """A set of named pods with claims of their own."""

    spec: ReplicatedSpec = msgspec.field(default_factory=ReplicatedSpec)


class Job(KubeObject):
    """Pods that are to end; that there is one is all that is read of it."""


class PodTemplate(Struct):
    """What a workload's pods are made from."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class DaemonSetSpec(SelectingSpec):
    """The pods a DaemonSet owns, and what it makes them from."""

    template: PodTemplate = msgspec.field(default_factory=PodTemplate)


class DaemonSet(KubeObject):
    """One pod for every node that its template may go to; `kube.daemons` makes them."""

    spec: DaemonSetSpec = msgspec.field(default_factory=DaemonSetSpec)


class PodDisruptionBudgetStatus(Struct):
    """How many pods may be evicted now, and which evictions are under way."""

    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    disrupted_pods: dict[str, str | None] = {}


class PodDisruptionBudget(KubeObject):
    """A promise to keep enough pods of a kind running."""

    spec: SelectingSpec = msgspec.field(default_factory=SelectingSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)


class PriorityClass(KubeObject):
    """A name for a priority."""

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"


class Overhead(Struct):
    """What a runtime adds to every pod's requests."""

    pod_fixed: dict[str, Quantity] = {}


class RuntimeClassScheduling(Struct):
    """Where pods of a runtime class can run."""

    node_selector: Labels = {}


class RuntimeClass(KubeObject):
    """A name for a node's runtime handler."""

    handler: str = ""
    overhead: Overhead | None = None
    scheduling: RuntimeClassScheduling | None = None
