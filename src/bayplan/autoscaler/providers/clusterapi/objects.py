"""Cluster API's objects: their names, kinds, provider IDs, and machines as instances.

The names are those of Cluster API and Cluster Autoscaler, under a configurable API group. Kinds
have the fields that are needed: those of v1beta1, and of v1beta2 where they differ, by the version
that the server prefers.

Clouds write the provider ID of a machine in several ways, which agree after the last slash; except
for Azure's scale sets, where that is only an index. A machine without a provider ID has a
placeholder with its namespace and name.

A machine that is marked for deletion, and whose group has fewer replicas than machines, is deleted
by Cluster API as soon as its controller runs: it is a deleting instance. If the replicas are not
lower, the mark has no effect yet.

A machine that failed before it had a node is a failed instance. One that failed later still has its
node, and is handled as a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from bayplan.kube.meta import Count, KubeObject, Labels, LabelSelector, Struct
from bayplan.nodegroups import ErrorClass, Instance, InstanceError, InstanceState

GROUP = "cluster.x-k8s.io"
CAPACITY = "capacity.cluster-autoscaler.kubernetes.io/"
OLD_DELETE_MARK = "cluster.k8s.io/delete-machine"
"""The annotation for controllers before v1alpha3."""
DELETION_SIZE = "bayplan.io/deletion-replicas"
"""Annotation of a machine that Bayplan has marked for deletion: the replicas to be written."""
REVISION = "machinedeployment.clusters.x-k8s.io/revision"
"""Annotation of a MachineSet: its revision of the MachineDeployment."""
GPU_LABEL = "cluster-api/accelerator"

MANAGED = ("node-role.kubernetes.io",)
"""Domains of machine labels that Cluster API copies to the node."""
MANAGED_DOMAINS = ("node-restriction.kubernetes.io", "node.cluster.x-k8s.io")
"""The same, including their subdomains."""


@dataclass(frozen=True, slots=True)
class ApiNames:
    """Annotations and labels of one API group."""

    group: str = GROUP

    @property
    def min_size(self) -> str:
        """Annotation of a group: its minimum size."""
        return f"{self.group}/cluster-api-autoscaler-node-group-min-size"

    @property
    def max_size(self) -> str:
        """Annotation of a group: its maximum size."""
        return f"{self.group}/cluster-api-autoscaler-node-group-max-size"

    @property
    def options(self) -> str:
        """Prefix of a group's annotations with autoscaling options."""
        return f"{self.group}/autoscaling-options-"

    @property
    def delete_mark(self) -> str:
        """Annotation of a machine that is deleted first when its set is scaled down."""
        return f"{self.group}/delete-machine"

    @property
    def paused(self) -> str:
        """Annotation of a paused object."""
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
        """Label of objects: their cluster."""
        return f"{self.group}/cluster-name"


def is_managed(label: str) -> bool:
    """Whether Cluster API copies a machine's label to its node."""
    domain = label.partition("/")[0]
    below = any(domain.endswith(f".{one}") for one in MANAGED_DOMAINS)
    return below or domain in {*MANAGED, *MANAGED_DOMAINS}


PENDING, FAILED, DELETING = "pending-machine-", "failed-machine-", "deleting-machine-"
_PLACEHOLDERS = (PENDING, FAILED, DELETING)


def normalized(provider_id: str) -> str:
    """Return the part of a provider ID that is the same in all spellings."""
    if provider_id.startswith("azure://") and "virtualMachineScaleSets" in provider_id:
        return provider_id
    return provider_id.rpartition("/")[2]


def placeholder_id(prefix: str, namespace: str, name: str) -> str:
    """Return the placeholder of a machine without a provider ID; namespaces have no underscore."""
    return f"{prefix}{namespace}_{name}"


def machine_key(provider_id: str) -> str:
    """Return the `namespace/name` in a placeholder; empty for a real provider ID."""
    for prefix in _PLACEHOLDERS:
        if provider_id.startswith(prefix):
            return provider_id.removeprefix(prefix).replace("_", "/", 1)
    return ""


class InfrastructureRef(Struct):
    """Reference to a machine's infrastructure template; v1beta2 has the API group only."""

    api_version: str = ""
    api_group: str = ""
    kind: str = ""
    name: str = ""


class TemplateMeta(Struct):
    """Metadata of a machine template."""

    labels: Labels = {}


class TemplateTaint(Struct):
    """A taint of new nodes, not validated."""

    key: str = ""
    value: str = ""
    effect: str = ""


class MachineTemplateSpec(Struct):
    """Spec of a machine template."""

    infrastructure_ref: InfrastructureRef | None = None
    taints: list[TemplateTaint] = []
    failure_domain: str = ""


class MachineTemplate(Struct):
    """The template of machines."""

    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: MachineTemplateSpec = msgspec.field(default_factory=MachineTemplateSpec)


class ScalableSpec(Struct):
    """Replicas and template of machines."""

    cluster_name: str = ""
    replicas: Count | None = None
    selector: LabelSelector | None = None
    template: MachineTemplate = msgspec.field(default_factory=MachineTemplate)
    provider_id_list: list[str] = msgspec.field(default_factory=list, name="providerIDList")
    failure_domains: list[str] = []
    """Of a MachinePool; others have one in their template."""
    paused: bool = False


class ScalableStatus(Struct):
    """The current number of machines."""

    replicas: int = 0


class Scalable(KubeObject):
    """An object that can be a node group."""

    spec: ScalableSpec = msgspec.field(default_factory=ScalableSpec)
    status: ScalableStatus = msgspec.field(default_factory=ScalableStatus)


