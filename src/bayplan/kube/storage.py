"""Persistent volumes, claims, storage classes, CSI drivers and volume attachments."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bayplan.kube.meta import Count, KubeObject, LabelSelector, ObjectReference, Quantity, Struct
from bayplan.kube.nodes import NodeSelector
from bayplan.kube.volumes import ClaimSpec, InTreeSources

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation of a claim: the node for which its volume is provisioned."""
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim: it is bound to its volume, and the volume to it."""
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Annotation of a claim or a volume: it was bound by a controller, not by a user."""


class VolumeNodeAffinity(Struct):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(InTreeSources):
    """The spec of a persistent volume."""

    capacity: dict[str, Quantity] = {}
    access_modes: list[str] = []
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    node_affinity: VolumeNodeAffinity | None = None
    volume_mode: str = "Filesystem"
    persistent_volume_reclaim_policy: str = "Retain"
    local: dict[str, Any] | None = None


class PhaseStatus(Struct):
    """A status of which only the phase is read."""

    phase: str = ""


class PersistentVolume(KubeObject):
    """A persistent volume."""

    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
    status: PhaseStatus = msgspec.field(default_factory=PhaseStatus)


class PersistentVolumeClaim(KubeObject):
    """A claim for a persistent volume."""

    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: PhaseStatus = msgspec.field(default_factory=PhaseStatus)


class TopologySelectorLabelRequirement(Struct):
    """A label and the values it may have."""

    key: str
    values: list[str] = []


class TopologySelectorTerm(Struct):
    """The topology in which volumes of a class can be provisioned."""

    match_label_expressions: list[TopologySelectorLabelRequirement] = []


class StorageClass(KubeObject):
    """A storage class."""

    provisioner: str = ""
    volume_binding_mode: Literal["Immediate", "WaitForFirstConsumer"] = "Immediate"
    allowed_topologies: list[TopologySelectorTerm] = []
    parameters: dict[str, str] = {}
    reclaim_policy: str = "Delete"


class VolumeNodeResources(Struct):
    """The attach limit of a driver: None is no limit, 0 allows no volume."""

    count: Count | None = None


class CSINodeDriver(Struct):
    """A driver that has registered on a node."""

    name: str
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: list[str] = []
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Struct):
    """The drivers of a node."""

    drivers: list[CSINodeDriver] = []


class CSINode(KubeObject):
    """The CSI drivers of a node; it has the name of the node."""

    spec: CSINodeSpec = msgspec.field(default_factory=CSINodeSpec)


class CSIDriverSpec(Struct):
    """The spec of a CSI driver."""

    attach_required: bool = True
    storage_capacity: bool = False
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubeObject):
    """A CSI driver of the cluster."""

    spec: CSIDriverSpec = msgspec.field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(KubeObject):
    """The capacity that a driver can provision in one part of the topology."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(Struct):
    """The volume to attach."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Struct):
    """The request to attach a volume to a node."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = msgspec.field(default_factory=VolumeAttachmentSource)


class VolumeError(Struct):
    """The last error of a volume."""

    message: str = ""
    time: str | None = None


class VolumeAttachmentStatus(Struct):
    """Whether the volume is attached, and the last errors."""

    attached: bool = False
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(KubeObject):
    """The attachment of a volume to a node."""

    spec: VolumeAttachmentSpec = msgspec.field(default_factory=VolumeAttachmentSpec)
    status: VolumeAttachmentStatus = msgspec.field(default_factory=VolumeAttachmentStatus)
