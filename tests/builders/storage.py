"""Builders of volumes, claims and what CSI drivers say."""

from __future__ import annotations

from typing import Self

from bayplan.kube.meta import LabelSelector, ObjectReference, Quantity
from bayplan.kube.nodes import NodeSelector, NodeSelectorTerm
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
from bayplan.kube.volumes import AwsElasticBlockStore, CsiVolumeSource, GcePersistentDisk
from tests.builders.base import DEFAULT, ZONE, Builder
from tests.builders.selectors import node_term


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

    def available(self) -> Self:
        """Leave it to whoever claims it."""
        self._built.status.phase = "Available"
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
