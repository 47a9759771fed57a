"""Which volume a pod means, as far as counting goes, and in-tree plugins with their CSI drivers.

Two pods that mean the same volume on the same node need it attached once. A volume is known by its
driver and handle; a claim without a volume yet stands for one that its class's provisioner will
make. What an in-tree plugin serves counts for its CSI driver where the node has a CSINode, and for
the plugin itself where it has none. Each plugin that Kubernetes migrated has a CSI name, a way to
write its volume's handle, and (some) a topology label of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from bayplan.kube.attachlimits import IN_TREE_NAMES
from bayplan.kube.labels import BETA_ZONE, ZONE
from bayplan.kube.meta import Labels
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.kube.volumes import InTreeSources, Volume

UNSPECIFIED = "UNSPECIFIED"
MULTI_ZONE_DELIMITER = "__"


class InTreeVolume(NamedTuple):
    """A volume of an in-tree plugin, as its CSI driver would know it."""

    plugin: InTreePlugin
    handle: str


@dataclass(frozen=True, slots=True)
class InTreePlugin:
    """An in-tree plugin that a CSI driver took over."""

    name: str
    driver: str
    handle_of: Callable[[InTreeSources, Labels], str | None]
    topology_key: str | None = None

    @property
    def limit_suffix(self) -> str | None:
        """How attach-limit keys in a node's allocatable end, if the plugin had one."""
        return IN_TREE_NAMES.get(self.driver)


def _ebs_handle(source: InTreeSources, _labels: Labels) -> str | None:
    disk = source.aws_elastic_block_store
    if disk is None:
        return None
    if not disk.volume_id.startswith("aws://"):
        return disk.volume_id
    _zone, _, path = disk.volume_id.removeprefix("aws://").partition("/")
    return path.partition("?")[0].partition("#")[0].strip("/")


def _gce_handle(source: InTreeSources, labels: Labels) -> str | None:
    disk = source.gce_persistent_disk
    if disk is None:
        return None
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE) or UNSPECIFIED).split(MULTI_ZONE_DELIMITER)
    if len(zones) > 1:
        region = zones[0].rsplit("-", 1)[0]
        return f"projects/{UNSPECIFIED}/regions/{region}/disks/{disk.pd_name}"
    return f"projects/{UNSPECIFIED}/zones/{zones[0]}/disks/{disk.pd_name}"


def _azure_handle(source: InTreeSources, _labels: Labels) -> str | None:
    return source.azure_disk.disk_uri if source.azure_disk else None


def _cinder_handle(source: InTreeSources, _labels: Labels) -> str | None:
    return source.cinder.volume_id if source.cinder else None


def _portworx_handle(source: InTreeSources, _labels: Labels) -> str | None:
    return source.portworx_volume.volume_id if source.portworx_volume else None


PLUGINS = (
    InTreePlugin(
        "kubernetes.io/aws-ebs",
        "ebs.csi.aws.com",
        _ebs_handle,
        "topology.ebs.csi.aws.com/zone",
    ),
    InTreePlugin(
        "kubernetes.io/gce-pd",
        "pd.csi.storage.gke.io",
        _gce_handle,
        "topology.gke.io/zone",
    ),
    InTreePlugin(
        "kubernetes.io/azure-disk",
        "disk.csi.azure.com",
        _azure_handle,
    ),
    InTreePlugin(
        "kubernetes.io/cinder",
        "cinder.csi.openstack.org",
        _cinder_handle,
        "topology.cinder.csi.openstack.org/zone",
    ),
    InTreePlugin("kubernetes.io/portworx-volume", "pxd.portworx.com", _portworx_handle),
)
BY_PLUGIN_NAME = {plugin.name: plugin for plugin in PLUGINS}
BY_DRIVER = {plugin.driver: plugin for plugin in PLUGINS}


def in_tree_volume(source: InTreeSources, labels: Labels) -> InTreeVolume | None:
    """The migrated plugin behind a source, if there is one; `labels` are the volume's own."""
    for plugin in PLUGINS:
        handle = plugin.handle_of(source, labels)
        if handle:
            return InTreeVolume(plugin, handle)
    return None


class VolumeId(NamedTuple):
    """A volume that takes one of a driver's attach slots on a node."""

    driver: str
    handle: str


@dataclass(frozen=True, slots=True)
class VolumeIdentity:
    """A volume, by its driver and (if an in-tree plugin serves it) by that plugin."""

    driver: str
    handle: str
    plugin: InTreePlugin | None = None
    is_certainly_csi: bool = False
    """Whether a CSI driver is known to serve it, and not just named by a class."""

    def on_node(self, *, has_csinode: bool) -> VolumeId:
        """What the volume counts as on a node."""
        if self.plugin is not None and not has_csinode:
            return VolumeId(self.plugin.name, self.handle)
        return VolumeId(self.driver, self.handle)


def of_inline_volume(volume: Volume) -> VolumeIdentity | None:
    """An in-tree volume that a pod names directly; CSI inline volumes are never attached."""
    found = in_tree_volume(volume, {})
    if found is None:
        return None
    return VolumeIdentity(found.plugin.driver, found.handle, found.plugin, is_certainly_csi=True)


def of_bound_volume(pv: PersistentVolume) -> VolumeIdentity | None:
    """A persistent volume; None if nothing has to be attached for it."""
    csi = pv.spec.csi
    if csi is not None:
        if not csi.driver or not csi.volume_handle:
            return None
        return VolumeIdentity(csi.driver, csi.volume_handle, is_certainly_csi=True)
    found = in_tree_volume(pv.spec, pv.metadata.labels)
    if found is None:
        return None
    return VolumeIdentity(found.plugin.driver, found.handle, found.plugin, is_certainly_csi=True)


def of_unbound_claim(
    claim: PersistentVolumeClaim, storage_class: StorageClass | None
) -> VolumeIdentity | None:
    """Return the volume that will be provisioned for a claim; None if the provisioner is
    unknown.
    """
    if storage_class is None or not storage_class.provisioner:
        return None
    handle = f"claim:{claim.key}"
    plugin = BY_PLUGIN_NAME.get(storage_class.provisioner)
    if plugin is not None:
        return VolumeIdentity(plugin.driver, handle, plugin, is_certainly_csi=True)
    return VolumeIdentity(storage_class.provisioner, handle)
