"""Nodes as the page draws them, and their rails: places to attach volumes, by driver."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.volume_report import VolumeReport
from bayplan.fit.volumes.identity import BY_PLUGIN_NAME, VolumeIdentity
from bayplan.fit.volumes.limits import LimitSource
from bayplan.kube import quantity
from bayplan.kube.labels import BETA_ZONE, ZONE, instance_type
from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.resources import CPU, MEMORY, PODS
from bayplan.ui import texts
from bayplan.ui.tables import Row

MOST_TAINTS = 20
MOST_DRIVERS = 20
LARGEST = 1 << 53
"""A number that every reader of JSON has exactly."""


def zone_of(node: Node) -> str:
    """The zone that a node is in; empty if it does not say."""
    labels = node.metadata.labels
    return texts.name(labels.get(ZONE) or labels.get(BETA_ZONE, ""))


def node_row(node: Node, group: str, note: str, missing: Collection[str]) -> Row:
    """A node that is there."""
    allocatable = node.status.allocatable
    return [
        texts.identity(node.name),
        group,
        zone_of(node),
        ready_of(node),
        node.spec.unschedulable,
        [taint_text(one) for one in node.spec.taints[:MOST_TAINTS]],
        amount(allocatable.get(CPU), milli=True),
        amount(allocatable.get(MEMORY)),
        amount(allocatable.get(PODS)),
        False,
        texts.name(instance_type(node.metadata.labels)),
        texts.line(note),
        [texts.name(one) for one in sorted(missing)[:MOST_DRIVERS]],
    ]


def ready_of(node: Node) -> str:
    """What a node says of being ready; that it says nothing is a yes, as for a node in a dump that
    was written by hand.
    """
    said = next((one.status for one in node.status.conditions if one.type == "Ready"), "True")
    return said if said in {"True", "False"} else "Unknown"


def taint_text(taint: Taint) -> str:
    """A taint as kubectl writes it."""
    value = f"={taint.value}" if taint.value else ""
    return texts.name(f"{taint.key}{value}:{taint.effect}")


def amount(written: Quantity | None, *, milli: bool = False) -> int:
    """A quantity as a number; what is not there is nothing."""
    if written is None:
        return 0
    return min(quantity.milli_value(written) if milli else quantity.value(written), LARGEST)


def rail_row(report: VolumeReport) -> Row:
    """One driver's places on a node."""
    limit = report.limit
    return [
        texts.identity(f"{report.node} {report.driver}"),
        texts.identity(report.node),
        texts.name(report.driver),
        report.used,
        limit.count,
        texts.name(f"{limit.source.value} {limit.detail}".strip()),
        report.over > 0,
    ]


def volumes_on(cluster: Cluster, node: str) -> Iterator[VolumeIdentity]:
    """The volumes that the pods on a node use."""
    for record in cluster.pods.by_node.get(node, {}).values():
        yield from record.volumes


def missing_drivers(cluster: Cluster, node: str, needed: Iterable[VolumeIdentity]) -> set[str]:
    """The CSI drivers of those volumes that a node does not have."""
    csinode = cluster.csinodes.get(node)
    there = {one.name for one in csinode.spec.drivers} if csinode is not None else set()
    found: set[str] = set()
    for volume in needed:
        driver = volume.on_node(has_csinode=csinode is not None).driver
        if driver not in there and driver not in found and _is_csi(cluster, volume, driver):
            found.add(driver)
    return found


def _is_csi(cluster: Cluster, volume: VolumeIdentity, driver: str) -> bool:
    """Whether a node could have that driver at all; many classes name provisioners that are none,
    and a plugin that is built in is never missing.
    """
    if driver in BY_PLUGIN_NAME:
        return False
    known = driver in cluster.storage.drivers or bool(cluster.csi.registered.get(driver))
    return volume.is_certainly_csi or known


def note_of(reports: Collection[VolumeReport]) -> str:
    """What is wrong with a node's places."""
    said = [
        f"{one.used} volumes of {one.driver}, and the limit is {one.limit.count}"
        for one in reports
        if one.over
    ]
    said += [
        f"{one.limit.detail} cannot be a limit"
        for one in reports
        if one.limit.source is LimitSource.UNREADABLE
    ]
    return "; ".join(said)
