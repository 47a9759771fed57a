"""Fluent builders of Kubernetes objects, so that a test shows what matters and nothing else.

    pod = make_pod("p").cpu("1").claim("data").labels(app="web").obj()
    node = make_node("n").capacity(cpu="4", memory="8Gi", pods=110).zone("z1").obj()

Each call changes the builder and returns it; `obj()` hands out the object. Nothing is checked: a
test may build what the API server would refuse.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Generic, Literal, Self, TypeVar

from bayplan.kube.meta import (
    Condition,
    KubeObject,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    ObjectReference,
    OwnerReference,
    Quantity,
)
from bayplan.kube.nodes import (
    ContainerImage,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    Taint,
    TaintEffect,
)
from bayplan.kube.pods import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSchedulingGate,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from bayplan.kube.storage import (
    CSIDriver,
    CSINode,
    CSINodeDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeNodeAffinity,
    VolumeNodeResources,
)
from bayplan.kube.volumes import (
    AwsElasticBlockStore,
    AzureDisk,
    ClaimSpec,
    ClaimTemplate,
    ClaimVolumeSource,
    CsiVolumeSource,
    EphemeralVolumeSource,
    GcePersistentDisk,
    Volume,
)
from bayplan.kube.workloads import (
    Namespace,
    Overhead,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    RuntimeClass,
    RuntimeClassScheduling,
    Service,
    StatefulSet,
)

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
DEFAULT = "default"

NodeOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
LabelOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
T = TypeVar("T", bound=KubeObject)

_uids = itertools.count(1)


def selector(labels: Mapping[str, str] | None = None, **more: str) -> LabelSelector:
    """A label selector of plain labels: `selector(app="web")`."""
    return LabelSelector(match_labels={**(labels or {}), **more})


def expression(key: str, operator: LabelOperator, *values: str) -> LabelSelector:
    """A label selector of one expression: `expression("app", "In", "web", "db")`."""
    requirement = LabelSelectorRequirement(key=key, operator=operator, values=list(values))
    return LabelSelector(match_expressions=[requirement])


def node_term(key: str, operator: NodeOperator, *values: str) -> NodeSelectorTerm:
    """A node selector term of one expression."""
    requirement = NodeSelectorRequirement(key=key, operator=operator, values=list(values))
    return NodeSelectorTerm(match_expressions=[requirement])


def name_term(*names: str) -> NodeSelectorTerm:
    """A node selector term on the node's name."""
    requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=list(names))
    return NodeSelectorTerm(match_fields=[requirement])


class Builder(Generic[T]):
    """What all builders can do: identity, labels, owners."""

    def __init__(self, built: T, name: str, namespace: str = "") -> None:
        uid = f"uid-{next(_uids)}"
        built.metadata = ObjectMeta(name=name, namespace=namespace, uid=uid)
        built.kind = type(built).__name__
        self._built = built

    def obj(self) -> T:
        """The object."""
        return self._built

    def namespace(self, name: str) -> Self:
        """Put it into a namespace."""
        self._built.metadata.namespace = name
        return self

    def uid(self, uid: str) -> Self:
        """Give it this uid."""
        self._built.metadata.uid = uid
        return self

    def labels(self, labels: Mapping[str, str] | None = None, **more: str) -> Self:
        """Add labels."""
        self._built.metadata.labels = {**self._built.metadata.labels, **(labels or {}), **more}
        return self

    def label(self, key: str, value: str) -> Self:
        """Add one label, of any key."""
        return self.labels({key: value})

    def annotation(self, key: str, value: str) -> Self:
        """Add one annotation."""
        self._built.metadata.annotations = {**self._built.metadata.annotations, key: value}
        return self

    def owner(self, kind: str, name: str, uid: str = "owner", *, controller: bool = True) -> Self:
        """Name an owner."""
        owner = OwnerReference(kind=kind, name=name, uid=uid, controller=controller)
        self._built.metadata.owner_references = [*self._built.metadata.owner_references, owner]
        return self

    def created(self, timestamp: str) -> Self:
        """Say when it was created."""
        self._built.metadata.creation_timestamp = timestamp
        return self

    def terminating(self, timestamp: str = "2024-01-01T00:00:00Z") -> Self:
        """Mark it as being deleted."""
        self._built.metadata.deletion_timestamp = timestamp
        return self