class MachineDeployment(Scalable):
    """A MachineDeployment, which manages MachineSets."""


class MachineSet(Scalable):
    """A MachineSet."""


class MachinePool(Scalable):
    """A MachinePool, whose machines the infrastructure manages."""


class MachineSpec(Struct):
    """Spec of a machine."""

    cluster_name: str = ""
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeReference(Struct):
    """Reference to a machine's node."""

    name: str = ""


class MachineFailure(Struct):
    """The terminal failure of a machine, as in v1beta1."""

    failure_reason: str = ""
    failure_message: str = ""


class DeprecatedStatus(Struct):
    """Deprecated status fields in v1beta2."""

    v1beta1: MachineFailure = msgspec.field(default_factory=MachineFailure)


class MachineStatus(Struct):
    """Status of a machine."""

    phase: str = ""
    node_ref: NodeReference | None = None
    failure_reason: str = ""
    failure_message: str = ""
    deprecated: DeprecatedStatus = msgspec.field(default_factory=DeprecatedStatus)

    @property
    def failure(self) -> MachineFailure | None:
        """The terminal failure; None if there is none."""
        old = self.deprecated.v1beta1
        reason = self.failure_reason or old.failure_reason
        message = self.failure_message or old.failure_message
        if not reason and not message and self.phase != "Failed":
            return None
        return MachineFailure(failure_reason=reason, failure_message=message)


class Machine(KubeObject):
    """A Machine of Cluster API."""

    spec: MachineSpec = msgspec.field(default_factory=MachineSpec)
    status: MachineStatus = msgspec.field(default_factory=MachineStatus)


NO_CAPACITY = "InsufficientResources"
"""Cluster API's reason for a cloud without capacity."""


def is_deleting(machine: Machine) -> bool:
    """Whether a machine is being deleted."""
    return machine.metadata.deletion_timestamp is not None


def is_marked(machine: Machine, names: ApiNames) -> bool:
    """Whether a machine is marked to be deleted first, by Bayplan or another client."""
    return not machine.metadata.annotations.keys().isdisjoint((names.delete_mark, OLD_DELETE_MARK))


def is_marked_by_us(machine: Machine) -> bool:
    """Whether Bayplan has marked a machine for deletion."""
    return DELETION_SIZE in machine.metadata.annotations


def machines_to_go(machines: Sequence[Machine], replicas: int, names: ApiNames) -> set[str]:
    """Return the keys of marked machines that Cluster API deletes to reach the replicas.

    Of more marked machines than have to go, those marked for the higher replicas go first: later
    marks are those whose replicas may not be written.
    """
    live = [one for one in machines if not is_deleting(one)]
    marked = sorted((one for one in live if is_marked(one, names)), key=_by_mark)
    return {one.key for one in marked[: max(0, len(live) - replicas)]}


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """What is left to do for a deletion of machines."""

    machines: tuple[Machine, ...]
    """Those to mark, and to subtract from the replicas."""
    stale: tuple[Machine, ...] = ()
    """Others that Bayplan has marked without writing the replicas."""


def plan_deletion(
    wanted: Sequence[Machine], members: Sequence[Machine], replicas: int, names: ApiNames
) -> DeletionPlan:
    """Plan the deletion of some members of a group with these replicas."""
    going = machines_to_go(members, replicas, names)
    left = [one for one in wanted if not is_deleting(one) and one.key not in going]
    kept = going | {one.key for one in wanted}
    ours = (one for one in members if is_marked_by_us(one) and not is_deleting(one))
    return DeletionPlan(tuple(left), tuple(one for one in ours if one.key not in kept))


def _by_mark(machine: Machine) -> tuple[int, str]:
    text = machine.metadata.annotations.get(DELETION_SIZE, "")
    size = int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else -1
    return -size, machine.key


def has_failed(machine: Machine) -> bool:
    """Whether a machine failed before it had a node."""
    return machine.status.failure is not None and machine.status.node_ref is None


def is_node(machine: Machine) -> bool:
    """Whether a machine has a node and is not being deleted."""
    return machine.status.node_ref is not None and not is_deleting(machine)


def instance_of(machine: Machine, provider_id: str, *, is_going: bool = False) -> Instance:
    """Return the instance of a machine; `provider_id` may be empty."""
    failure = machine.status.failure
    if is_deleting(machine) or is_going:
        failure = failure if is_deleting(machine) else None
        error = _error("DeletingFailed", failure) if failure is not None else None
        return Instance(provider_id or _id(DELETING, machine), InstanceState.DELETING, error)
    if failure is not None and machine.status.node_ref is None:
        error = _error("ProvisioningFailed", failure)
        return Instance(provider_id or _id(FAILED, machine), InstanceState.CREATING, error)
    if machine.status.node_ref is None:
        return Instance(provider_id or _id(PENDING, machine), InstanceState.CREATING)
    return Instance(provider_id or _id(PENDING, machine), InstanceState.RUNNING)


def _error(code: str, failure: MachineFailure) -> InstanceError:
    kind = ErrorClass.OTHER
    if failure.failure_reason == NO_CAPACITY:
        kind = ErrorClass.OUT_OF_RESOURCES
    message = failure.failure_message or failure.failure_reason or "the machine failed"
    return InstanceError(kind, failure.failure_reason or code, message)


def _id(prefix: str, machine: Machine) -> str:
    return placeholder_id(prefix, machine.namespace, machine.name)
