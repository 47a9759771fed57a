"""What several check groups ask of storage: which drivers are used, and which attach anything."""

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


def drivers_in_use(subject: CheckedCluster) -> frozenset[str]:
    """The drivers that somebody has to do with: by a volume, an attachment, or a class."""
    return frozenset(_in_use(subject))


def _in_use(subject: CheckedCluster) -> Iterator[str]:
    for volume in subject.all(PersistentVolume):
        if volume.spec.csi is not None:
            yield volume.spec.csi.driver
    yield from (one.spec.attacher for one in subject.all(VolumeAttachment))
    yield from (driver_of_class(one) for one in subject.all(StorageClass))


def driver_of_class(one: StorageClass) -> str:
    """The CSI driver that makes a class's volumes; of an in-tree plugin, the one that took over."""
    plugin = BY_PLUGIN_NAME.get(one.provisioner)
    return one.provisioner if plugin is None else plugin.driver


def attachable_drivers(subject: CheckedCluster) -> frozenset[str]:
    """The drivers whose volumes are attached, as far as is known: those that do not say they are
    not, and of which a CSIDriver or an attachment speaks.
    """
    said = {one.name: one.spec.attach_required for one in subject.all(CSIDriver)}
    attached = {one.spec.attacher for one in subject.all(VolumeAttachment)}
    registered = {one.name for node in subject.all(CSINode) for one in node.spec.drivers}
    known = {name for name, required in said.items() if required}
    if not subject.sees(CSIDriver):
        known |= registered
    return frozenset(known | attached)


def registered_on(subject: CheckedCluster) -> dict[str, set[str]]:
    """By driver, the nodes on which it has registered."""
    found: dict[str, set[str]] = {}
    for csinode in subject.all(CSINode):
        if csinode.name in subject.nodes:
            for driver in csinode.spec.drivers:
                found.setdefault(driver.name, set()).add(csinode.name)
    return found