class PodBuilder(Builder[Pod]):
    """A pod with one container, unless more are added."""

    def __init__(self, name: str, namespace: str = DEFAULT) -> None:
        super().__init__(Pod(), name, namespace)
        self._built.spec.containers = [Container(name="c0")]

    def request(self, resource: str, quantity: Quantity) -> Self:
        """Ask for a resource, in the last container."""
        resources = self._built.spec.containers[-1].resources
        resources.requests = {**resources.requests, resource: quantity}
        return self

    def limit(self, resource: str, quantity: Quantity) -> Self:
        """Limit a resource, in the last container."""
        resources = self._built.spec.containers[-1].resources
        resources.limits = {**resources.limits, resource: quantity}
        return self

    def cpu(self, quantity: Quantity) -> Self:
        """Ask for cpu."""
        return self.request("cpu", quantity)

    def memory(self, quantity: Quantity) -> Self:
        """Ask for memory."""
        return self.request("memory", quantity)

    def image(self, image: str) -> Self:
        """Run this image in the last container."""
        self._built.spec.containers[-1].image = image
        return self

    def container(self, **requests: Quantity) -> Self:
        """Add a container with these requests."""
        self._built.spec.containers.append(
            _container(f"c{len(self._built.spec.containers)}", requests)
        )
        return self

    def init(self, **requests: Quantity) -> Self:
        """Add an init container with these requests."""
        self._built.spec.init_containers = [
            *self._built.spec.init_containers,
            _container(f"i{len(self._built.spec.init_containers)}", requests),
        ]
        return self

    def sidecar(self, **requests: Quantity) -> Self:
        """Add an init container that keeps running."""
        self.init(**requests)
        self._built.spec.init_containers[-1].restart_policy = "Always"
        return self

    def overhead(self, **amounts: Quantity) -> Self:
        """Add overhead of the runtime."""
        self._built.spec.overhead = dict(amounts)
        return self

    def pod_level(self, **requests: Quantity) -> Self:
        """Ask for resources for the pod as a whole."""
        self._built.spec.resources = ResourceRequirements(requests=dict(requests))
        return self

    def host_port(self, port: int, protocol: Literal["TCP", "UDP", "SCTP"] = "TCP",
                  host_ip: str = "") -> Self:  # fmt: skip
        """Take a port of the host."""
        taken = ContainerPort(
            container_port=port, host_port=port, protocol=protocol, host_ip=host_ip
        )
        container = self._built.spec.containers[-1]
        container.ports = [*container.ports, taken]
        return self

    def node(self, name: str) -> Self:
        """Run it on a node."""
        self._built.spec.node_name = name
        self._built.status.phase = "Running"
        return self

    def nominated(self, node: str) -> Self:
        """Nominate it for a node, as preemption does."""
        self._built.status.nominated_node_name = node
        return self

    def phase(self, phase: str) -> Self:
        """Say where it stands."""
        self._built.status.phase = phase
        return self

    def started(self, timestamp: str) -> Self:
        """Say when it started."""
        self._built.status.start_time = timestamp
        return self

    def condition(self, kind: str, status: str = "True", reason: str = "") -> Self:
        """Add a condition."""
        added = Condition(type=kind, status=status, reason=reason)
        self._built.status.conditions = [*self._built.status.conditions, added]
        return self

    def priority(self, value: int, class_name: str = "") -> Self:
        """Give it a priority."""
        self._built.spec.priority = value
        self._built.spec.priority_class_name = class_name
        return self

    def never_preempts(self) -> Self:
        """Keep it from preempting others."""
        self._built.spec.preemption_policy = "Never"
        return self

    def gate(self, name: str) -> Self:
        """Add a scheduling gate."""
        gates = self._built.spec.scheduling_gates
        self._built.spec.scheduling_gates = [*gates, PodSchedulingGate(name=name)]
        return self

    def runtime_class(self, name: str) -> Self:
        """Run it with a runtime class."""
        self._built.spec.runtime_class_name = name
        return self

    def scheduler(self, name: str) -> Self:
        """Leave it to a scheduler."""
        self._built.spec.scheduler_name = name
        return self

    def volume(self, volume: Volume) -> Self:
        """Add any volume."""
        self._built.spec.volumes = [*self._built.spec.volumes, volume]
        return self

    def claim(self, name: str, *, read_only: bool = False) -> Self:
        """Use a claim."""
        source = ClaimVolumeSource(claim_name=name, read_only=read_only)
        return self.volume(Volume(name=self._volume_name(), persistent_volume_claim=source))

    def ephemeral(self, volume: str, storage_class: str | None, size: Quantity = "1Gi") -> Self:
        """Use a generic ephemeral volume."""
        spec = ClaimSpec(storage_class_name=storage_class, access_modes=["ReadWriteOnce"])
        spec.resources.requests = {"storage": size}
        source = EphemeralVolumeSource(volume_claim_template=ClaimTemplate(spec=spec))
        return self.volume(Volume(name=volume, ephemeral=source))

    def csi_inline(self, driver: str) -> Self:
        """Use an inline volume of a CSI driver."""
        return self.volume(Volume(name=self._volume_name(), csi=CsiVolumeSource(driver=driver)))

    def ebs(self, volume_id: str, *, read_only: bool = False) -> Self:
        """Use an in-tree EBS volume."""
        source = AwsElasticBlockStore(volume_id=volume_id, read_only=read_only)
        return self.volume(Volume(name=self._volume_name(), aws_elastic_block_store=source))

    def gce_pd(self, disk: str, *, read_only: bool = False) -> Self:
        """Use an in-tree GCE disk."""
        source = GcePersistentDisk(pd_name=disk, read_only=read_only)
        return self.volume(Volume(name=self._volume_name(), gce_persistent_disk=source))

    def azure_disk(self, disk: str) -> Self:
        """Use an in-tree Azure disk."""
        source = AzureDisk(disk_name=disk, disk_uri=disk)
        return self.volume(Volume(name=self._volume_name(), azure_disk=source))

    def node_selector(self, labels: Mapping[str, str] | None = None, **more: str) -> Self:
        """Need a node with these labels."""
        wanted = {**self._built.spec.node_selector, **(labels or {}), **more}
        self._built.spec.node_selector = wanted
        return self

    def node_affinity(self, *terms: NodeSelectorTerm) -> Self:
        """Need a node that one of these terms matches."""
        self._node_affinity().required = NodeSelector(node_selector_terms=list(terms))
        return self

    def prefers_node(self, weight: int, term: NodeSelectorTerm) -> Self:
        """Like a node that this term matches."""
        liked = PreferredSchedulingTerm(weight=weight, preference=term)
        self._node_affinity().preferred.append(liked)
        return self

    def toleration(
        self,
        key: str = "",
        value: str = "",
        effect: TaintEffect | Literal[""] = "",
        operator: Literal["Exists", "Equal", "Lt", "Gt", ""] | None = None,
    ) -> Self:
        """Tolerate a taint; without a value any value of the key."""
        chosen = operator if operator is not None else ("Equal" if value else "Exists")
        added = Toleration(key=key, value=value, effect=effect, operator=chosen)
        self._built.spec.tolerations = [*self._built.spec.tolerations, added]
        return self

    def spread(
        self,
        topology_key: str,
        max_skew: int = 1,
        when: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule",
        label_selector: LabelSelector | None = None,
        **constraint: object,
    ) -> Self:
        """Spread over a topology; the selector is the pod's own labels unless given."""
        chosen = label_selector or selector(self._built.metadata.labels)
        added = TopologySpreadConstraint(
            max_skew=max_skew,
            topology_key=topology_key,
            when_unsatisfiable=when,
            label_selector=chosen,
        )
        for field, value in constraint.items():
            setattr(added, field, value)
        constraints = self._built.spec.topology_spread_constraints
        self._built.spec.topology_spread_constraints = [*constraints, added]
        return self

    def affinity(self, topology_key: str, label_selector: LabelSelector | None = None) -> Self:
        """Need to meet pods in a topology; those with its own labels unless given."""
        self._pod_affinity().required.append(self._term(topology_key, label_selector))
        return self

    def anti_affinity(self, topology_key: str, label_selector: LabelSelector | None = None) -> Self:
        """Need to avoid pods in a topology; those with its own labels unless given."""
        self._pod_anti_affinity().required.append(self._term(topology_key, label_selector))
        return self

    def prefers_affinity(
        self, weight: int, topology_key: str, label_selector: LabelSelector | None = None
    ) -> Self:
        """Like to meet pods in a topology."""
        term = self._term(topology_key, label_selector)
        liked = WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term)
        self._pod_affinity().preferred.append(liked)
        return self

    def prefers_anti_affinity(
        self, weight: int, topology_key: str, label_selector: LabelSelector | None = None
    ) -> Self:
        """Like to avoid pods in a topology."""
        term = self._term(topology_key, label_selector)
        liked = WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term)
        self._pod_anti_affinity().preferred.append(liked)
        return self

    def affinity_term(self, term: PodAffinityTerm, *, anti: bool = False) -> Self:
        """Add any required term."""
        side = self._pod_anti_affinity() if anti else self._pod_affinity()
        side.required.append(term)
        return self

    def _term(self, topology_key: str, label_selector: LabelSelector | None) -> PodAffinityTerm:
        chosen = label_selector or selector(self._built.metadata.labels)
        return PodAffinityTerm(topology_key=topology_key, label_selector=chosen)

    def _volume_name(self) -> str:
        return f"v{len(self._built.spec.volumes)}"

    def _affinity(self) -> Affinity:
        self._built.spec.affinity = self._built.spec.affinity or Affinity()
        return self._built.spec.affinity

    def _node_affinity(self) -> NodeAffinity:
        affinity = self._affinity()
        affinity.node_affinity = affinity.node_affinity or NodeAffinity()
        return affinity.node_affinity

    def _pod_affinity(self) -> PodAffinity:
        affinity = self._affinity()
        affinity.pod_affinity = affinity.pod_affinity or PodAffinity()
        return affinity.pod_affinity

    def _pod_anti_affinity(self) -> PodAffinity:
        affinity = self._affinity()
        affinity.pod_anti_affinity = affinity.pod_anti_affinity or PodAffinity()
        return affinity.pod_anti_affinity


