"""Workloads, services, budgets and classes, as far as scheduling reads them."""

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
    """The pods of the controller, and how many it should have."""

    replicas: Int32 | None = None


class ReplicationController(KubeObject):
    """The predecessor of ReplicaSet; its selector is a plain map."""

    spec: ReplicationControllerSpec = msgspec.field(default_factory=ReplicationControllerSpec)


class SelectorSpec(Struct):
    """The pods of a workload."""

    selector: LabelSelector | None = None


class ReplicatedSpec(SelectorSpec):
    """The pods of a workload, and how many it should have."""

    replicas: Int32 | None = None


class ReplicaSet(KubeObject):
    """A set of interchangeable pods."""

    spec: ReplicatedSpec = msgspec.field(default_factory=ReplicatedSpec)


class StatefulSet(KubeObject):
    """A set of named pods with claims of their own."""

    spec: ReplicatedSpec = msgspec.field(default_factory=ReplicatedSpec)


class Job(KubeObject):
    """Pods that run to completion; only its existence is read."""


class PodTemplate(Struct):
    """The template of a workload's pods."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class DaemonSetSpec(SelectorSpec):
    """The pods of a DaemonSet, and their template."""

    template: PodTemplate = msgspec.field(default_factory=PodTemplate)


class DaemonSet(KubeObject):
    """One pod for every node that its template matches; see `kube.daemonsets`."""

    spec: DaemonSetSpec = msgspec.field(default_factory=DaemonSetSpec)


class PodDisruptionBudgetStatus(Struct):
    """How many pods may be evicted now, and which evictions are in progress."""

    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    disrupted_pods: dict[str, str | None] = {}


class PodDisruptionBudget(KubeObject):
    """A limit on how many pods may be disrupted at the same time."""

    spec: SelectorSpec = msgspec.field(default_factory=SelectorSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)


class PriorityClass(KubeObject):
    """A named priority."""

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"


class Overhead(Struct):
    """Resources that a runtime adds to every pod's requests."""

    pod_fixed: dict[str, Quantity] = {}


class RuntimeClassScheduling(Struct):
    """Where pods of a runtime class can run."""

    node_selector: Labels = {}


class RuntimeClass(KubeObject):
    """A named runtime handler of nodes."""

    handler: str = ""
    overhead: Overhead | None = None
    scheduling: RuntimeClassScheduling | None = None
