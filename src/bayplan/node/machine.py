"""A node as the plugins see it: whose machine it is, of which type, and which CSI drivers it has.

The cloud is the scheme of the node's provider ID, which its cloud's controller has set.
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
class Machine:
    """What there is to know of a node."""

    cloud: str = ""
    """As provider IDs begin: aws, gce, azure, openstack; empty if the node does not say."""
    instance_type: str = ""
    labels: Labels = field(default_factory=dict)
    drivers: Mapping[str, int | None] = field(default_factory=dict)
    """The CSI drivers that have registered, with the limits that they have said themselves."""


def machine_of(node: Node, csinode: CSINode | None) -> Machine:
    """The machine behind a node."""
    labels = node.metadata.labels
    scheme, mark, _ = node.spec.provider_id.partition("://")
    return Machine(
        cloud=scheme if mark else "",
        instance_type=instance_type(labels),
        labels=labels,
        drivers=_drivers(csinode),
    )


def _drivers(csinode: CSINode | None) -> dict[str, int | None]:
    if csinode is None:
        return {}
    ours = written_counts(csinode)
    return {name: None if name in ours else count for name, count in said_counts(csinode).items()}


def said_counts(csinode: CSINode) -> dict[str, int | None]:
    """What a CSINode says, by driver."""
    return {
        one.name: one.allocatable.count if one.allocatable is not None else None
        for one in csinode.spec.drivers
    }


def written_counts(csinode: CSINode) -> dict[str, int]:
    """The counts of a CSINode that are our own, and that nobody has changed since."""
    said = said_counts(csinode)
    noted = published_counts(csinode.metadata.annotations)
    return {name: count for name, count in noted.items() if said.get(name) == count}