class NodeBuilder(Builder[Node]):
    """A node with its hostname label, four cpus, 8 GiB and room for 110 pods unless said."""

    def __init__(self, name: str) -> None:
        super().__init__(Node(), name)
        self.label(HOSTNAME, name).capacity(cpu="4", memory="8Gi", pods=110)

    def capacity(self, amounts: Mapping[str, Quantity] | None = None, **more: Quantity) -> Self:
        """Set amounts, in capacity and allocatable; underscores in names stand for hyphens."""
        said = {**(amounts or {}), **{name.replace("_", "-"): q for name, q in more.items()}}
        self._built.status.capacity = {**self._built.status.capacity, **said}
        self._built.status.allocatable = {**self._built.status.allocatable, **said}
        return self

    def zone(self, name: str, region: str = "") -> Self:
        """Put it into a zone."""
        self.label(ZONE, name)
        return self.label(REGION, region) if region else self

    def taint(self, key: str, value: str = "", effect: TaintEffect = "NoSchedule") -> Self:
        """Taint it."""
        taints = self._built.spec.taints
        self._built.spec.taints = [*taints, Taint(key=key, value=value, effect=effect)]
        return self

    def unschedulable(self) -> Self:
        """Cordon it."""
        self._built.spec.unschedulable = True
        return self

    def image(self, *names: str, size: int) -> Self:
        """Say that it has an image."""
        held = ContainerImage(names=list(names), size_bytes=size)
        self._built.status.images = [*self._built.status.images, held]
        return self

    def ready(self, status: str = "True") -> Self:
        """Say whether it is ready."""
        self._built.status.conditions = [Condition(type="Ready", status=status)]
        return self

    def provider_id(self, provider_id: str) -> Self:
        """Say what the cloud calls it."""
        self._built.spec.provider_id = provider_id
        return self


