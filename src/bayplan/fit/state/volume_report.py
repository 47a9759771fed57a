"""Attachments in use on a node: the limit and its source, and which pods and attachments hold them.

An attach slot is used by a distinct volume: by pods on the node (even several of one
volume), or VolumeAttachments of volumes that no pod there uses (any more, or yet). The counts are
those that NodeVolumeLimits decides by.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.volumes.identity import PLUGINS, VolumeId
from bayplan.fit.volumes.limits import Limit, limit_keys, limit_of, row_of
from bayplan.kube.nodes import Node
from bayplan.kube.resources import csi_attach_limit_driver
from bayplan.kube.storage import CSINode


@dataclass(frozen=True, slots=True)
class VolumeUse:
    """One volume that takes an attach slot, and what holds it there."""

    handle: str
    pods: tuple[str, ...] = ()
    attachments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VolumeReport:
    """One driver (or in-tree plugin) on one node."""

    node: str
    driver: str
    limit: Limit
    uses: tuple[VolumeUse, ...] = ()
    row: str = ""
    """Which row of which table the limit comes from, if it comes from one."""

    @property
    def used(self) -> int:
        """How many attach slots are in use."""
        return len(self.uses)

    @property
    def free(self) -> int | None:
        """How many attach slots are left, never below zero; None is any number."""
        return None if self.limit.count is None else max(self.limit.count - self.used, 0)

    @property
    def over(self) -> int:
        """How many volumes there are beyond the limit, as where it was lowered."""
        return 0 if self.limit.count is None else max(self.used - self.limit.count, 0)

    @property
    def is_full(self) -> bool:
        """Whether not one more volume can be attached."""
        return self.free == 0


def volumes_on(cluster: ClusterState, node: str, driver: str) -> VolumeReport:
    """Return the attachments of a driver on a node."""
    return _report(cluster, _node(cluster, node), driver, _holders(cluster, node))


def all_volumes(cluster: ClusterState) -> list[VolumeReport]:
    """Every node with every driver that it reports, publishes a limit for, or has volumes of; a
    node with none of these shows the drivers of the others as missing.
    """
    return [
        report
        for name in sorted(cluster.slots.by_name)
        for report in node_volumes(cluster, name) or _missing(cluster, _node(cluster, name))
    ]


def node_volumes(cluster: ClusterState, name: str) -> list[VolumeReport]:
    """Return every driver that a node reports, publishes a limit for, or has volumes of."""
    node, holders = _node(cluster, name), _holders(cluster, name)
    drivers = set(_known_drivers(cluster, node)) | {volume.driver for volume in holders}
    return [_report(cluster, node, driver, holders) for driver in sorted(drivers)]


def _missing(cluster: ClusterState, node: Node) -> list[VolumeReport]:
    elsewhere = [driver for driver, count in cluster.csi.registered.items() if count]
    return [_report(cluster, node, driver, {}) for driver in sorted(elsewhere)]


@dataclass(slots=True)
class _Holders:
    pods: list[str] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)


def _report(
    cluster: ClusterState, node: Node, driver: str, holders: dict[VolumeId, _Holders]
) -> VolumeReport:
    uses = tuple(
        VolumeUse(volume.handle, tuple(sorted(who.pods)), tuple(sorted(who.attachments)))
        for volume, who in sorted(holders.items())
        if volume.driver == driver
    )
    limit = limit_of(driver, node, cluster.csinodes.get(node.name), cluster.rules)
    return VolumeReport(node.name, driver, limit, uses, row_of(driver, node, limit))


def _holders(cluster: ClusterState, node: str) -> dict[VolumeId, _Holders]:
    """By volume, the pods and attachments that hold it on a node."""
    found: dict[VolumeId, _Holders] = defaultdict(_Holders)
    has_csinode = node in cluster.csinodes
    for key, record in cluster.pods.by_node.get(node, {}).items():
        for volume in record.volumes:
            found[volume.on_node(has_csinode=has_csinode)].pods.append(key)
    for attachment in cluster.attachments_on(node):
        attached = cluster.attached_volume(attachment)
        if attached is not None:
            found[attached].attachments.append(attachment.name)
    return dict(found)


def _known_drivers(cluster: ClusterState, node: Node) -> list[str]:
    csinode = cluster.csinodes.get(node.name)
    registered = [driver.name for driver in csinode.spec.drivers] if csinode else []
    return registered + _published(cluster, node, csinode)


def _published(cluster: ClusterState, node: Node, csinode: CSINode | None) -> list[str]:
    """The plugins (or, with a CSINode, their drivers) and the CSI drivers whose limit the node's
    allocatable has, readable or not.
    """
    if not cluster.rules.published_limits:
        return []
    published = node.status.allocatable
    names = [plugin.driver if csinode else plugin.name for plugin in PLUGINS]
    known = [name for name in names if any(key in published for key in limit_keys(name))]
    return [*known, *filter(None, map(csi_attach_limit_driver, published))]


def _node(cluster: ClusterState, name: str) -> Node:
    slot = cluster.slots.by_name.get(name)
    if slot is None:
        raise LookupError(f"node {name!r} is not in the snapshot")
    return cluster.node_at(slot)
