"""Pods, as far as scheduling reads them."""

from __future__ import annotations

from typing import Literal

import msgspec

from bayplan.kube.meta import (
    Condition,
    Int32,
    Int64,
    KubeObject,
    Labels,
    LabelSelector,
    Port,
    Positive,
    Quantity,
    Struct,
    Weight,
)
from bayplan.kube.nodes import NodeSelector, PreferredSchedulingTerm, TaintEffect
from bayplan.kube.volumes import Volume

ResourceMap = dict[str, Quantity]
POD_SCHEDULED = "PodScheduled"
"""The type of the condition that reports whether a pod is scheduled."""


class ResourceRequirements(Struct):
    """Requests and limits of a container or of a whole pod."""

    requests: ResourceMap = {}
    limits: ResourceMap = {}


class ContainerPort(Struct):
    """A port of a container, and the host port it uses."""

    container_port: Port = 0
    host_port: Port = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: Literal["TCP", "UDP", "SCTP", ""] = "TCP"


class ContainerRestartRule(Struct):
    """The action for a container that exits in some way."""

    action: str = ""


class Container(Struct):
    """One container; an init container with `restart_policy: Always` is a sidecar."""

    name: str = ""
    image: str = ""
    image_pull_policy: str = ""
    ports: list[ContainerPort] = []
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    restart_policy: str | None = None
    restart_rules: list[ContainerRestartRule] = msgspec.field(
        default_factory=list, name="restartPolicyRules"
    )


class Toleration(Struct):
    """A toleration of taints."""

    key: str = ""
    operator: Literal["Exists", "Equal", "Lt", "Gt", ""] = "Equal"
    value: str = ""
    effect: TaintEffect | Literal[""] = ""
    toleration_seconds: Int64 | None = None


class NodeAffinity(Struct):
    """Required and preferred nodes of a pod."""

    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[PreferredSchedulingTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Struct):
    """Other pods, by label and namespace, and the topology in which to join or avoid them."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(Struct):
    """A term that adds to, or subtracts from, a node's score."""

    weight: Weight
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Struct):
    """Terms of pod affinity, or of pod anti-affinity."""

    required: list[PodAffinityTerm] = msgspec.field(
        default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Struct):
    """All of a pod's affinities."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Struct):
    """How evenly pods must be spread over a topology."""

    max_skew: Positive
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    min_domains: Positive | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"


class PodSchedulingGate(Struct):
    """A gate that keeps a pod from being scheduled until it is removed."""

    name: str


class LocalObjectReference(Struct):
    """A reference to an object in the same namespace."""

    name: str = ""


class PodResourceClaim(Struct):
    """A resource claim of a pod: an existing one, or one created from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Struct):
    """The spec of a pod."""

    containers: list[Container] = []
    init_containers: list[Container] = []
    volumes: list[Volume] = []
    node_name: str = ""
    node_selector: Labels = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    overhead: ResourceMap = {}
    resources: ResourceRequirements | None = None
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"
    scheduler_name: str = "default-scheduler"
    scheduling_gates: list[PodSchedulingGate] = []
    runtime_class_name: str | None = None
    host_network: bool = False
    host_users: bool | None = None
    restart_policy: str = "Always"
    termination_grace_period_seconds: Int64 | None = None
    service_account_name: str = ""
    image_pull_secrets: list[LocalObjectReference] = []
    resource_claims: list[PodResourceClaim] = []


class ContainerStatus(Struct):
    """The resources of a container during an in-place resize."""

    name: str = ""
    allocated_resources: ResourceMap = {}
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(Struct):
    """The claim that was created from a template for a pod; None if none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(Struct):
    """The status of a pod."""

    phase: str = "Pending"
    conditions: list[Condition] = []
    nominated_node_name: str = ""
    start_time: str | None = None
    reason: str = ""
    message: str = ""
    resize: str = ""
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    allocated_resources: ResourceMap = {}
    resources: ResourceRequirements | None = None
    resource_claim_statuses: list[PodResourceClaimStatus] = []


class Pod(KubeObject):
    """A pod."""

    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended, so that it uses no resources."""
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def is_terminating(self) -> bool:
        """Whether it is being deleted."""
        return self.metadata.deletion_timestamp is not None