class PVBuilder(Builder[PersistentVolume]):
    """A volume."""

    def __init__(self, name: str) -> None:
        super().__init__(PersistentVolume(), name)
        self.size("1Gi").access("ReadWriteOnce")
        self._built.status.phase = "Available"

    def csi(self, driver: str, handle: str = "") -> Self:
        """Let a CSI driver stand behind it."""
        handle = handle or self._built.metadata.name
        self._built.spec.csi = CsiVolumeSource(driver=driver, volume_handle=handle)
        return self

    def ebs(self, volume_id: str) -> Self:
        """Let in-tree EBS stand behind it."""
        self._built.spec.aws_elastic_block_store = AwsElasticBlockStore(volume_id=volume_id)
        return self

    def gce_pd(self, disk: str) -> Self:
        """Let an in-tree GCE disk stand behind it."""
        self._built.spec.gce_persistent_disk = GcePersistentDisk(pd_name=disk)
        return self

    def size(self, quantity: Quantity) -> Self:
        """Give it a size."""
        self._built.spec.capacity = {"storage": quantity}
        return self

    def access(self, *modes: str) -> Self:
        """Set its access modes."""
        self._built.spec.access_modes = list(modes)
        return self

    def storage_class(self, name: str) -> Self:
        """Set its class."""
        self._built.spec.storage_class_name = name
        return self

    def bound_to(self, claim: str, namespace: str = DEFAULT, uid: str = "") -> Self:
        """Bind it to a claim."""
        reference = ObjectReference(
            kind="PersistentVolumeClaim", namespace=namespace, name=claim, uid=uid
        )
        self._built.spec.claim_ref = reference
        self._built.status.phase = "Bound"
        return self

    def node_affinity(self, *terms: NodeSelectorTerm) -> Self:
        """Say which nodes reach it."""
        required = NodeSelector(node_selector_terms=list(terms))
        self._built.spec.node_affinity = VolumeNodeAffinity(required=required)
        return self

    def zone(self, name: str) -> Self:
        """Put it into a zone, by node affinity."""
        return self.node_affinity(node_term(ZONE, "In", name))


