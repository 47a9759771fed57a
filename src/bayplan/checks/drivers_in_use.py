"""Which CSI drivers are in use, attach volumes, and are registered on which nodes."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.checks.cluster import CheckedCluster
from bayplan.fit.volumes.identity import BY_PLUGIN_NAME
from bayplan.kube.storage import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    StorageClass,
    VolumeAttachment,
)


def drivers_in_use(cluster: CheckedCluster) -> frozenset[str]:
    """Return the drivers that a volume, an attachment or a StorageClass uses."""
    return frozenset(_in_use(cluster))


def _in_use(cluster: CheckedCluster) -> Iterator[str]:
    for volume in cluster.all(PersistentVolume):
        if volume.spec.csi is not None:
            yield volume.spec.csi.driver
    yield from (one.spec.attacher for one in cluster.all(VolumeAttachment))
    yield from (driver_of_class(one) for one in cluster.all(StorageClass))


def driver_of_class(one: StorageClass) -> str:
    """Return the CSI driver of a class; of an in-tree plugin, the driver it migrated to."""
    plugin = BY_PLUGIN_NAME.get(one.provisioner)
    return one.provisioner if plugin is None else plugin.driver


def attachable_drivers(cluster: CheckedCluster) -> frozenset[str]:
    """Return the drivers whose volumes are attached, as far as is known.

    These have a CSIDriver with attachRequired, or an attachment. If no CSIDrivers were read, all
    registered drivers count.
    """
    required_by_name = {one.name: one.spec.attach_required for one in cluster.all(CSIDriver)}
    attached = {one.spec.attacher for one in cluster.all(VolumeAttachment)}
    registered = {one.name for node in cluster.all(CSINode) for one in node.spec.drivers}
    known = {name for name, required in required_by_name.items() if required}
    if not cluster.has_read(CSIDriver):
        known |= registered
    return frozenset(known | attached)


def registered_on(cluster: CheckedCluster) -> dict[str, set[str]]:
    """Return the nodes on which each driver is registered."""
    found: dict[str, set[str]] = {}
    for csinode in cluster.all(CSINode):
        if csinode.name in cluster.nodes:
            for driver in csinode.spec.drivers:
                found.setdefault(driver.name, set()).add(csinode.name)
    return found
