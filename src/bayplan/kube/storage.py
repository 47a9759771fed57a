"""Persistent volumes, their claims and classes, and what a node's CSI drivers can attach."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bayplan.kube.meta import Count, KubeObject, LabelSelector, ObjectReference, Quantity, Struct
from bayplan.kube.nodes import NodeSelector
from bayplan.kube.volumes import ClaimSpec, InTreeSources

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Of a claim: the node that its volume is to be provisioned for."""
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Of a claim: it and its volume name each other."""
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Of a claim or a volume: it was bound by a program, not by a person."""


class VolumeNodeAffinity(Struct):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(InTreeSources):
    """A piece of storage and the claim it belongs to."""

    capacity: dict[str, Quantity] = {}
    access_modes: list[str] = []
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    node_affinity: VolumeNodeAffinity | None = None
    volume_mode: str = "Filesystem"
    persistent_volume_reclaim_policy: str = "Retain"
    local: dict[str, Any] | None = None


class PhaseStatus(Struct):
    """A status of which only the phase matters here."""

    phase: str = ""


class PersistentVolume(KubeObject):
    """A piece of storage."""

    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
    status: PhaseStatus = msgspec.field(default_factory=PhaseStatus)


class PersistentVolumeClaim(KubeObject):
    """A pod's claim to storage."""

    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: PhaseStatus = msgspec.field(default_factory=PhaseStatus)


class TopologySelectorLabelRequirement(Struct):
    """A label and the values it may have."""

    key: str
    values: list[str] = []


class TopologySelectorTerm(Struct):
    """Where volumes of a class can be made."""

    match_label_expressions: list[TopologySelectorLabelRequirement] = []


class StorageClass(KubeObject):
    """A kind of storage."""

    provisioner: str = ""
    volume_binding_mode: Literal["Immediate", "WaitForFirstConsumer"] = "Immediate"
    allowed_topologies: list[TopologySelectorTerm] = []
    parameters: dict[str, str] = {}
    reclaim_policy: str = "Delete"


class VolumeNodeResources(Struct):
    """How many volumes a driver can attach: None is no limit, 0 is none at all."""

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
    """What CSI drivers say of a node; it has the node's name."""

    spec: CSINodeSpec = msgspec.field(default_factory=CSINodeSpec)


class CSIDriverSpec(Struct):
    """How Kubernetes is to treat a driver's volumes."""

    attach_required: bool = True
    storage_capacity: bool = False
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubeObject):
    """A CSI driver that the cluster has."""

    spec: CSIDriverSpec = msgspec.field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(KubeObject):
    """How much a driver could provision in one part of the topology."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(Struct):
    """The volume to attach."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Struct):
    """A wish to attach a volume to a node."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = msgspec.field(default_factory=VolumeAttachmentSource)


class VolumeError(Struct):
    """What went wrong with a volume the last time."""

    message: str = ""
    time: str | None = None


class VolumeAttachmentStatus(Struct):
    """Whether it is attached, and what kept it from being attached or detached."""

    attached: bool = False
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(KubeObject):
    """A volume on its way to, or at, a node."""

    spec: VolumeAttachmentSpec = msgspec.field(default_factory=VolumeAttachmentSpec)
    status: VolumeAttachmentStatus = msgspec.field(default_factory=VolumeAttachmentStatus)