class PVCBuilder(Builder[PersistentVolumeClaim]):
    """A claim."""

    def __init__(self, name: str, namespace: str = DEFAULT) -> None:
        super().__init__(PersistentVolumeClaim(), name, namespace)
        self.size("1Gi").access("ReadWriteOnce")
        self._built.status.phase = "Pending"

    def size(self, quantity: Quantity) -> Self:
        """Ask for a size."""
        self._built.spec.resources.requests = {"storage": quantity}
        return self

    def access(self, *modes: str) -> Self:
        """Ask for access modes."""
        self._built.spec.access_modes = list(modes)
        return self

    def storage_class(self, name: str | None) -> Self:
        """Ask for a class."""
        self._built.spec.storage_class_name = name
        return self

    def volume(self, name: str) -> Self:
        """Bind it to a volume."""
        self._built.spec.volume_name = name
        self._built.metadata.annotations = {
            **self._built.metadata.annotations,
            "pv.kubernetes.io/bind-completed": "yes",
        }
        self._built.status.phase = "Bound"
        return self


class StorageClassBuilder(Builder[StorageClass]):
    """A class of storage, bound at once unless said."""

    def __init__(self, name: str, provisioner: str) -> None:
        super().__init__(StorageClass(provisioner=provisioner), name)

    def waits(self) -> Self:
        """Bind only when a pod wants it."""
        self._built.volume_binding_mode = "WaitForFirstConsumer"
        return self

    def topology(self, key: str, *values: str) -> Self:
        """Provision only here."""
        wanted = TopologySelectorLabelRequirement(key=key, values=list(values))
        term = TopologySelectorTerm(match_label_expressions=[wanted])
        self._built.allowed_topologies = [*self._built.allowed_topologies, term]
        return self

    def is_default(self) -> Self:
        """Make it the cluster's default class."""
        return self.annotation("storageclass.kubernetes.io/is-default-class", "true")


