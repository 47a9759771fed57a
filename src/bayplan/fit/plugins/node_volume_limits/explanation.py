"""Attach limits in detail, and what would lift them: install the driver that is missing, detach
what no pod uses, raise the limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Filter
from bayplan.fit.plugins.explanation import (
    Explainer,
    NodeRepair,
    Proposal,
    RepairEstimate,
    Trial,
    move_pod,
    repair_by_node,
)
from bayplan.fit.plugins.node_volume_limits.filter import NodeVolumeLimits
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import SlotArray
from bayplan.fit.state.volume_report import VolumeReport, volumes_on
from bayplan.fit.volumes.limits import LimitSource, limit_keys
from bayplan.kube.labels import ZONE
from bayplan.kube.meta import ObjectMeta
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import (
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    VolumeAttachment,
    VolumeNodeResources,
)


def install_driver(trial: Trial) -> Iterable[Step]:
    """Propose to install the drivers that the node lacks, with their limit elsewhere."""
    missing = missing_drivers(trial)
    if not missing:
        return
    entries = [_like_elsewhere(trial.cluster, driver) for driver in missing]
    described = " and ".join(map(_installed, entries))
    node = _with_topology(trial.node, entries)
    csinode = trial.csinode or CSINode(metadata=ObjectMeta(name=trial.name))
    spec = CSINodeSpec(drivers=[*csinode.spec.drivers, *entries])
    text = f"install {described} on node {trial.name}"
    puts = (replace(csinode, spec=spec), node)
    yield Step(FixKind.INSTALL_DRIVER, text, 3.0 * len(missing), trial.pod, puts)


def missing_drivers(trial: Trial) -> list[str]:
    """Return the required drivers that the node lacks."""
    csinode = trial.csinode
    there = {driver.name for driver in csinode.spec.drivers} if csinode else set()
    limits = trial.filter(NodeVolumeLimits)
    return sorted(limits.required_drivers - there) if limits else []


def raise_limit(trial: Trial) -> Iterable[Step]:
    """Propose to raise a limit that is too low by what is short, where it is set."""
    limits = trial.filter(NodeVolumeLimits)
    if limits is None or missing_drivers(trial):
        return
    for driver in limits.full_drivers(trial.slot)[:1]:
        report = volumes_on(trial.cluster, trial.name, driver)
        short = limits.missing_places(driver, trial.slot)
        count = (report.limit.count or 0) + short
        changed = _with_limit(trial, report, count)
        if changed is not None:
            where = report.limit.detail or report.limit.source.value
            text = (
                f"raise the volume limit of {driver} on node {trial.name} by {short},"
                f" from {report.limit.count} to {count} ({where})"
            )
            yield Step(FixKind.RAISE_LIMIT, text, 4.5 + short / 10, trial.pod, (changed,))


def detach_volumes(trial: Trial) -> Iterable[Step]:
    """Propose to detach volumes that no pod on the node uses."""
    limits = trial.filter(NodeVolumeLimits)
    if limits is None or missing_drivers(trial):
        return
    for driver in limits.full_drivers(trial.slot)[:1]:
        report = volumes_on(trial.cluster, trial.name, driver)
        idle = [use for use in report.uses if not use.pods]
        short = limits.missing_places(driver, trial.slot)
        if short <= len(idle):
            gone = [name for use in idle[:short] for name in use.attachments]
            described = ", ".join(gone)
            text = f"detach what no pod on node {trial.name} uses (VolumeAttachment {described})"
            deletes = tuple((VolumeAttachment, name) for name in gone)
            yield Step(FixKind.DETACH_VOLUME, text, 2.5 * len(gone), trial.pod, deletes=deletes)


def _like_elsewhere(cluster: ClusterState, driver: str) -> CSINodeDriver:
    """The driver as most nodes have it."""
    found = [
        entry
        for csinode in cluster.csinodes.values()
        for entry in csinode.spec.drivers
        if entry.name == driver
    ]
    if not found:
        return CSINodeDriver(name=driver)
    counts = Counter(_count(entry) for entry in found)
    usual = max(counts, key=lambda count: (counts[count], count is not None, count or 0))
    return replace(next(entry for entry in found if _count(entry) == usual), node_id="")


def _count(entry: CSINodeDriver) -> int | None:
    return entry.allocatable.count if entry.allocatable else None


def _installed(entry: CSINodeDriver) -> str:
    count = _count(entry)
    return f"driver {entry.name}" + (f" (limit {count}, as elsewhere)" if count is not None else "")


def _with_topology(node: Node, entries: list[CSINodeDriver]) -> Node:
    """The node with the zone labels that drivers set when they register."""
    labels = dict(node.metadata.labels)
    for key in (key for entry in entries for key in entry.topology_keys):
        if key.endswith("/zone") and ZONE in labels:
            labels.setdefault(key, labels[ZONE])
    return replace(node, metadata=replace(node.metadata, labels=labels))


def _with_limit(trial: Trial, report: VolumeReport, count: int) -> CSINode | Node | None:
    source, csinode, node = report.limit.source, trial.csinode, trial.node
    if source is LimitSource.CSINODE and csinode is not None:
        drivers = [
            replace(entry, allocatable=VolumeNodeResources(count=count))
            if entry.name == report.driver
            else entry
            for entry in csinode.spec.drivers
        ]
        return replace(csinode, spec=CSINodeSpec(drivers=drivers))
    keys = (report.limit.detail,) if report.limit.detail else limit_keys(report.driver)
    if not keys or not trial.cluster.rules.published_limits:
        return None
    allocatable = {**node.status.allocatable, keys[0]: str(count)}
    return replace(node, status=replace(node.status, allocatable=allocatable))


# -- what is told --------------------------------------------------------------------------------


def _details(trial: Trial) -> list[str]:
    """Describe the registered drivers, or the limits that are reached."""
    if missing_drivers(trial):
        return [_registered(trial)]
    limits = trial.filter(NodeVolumeLimits)
    return [
        f"{driver}: {_limit(volumes_on(trial.cluster, trial.name, driver))}"
        for driver in (limits.full_drivers(trial.slot) if limits else ())
    ]


def _limit(report: VolumeReport) -> str:
    """Describe the attachments in use of a driver on a node, the limit and its source."""
    limit = report.limit
    if limit.count is None:
        return f"{report.used} in use, no limit"
    return (
        f"{report.used} of {limit.count} in use (limit from {limit.detail or limit.source.value})"
    )


def _registered(trial: Trial) -> str:
    csinode = trial.csinode
    if csinode is None:
        return "it has no CSINode"
    names = ", ".join(driver.name for driver in csinode.spec.drivers)
    return f"its CSINode lists {names or 'no driver'}"


def _estimate_repair(
    one: Filter, _: Pod, cluster: ClusterState, slots: SlotArray
) -> RepairEstimate:
    """Group nodes by the attachments that no pod there uses."""

    def of_node(node: Node, slot: int) -> NodeRepair:
        full = one.full_drivers(slot) if isinstance(one, NodeVolumeLimits) else []
        reports = (volumes_on(cluster, node.name, driver) for driver in full)
        idle = tuple(sum(not use.pods for use in report.uses) for report in reports)
        return (one.refusal(slot).reasons, tuple(full), idle), 2.5 if any(idle) else 3.0

    return repair_by_node(of_node, cluster, slots)


EXPLAINER = Explainer(
    details=_details,
    proposals=(
        Proposal(install_driver),
        Proposal(detach_volumes),
        Proposal(move_pod, tries=True),
        Proposal(raise_limit),
    ),
    least_cost=2.5,
    estimate_repair=_estimate_repair,
)
