"""Volumes of pods, and the volume sources of clouds and CSI drivers."""

from __future__ import annotations

import msgspec

from bayplan.kube.meta import Int32, LabelSelector, ObjectMeta, Quantity, Struct


class AwsElasticBlockStore(Struct):
    """An in-tree EBS volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False
    partition: Int32 = 0


class GcePersistentDisk(Struct):
    """An in-tree GCE disk."""

    pd_name: str = ""
    read_only: bool = False
    partition: Int32 = 0


class AzureDisk(Struct):
    """An in-tree Azure disk."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    read_only: bool = False


class Cinder(Struct):
    """An in-tree OpenStack volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class PortworxVolume(Struct):
    """An in-tree Portworx volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class AzureFile(Struct):
    """An in-tree Azure file share."""

    share_name: str = ""
    secret_name: str = ""
    secret_namespace: str | None = None
    read_only: bool = False


class VsphereVolume(Struct):
    """An in-tree vSphere volume."""

    volume_path: str = ""


class Iscsi(Struct):
    """An iSCSI disk, which two pods may share only read-only."""

    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    read_only: bool = False


class Rbd(Struct):
    """A Ceph RBD image, which two pods may share only read-only."""

    monitors: list[str] = []
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class CsiVolumeSource(Struct):
    """A volume of a CSI driver: with a handle in a PersistentVolume, without one inline."""

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False


class ClaimVolumeSource(Struct):
    """A volume by the name of its claim."""

    claim_name: str
    read_only: bool = False


class VolumeResources(Struct):
    """The size that a claim requests."""

    requests: dict[str, Quantity] = {}


class ClaimSpec(Struct):
    """The spec of a claim, and the volume it is bound to."""

    access_modes: list[str] = []
    resources: VolumeResources = msgspec.field(default_factory=VolumeResources)
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = "Filesystem"
    selector: LabelSelector | None = None


class ClaimTemplate(Struct):
    """The template of the claim of a generic ephemeral volume."""

    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class EphemeralVolumeSource(Struct):
    """A volume with the lifetime of its pod, through its own claim."""

    volume_claim_template: ClaimTemplate = msgspec.field(default_factory=ClaimTemplate)


class EmptyDir(Struct):
    """A directory with the lifetime of its pod, on the node's disk or in memory."""

    medium: str = ""


class HostPath(Struct):
    """A directory or file of the node."""

    path: str = ""


class InTreeSources(Struct):
    """The volume sources that pods and persistent volumes share."""

    aws_elastic_block_store: AwsElasticBlockStore | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    portworx_volume: PortworxVolume | None = None
    vsphere_volume: VsphereVolume | None = None
    iscsi: Iscsi | None = None
    rbd: Rbd | None = None
    csi: CsiVolumeSource | None = None


class Volume(InTreeSources):
    """One volume of a pod."""

    name: str = ""
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    empty_dir: EmptyDir | None = None
    host_path: HostPath | None = None