class CSINodeBuilder(Builder[CSINode]):
    """What the CSI drivers say of a node."""

    def __init__(self, node: str) -> None:
        super().__init__(CSINode(), node)

    def driver(self, name: str, limit: int | None = None, *topology_keys: str) -> Self:
        """Register a driver, with its limit of volumes."""
        allocatable = None if limit is None else VolumeNodeResources(count=limit)
        added = CSINodeDriver(
            name=name,
            node_id=self._built.metadata.name,
            topology_keys=list(topology_keys),
            allocatable=allocatable,
        )
        self._built.spec.drivers = [*self._built.spec.drivers, added]
        return self

    def migrated(self, *plugins: str) -> Self:
        """Say which in-tree plugins have migrated to CSI on this node."""
        key = "storage.alpha.kubernetes.io/migrated-plugins"
        return self.annotation(key, ",".join(plugins))


class CSIDriverBuilder(Builder[CSIDriver]):
    """A CSI driver of the cluster."""

    def __init__(self, name: str) -> None:
        super().__init__(CSIDriver(), name)

    def no_attach(self) -> Self:
        """Say that its volumes need no attaching."""
        self._built.spec.attach_required = False
        return self

    def storage_capacity(self) -> Self:
        """Say that it publishes its capacity."""
        self._built.spec.storage_capacity = True
        return self

    def prevent_if_missing(self, prevent: bool | None = True) -> Self:
        """Say whether nodes without it take no pod that needs it."""
        self._built.spec.prevent_pod_scheduling_if_missing = prevent
        return self


class AttachmentBuilder(Builder[VolumeAttachment]):
    """A volume attached, or to be attached, to a node."""

    def __init__(self, name: str, driver: str, node: str, volume: str) -> None:
        super().__init__(VolumeAttachment(), name)
        spec = self._built.spec
        spec.attacher, spec.node_name = driver, node
        spec.source.persistent_volume_name = volume

    def attached(self) -> Self:
        """Say that it is attached."""
        self._built.status.attached = True
        return self


class CapacityBuilder(Builder[CSIStorageCapacity]):
    """How much a driver could provision somewhere."""

    def __init__(self, name: str, storage_class: str, namespace: str = DEFAULT) -> None:
        super().__init__(CSIStorageCapacity(storage_class_name=storage_class), name, namespace)

    def capacity(self, quantity: Quantity, maximum: Quantity | None = None) -> Self:
        """Say how much, and how much at once."""
        self._built.capacity, self._built.maximum_volume_size = quantity, maximum
        return self

    def topology(self, label_selector: LabelSelector) -> Self:
        """Say where."""
        self._built.node_topology = label_selector
        return self


class PDBBuilder(Builder[PodDisruptionBudget]):
    """A promise to keep pods running."""

    def __init__(self, name: str, label_selector: LabelSelector | None, namespace: str) -> None:
        super().__init__(PodDisruptionBudget(), name, namespace)
        self._built.spec.selector = label_selector

    def allows(self, disruptions: int) -> Self:
        """Say how many pods may be evicted now."""
        self._built.status.disruptions_allowed = disruptions
        return self


