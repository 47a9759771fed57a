"""Rows of nodes, and of the attach limits of each driver (the table `rails`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from bayplan.fit.state.cluster import ClusterState
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

MAX_TAINTS = 20
MAX_DRIVERS = 20
LARGEST = 1 << 53
"""The largest integer that every JSON parser reads exactly."""


def zone_of(node: Node) -> str:
    """Return the zone of a node; empty if it is unknown."""
    labels = node.metadata.labels
    return texts.name(labels.get(ZONE) or labels.get(BETA_ZONE, ""))


def node_row(node: Node, group: str, note: str, missing: Collection[str]) -> Row:
    """Return the row of an existing node."""
    allocatable = node.status.allocatable
    return [
        texts.identity(node.name),
        group,
        zone_of(node),
        ready_of(node),
        node.spec.unschedulable,
        [taint_text(one) for one in node.spec.taints[:MAX_TAINTS]],
        amount(allocatable.get(CPU), milli=True),
        amount(allocatable.get(MEMORY)),
        amount(allocatable.get(PODS)),
        False,
        texts.name(instance_type(node.metadata.labels)),
        texts.line(note),
        [texts.name(one) for one in sorted(missing)[:MAX_DRIVERS]],
    ]


def ready_of(node: Node) -> str:
    """Return the status of the condition Ready; True if there is none, as in a handwritten dump."""
    status = next((one.status for one in node.status.conditions if one.type == "Ready"), "True")
    return status if status in {"True", "False"} else "Unknown"


def taint_text(taint: Taint) -> str:
    """Return a taint in the format of kubectl."""
    value = f"={taint.value}" if taint.value else ""
    return texts.name(f"{taint.key}{value}:{taint.effect}")


def amount(written: Quantity | None, *, milli: bool = False) -> int:
    """Return a quantity as a number; zero if it is missing."""
    if written is None:
        return 0
    return min(quantity.milli_value(written) if milli else quantity.value(written), LARGEST)


def attach_limit_row(report: VolumeReport) -> Row:
    """Return the row of a driver's attach limit and used slots on a node."""
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


def volumes_on(cluster: ClusterState, node: str) -> Iterator[VolumeIdentity]:
    """Yield the volumes of the pods on a node."""
    for record in cluster.pods.by_node.get(node, {}).values():
        yield from record.volumes


def missing_drivers(cluster: ClusterState, node: str, needed: Iterable[VolumeIdentity]) -> set[str]:
    """Return the CSI drivers of these volumes that are missing on a node."""
    csinode = cluster.csinodes.get(node)
    there = {one.name for one in csinode.spec.drivers} if csinode is not None else set()
    found: set[str] = set()
    for volume in needed:
        driver = volume.on_node(has_csinode=csinode is not None).driver
        if driver not in there and driver not in found and _is_csi(cluster, volume, driver):
            found.add(driver)
    return found


def _is_csi(cluster: ClusterState, volume: VolumeIdentity, driver: str) -> bool:
    """Return whether a driver is a CSI driver.

    Many storage classes have provisioners that are none, and an in-tree plugin is never missing.
    """
    if driver in BY_PLUGIN_NAME:
        return False
    known = driver in cluster.storage.drivers or bool(cluster.csi.registered.get(driver))
    return volume.is_certainly_csi or known


def note_of(reports: Collection[VolumeReport]) -> str:
    """Return the problems of a node's attach limits."""
    problems = [
        f"{one.used} volumes of {one.driver}, limit {one.limit.count}"
        for one in reports
        if one.over
    ]
    problems += [
        f"{one.limit.detail} is not a valid attach limit"
        for one in reports
        if one.limit.source is LimitSource.UNREADABLE
    ]
    return "; ".join(problems)
