"""Cluster API's objects: their names, kinds, provider IDs, and machines as instances.

The names are those that Cluster API and Cluster Autoscaler agreed on, under a group that can be
chosen. Kinds are read as far as they are needed: v1beta1's fields, and v1beta2's where they moved,
by whichever version the server prefers.

Clouds write the ID of one machine in several ways, and what comes after the last slash is the same
in all of them; but for Azure's scale sets, where it only counts. A machine that has no ID yet is
called by a name that its namespace and name can be read from.

A machine that failed before it was a node is an instance that cannot be had. One that failed later
still has its node, and is left to whatever looks after nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from bayplan.kube.meta import Count, KubeObject, Labels, LabelSelector, Struct
from bayplan.nodegroups import ErrorClass, Instance, InstanceError, InstanceState

GROUP = "cluster.x-k8s.io"
CAPACITY = "capacity.cluster-autoscaler.kubernetes.io/"
OLD_DELETE_MARK = "cluster.k8s.io/delete-machine"
"""What controllers before v1alpha3 look for."""
REVISION = "machinedeployment.clusters.x-k8s.io/revision"
"""Annotation of a MachineSet: which revision of its MachineDeployment it is."""
GPU_LABEL = "cluster-api/accelerator"

MANAGED = ("node-role.kubernetes.io",)
"""What a label of a machine begins with that Cluster API hands on to its node, and nothing more."""
MANAGED_DOMAINS = ("node-restriction.kubernetes.io", "node.cluster.x-k8s.io")
"""The same for domains, and all below them."""


@dataclass(frozen=True, slots=True)
class ApiNames:
    """Annotations and labels of one API group."""

    group: str = GROUP

    @property
    def min_size(self) -> str:
        """Annotation of a group: its least size."""
        return f"{self.group}/cluster-api-autoscaler-node-group-min-size"

    @property
    def max_size(self) -> str:
        """Annotation of a group: its greatest size."""
        return f"{self.group}/cluster-api-autoscaler-node-group-max-size"

    @property
    def options(self) -> str:
        """What annotations of a group begin with that say how it wants to be scaled."""
        return f"{self.group}/autoscaling-options-"

    @property
    def delete_mark(self) -> str:
        """Annotation of a machine that is to go first."""
        return f"{self.group}/delete-machine"

    @property
    def paused(self) -> str:
        """Annotation of whatever is not to be touched."""
        return f"{self.group}/paused"

    @property
    def machine(self) -> str:
        """Annotation of a node: the name of its machine."""
        return f"{self.group}/machine"

    @property
    def namespace(self) -> str:
        """Annotation of a node: the namespace of its machine."""
        return f"{self.group}/cluster-namespace"

    @property
    def cluster_name(self) -> str:
        """Label of whatever belongs to a cluster."""
        return f"{self.group}/cluster-name"


def is_managed(label: str) -> bool:
    """Whether Cluster API hands a machine's label on to its node."""
    domain = label.partition("/")[0]
    below = any(domain.endswith(f".{one}") for one in MANAGED_DOMAINS)
    return below or domain in {*MANAGED, *MANAGED_DOMAINS}


PENDING, FAILED, DELETING = "pending-machine-", "failed-machine-", "deleting-machine-"
_MADE_UP = (PENDING, FAILED, DELETING)


def normalized(provider_id: str) -> str:
    """What two IDs of one machine have in common."""
    if provider_id.startswith("azure://") and "virtualMachineScaleSets" in provider_id:
        return provider_id
    return provider_id.rpartition("/")[2]


def made_up(prefix: str, namespace: str, name: str) -> str:
    """The ID of a machine that has none; no namespace has an underscore in it."""
    return f"{prefix}{namespace}_{name}"


def machine_key(provider_id: str) -> str:
    """The machine that a made-up ID stands for, as `namespace/name`; empty if it is a real one."""
    for prefix in _MADE_UP:
        if provider_id.startswith(prefix):
            return provider_id.removeprefix(prefix).replace("_", "/", 1)
    return ""


class InfrastructureRef(Struct):
    """The template of a machine's infrastructure; v1beta2 names its group only."""

    api_version: str = ""
    api_group: str = ""
    kind: str = ""
    name: str = ""


class TemplateMeta(Struct):
    """What machines get of their template."""

    labels: Labels = {}


