"""The instance of a node, for the plugins: its cloud, instance type and CSI drivers.

The cloud is the scheme of the node's provider ID, which the cloud controller manager sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bayplan.kube.attachlimits import published_counts
from bayplan.kube.labels import instance_type
from bayplan.kube.meta import Labels
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSINode


@dataclass(frozen=True, slots=True)
class NodeInstance:
    """The cloud, type, labels and CSI drivers of a node."""

    cloud: str = ""
    """The scheme of the provider ID: aws, gce, azure, openstack; empty if unknown."""
    instance_type: str = ""
    labels: Labels = field(default_factory=dict)
    drivers: Mapping[str, int | None] = field(default_factory=dict)
    """The registered CSI drivers, with their own limits."""


def instance_of(node: Node, csinode: CSINode | None) -> NodeInstance:
    """Return the instance of a node."""
    labels = node.metadata.labels
    scheme, mark, _ = node.spec.provider_id.partition("://")
    return NodeInstance(
        cloud=scheme if mark else "",
        instance_type=instance_type(labels),
        labels=labels,
        drivers=_drivers(csinode),
    )


def _drivers(csinode: CSINode | None) -> dict[str, int | None]:
    if csinode is None:
        return {}
    ours = own_counts(csinode)
    return {name: None if name in ours else count for name, count in driver_counts(csinode).items()}


def driver_counts(csinode: CSINode) -> dict[str, int | None]:
    """Return the limits in a CSINode, by driver."""
    return {
        one.name: one.allocatable.count if one.allocatable is not None else None
        for one in csinode.spec.drivers
    }


def own_counts(csinode: CSINode) -> dict[str, int]:
    """Return the limits in a CSINode that we wrote and that have not changed since."""
    present = driver_counts(csinode)
    published = published_counts(csinode.metadata.annotations)
    return {name: count for name, count in published.items() if present.get(name) == count}