class RuntimeClassBuilder(Builder[RuntimeClass]):
    """A runtime class."""

    def __init__(self, name: str, handler: str) -> None:
        super().__init__(RuntimeClass(handler=handler), name)

    def overhead(self, **amounts: Quantity) -> Self:
        """Say what it adds to each pod."""
        self._built.overhead = Overhead(pod_fixed=dict(amounts))
        return self

    def node_selector(self, **labels: str) -> Self:
        """Say where its pods can run."""
        self._built.scheduling = RuntimeClassScheduling(node_selector=dict(labels))
        return self


def make_pod(name: str = "pod", namespace: str = DEFAULT) -> PodBuilder:
    """Start a pod."""
    return PodBuilder(name, namespace)


def make_node(name: str = "node") -> NodeBuilder:
    """Start a node."""
    return NodeBuilder(name)


def make_pv(name: str) -> PVBuilder:
    """Start a volume."""
    return PVBuilder(name)


def make_pvc(name: str, namespace: str = DEFAULT) -> PVCBuilder:
    """Start a claim."""
    return PVCBuilder(name, namespace)


def make_storage_class(name: str, provisioner: str) -> StorageClassBuilder:
    """Start a class of storage."""
    return StorageClassBuilder(name, provisioner)


def make_csinode(node: str) -> CSINodeBuilder:
    """Start what the CSI drivers say of a node."""
    return CSINodeBuilder(node)


def make_csidriver(name: str) -> CSIDriverBuilder:
    """Start a CSI driver."""
    return CSIDriverBuilder(name)


def make_attachment(name: str, driver: str, node: str, volume: str) -> AttachmentBuilder:
    """Start an attachment."""
    return AttachmentBuilder(name, driver, node, volume)


def make_capacity(name: str, storage_class: str) -> CapacityBuilder:
    """Start a driver's capacity."""
    return CapacityBuilder(name, storage_class)


def make_pdb(
    name: str, label_selector: LabelSelector | None, namespace: str = DEFAULT
) -> PDBBuilder:
    """Start a disruption budget."""
    return PDBBuilder(name, label_selector, namespace)


def make_runtime_class(name: str, handler: str = "") -> RuntimeClassBuilder:
    """Start a runtime class."""
    return RuntimeClassBuilder(name, handler or name)


def make_namespace(name: str) -> Builder[Namespace]:
    """Start a namespace."""
    return Builder(Namespace(), name)


def make_priority_class(name: str, value: int) -> Builder[PriorityClass]:
    """Start a priority class."""
    return Builder(PriorityClass(value=value), name)


def make_service(name: str, namespace: str = DEFAULT, **match: str) -> Builder[Service]:
    """Start a service for pods with these labels."""
    built = Service()
    built.spec.selector = dict(match)
    return Builder(built, name, namespace)


def make_replication_controller(
    name: str, namespace: str = DEFAULT, **match: str
) -> Builder[ReplicationController]:
    """Start a replication controller for pods with these labels."""
    built = ReplicationController()
    built.spec.selector = dict(match)
    return Builder(built, name, namespace)


def make_replica_set(name: str, namespace: str = DEFAULT, **match: str) -> Builder[ReplicaSet]:
    """Start a replica set for pods with these labels."""
    built = ReplicaSet()
    built.spec.selector = selector(match)
    return Builder(built, name, namespace)


def make_stateful_set(name: str, namespace: str = DEFAULT, **match: str) -> Builder[StatefulSet]:
    """Start a stateful set for pods with these labels."""
    built = StatefulSet()
    built.spec.selector = selector(match)
    return Builder(built, name, namespace)


def _container(name: str, requests: Mapping[str, Quantity]) -> Container:
    said = {key.replace("_", "-"): quantity for key, quantity in requests.items()}
    return Container(name=name, resources=ResourceRequirements(requests=said))