class TemplateTaint(Struct):
    """A taint of the nodes to come, as somebody wrote it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class MachineTemplateSpec(Struct):
    """What machines are made from."""

    infrastructure_ref: InfrastructureRef | None = None
    taints: list[TemplateTaint] = []


class MachineTemplate(Struct):
    """What machines look like."""

    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: MachineTemplateSpec = msgspec.field(default_factory=MachineTemplateSpec)


class ScalableSpec(Struct):
    """How many machines are wanted, and of what kind."""

    cluster_name: str = ""
    replicas: Count | None = None
    selector: LabelSelector | None = None
    template: MachineTemplate = msgspec.field(default_factory=MachineTemplate)
    provider_id_list: list[str] = msgspec.field(default_factory=list, name="providerIDList")
    paused: bool = False


class ScalableStatus(Struct):
    """How many machines there are."""

    replicas: int = 0


class Scalable(KubeObject):
    """What can be a node group."""

    spec: ScalableSpec = msgspec.field(default_factory=ScalableSpec)
    status: ScalableStatus = msgspec.field(default_factory=ScalableStatus)


class MachineDeployment(Scalable):
    """Machines that are replaced in an orderly way, by MachineSets."""


class MachineSet(Scalable):
    """Equal machines."""


class MachinePool(Scalable):
    """Equal machines that the infrastructure itself keeps."""


class MachineSpec(Struct):
    """A machine as it is wanted."""

    cluster_name: str = ""
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeReference(Struct):
    """The node that a machine became."""

    name: str = ""


class Failure(Struct):
    """Why a machine will never be one, in the words of v1beta1."""

    failure_reason: str = ""
    failure_message: str = ""


class Deprecated(Struct):
    """Where v1beta2 keeps what it does not use any more."""

    v1beta1: Failure = msgspec.field(default_factory=Failure)


class MachineStatus(Struct):
    """How far a machine is."""

    phase: str = ""
    node_ref: NodeReference | None = None
    failure_reason: str = ""
    failure_message: str = ""
    deprecated: Deprecated = msgspec.field(default_factory=Deprecated)

    @property
    def failure(self) -> Failure | None:
        """What went wrong for good; None if nothing did."""
        old = self.deprecated.v1beta1
        reason = self.failure_reason or old.failure_reason
        message = self.failure_message or old.failure_message
        if not reason and not message and self.phase != "Failed":
            return None
        return Failure(failure_reason=reason, failure_message=message)


class Machine(KubeObject):
    """One machine."""

    spec: MachineSpec = msgspec.field(default_factory=MachineSpec)
    status: MachineStatus = msgspec.field(default_factory=MachineStatus)


NO_CAPACITY = "InsufficientResources"
"""Cluster API's reason for a cloud that has none left."""


def is_deleting(machine: Machine) -> bool:
    """Whether a machine is on its way out."""
    return machine.metadata.deletion_timestamp is not None


def has_failed(machine: Machine) -> bool:
    """Whether a machine will never be a node."""
    return machine.status.failure is not None and machine.status.node_ref is None


def is_node(machine: Machine) -> bool:
    """Whether a machine has become a node and is to stay one."""
    return machine.status.node_ref is not None and not is_deleting(machine)


def instance_of(machine: Machine, provider_id: str) -> Instance:
    """The instance that a machine is; `provider_id` may be empty."""
    failure = machine.status.failure
    if is_deleting(machine):
        error = _error("DeletingFailed", failure) if failure is not None else None
        return Instance(provider_id or _id(DELETING, machine), InstanceState.DELETING, error)
    if failure is not None and machine.status.node_ref is None:
        error = _error("ProvisioningFailed", failure)
        return Instance(provider_id or _id(FAILED, machine), InstanceState.CREATING, error)
    if machine.status.node_ref is None:
        return Instance(provider_id or _id(PENDING, machine), InstanceState.CREATING)
    return Instance(provider_id or _id(PENDING, machine), InstanceState.RUNNING)


def _error(code: str, failure: Failure) -> InstanceError:
    kind = ErrorClass.OTHER
    if failure.failure_reason == NO_CAPACITY:
        kind = ErrorClass.OUT_OF_RESOURCES
    said = failure.failure_message or failure.failure_reason or "the machine failed"
    return InstanceError(kind, failure.failure_reason or code, said)


def _id(prefix: str, machine: Machine) -> str:
    return made_up(prefix, machine.namespace, machine.name)
