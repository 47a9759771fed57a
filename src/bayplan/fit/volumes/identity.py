"""Which volume a pod means, as far as counting goes.

Two pods that mean the same volume on the same node need it attached once. A volume is known by its
driver and handle; a claim without a volume yet stands for one that its class's provisioner will
make. What an in-tree plugin serves counts for its CSI driver where the node has a CSINode, and for
the plugin itself where it has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bayplan.fit.volumes.migration import BY_PLUGIN_NAME, Plugin, in_tree_volume
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.kube.volumes import Volume


class VolumeId(NamedTuple):
    """A volume that takes one of a driver's places on a node."""

    driver: str
    handle: str


@dataclass(frozen=True, slots=True)
class VolumeIdentity:
    """A volume, by its driver and (if an in-tree plugin serves it) by that plugin."""

    driver: str
    handle: str
    plugin: Plugin | None = None
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
    """The volume that will be made for a claim; None if nobody says by whom."""
    if storage_class is None or not storage_class.provisioner:
        return None
    handle = f"claim:{claim.key}"
    plugin = BY_PLUGIN_NAME.get(storage_class.provisioner)
    if plugin is not None:
        return VolumeIdentity(plugin.driver, handle, plugin, is_certainly_csi=True)
    return VolumeIdentity(storage_class.provisioner, handle)
