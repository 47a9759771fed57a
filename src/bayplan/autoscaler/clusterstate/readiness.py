"""Readiness of nodes, by their conditions, taints, GPUs and CSI drivers.

Conditions and taints are read as by Cluster Autoscaler. A node is also not ready while it has a
startup taint, or has the label of GPU nodes and no GPU yet.

A ready node is still upcoming until every required CSI driver of its group has registered, with or
without an attach limit, and every driver that a label of the node names. After
csi-driver-startup-time its drivers are missing.

Drivers can be missing only on a node that has never had them all: a driver may be restarted on a
node that has run for months. That it had them is an annotation of the node, so that a restart of
the autoscaler changes nothing. Nor are they missing on a node that had long been ready when it was
first observed. Where no template has the drivers, those that pending pods use are waited for until
then, and are not missing afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from bayplan.autoscaler.options import AutoscalerOptions, ScaleUpOptions
from bayplan.kube.nodes import Node
from bayplan.kube.quantity import milli_value
from bayplan.kube.resources import GPU_RESOURCES
from bayplan.kube.storage import CSINode
from bayplan.kube.times import read_time


def gpu_resource(node: Node, gpu_label: str) -> str | None:
    """Return the resource name of a node's GPUs; None if it has neither GPUs nor their label."""
    found = _allocatable(node)
    if found is not None:
        return found
    return GPU_RESOURCES[0] if gpu_label and gpu_label in node.metadata.labels else None


def has_gpu(node: Node) -> bool:
    """Whether a node has allocatable GPUs."""
    return _allocatable(node) is not None


def _allocatable(node: Node) -> str | None:
    amounts = node.status.allocatable
    return next((name for name in GPU_RESOURCES if milli_value(amounts.get(name, 0))), None)


NOT_READY_TAINTS = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/network-unavailable",
    }
)
NOT_READY = {
    "Ready": frozenset({"False", "Unknown"}),
    "DiskPressure": frozenset({"True"}),
    "NetworkUnavailable": frozenset({"True"}),
}
"""By condition, the statuses of a node that is not ready."""
STARTUP_TAINTS = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
)
"""Prefixes of startup taints' keys."""


def is_ready(node: Node, options: ScaleUpOptions, gpu_label: str = "") -> bool:
    """Whether a node is ready, without startup taints and with its GPUs."""
    return (
        has_ready_conditions(node)
        and not is_starting(node, options)
        and not lacks_gpu(node, gpu_label)
    )


def has_ready_conditions(node: Node) -> bool:
    """Whether a node is ready by its conditions and taints."""
    conditions = node.status.conditions
    if not any(one.type == "Ready" for one in conditions):
        return False
    if any(taint.key in NOT_READY_TAINTS for taint in node.spec.taints):
        return False
    return not any(one.status in NOT_READY.get(one.type, ()) for one in conditions)


def is_starting(node: Node, options: ScaleUpOptions) -> bool:
    """Whether a node has a startup taint."""
    prefixes = (*STARTUP_TAINTS, *options.startup_taint_prefix)
    return any(
        taint.key in options.startup_taint or taint.key.startswith(prefixes)
        for taint in node.spec.taints
    )


def lacks_gpu(node: Node, gpu_label: str) -> bool:
    """Whether a node has the label of GPU nodes and no GPU yet."""
    return bool(gpu_label) and gpu_label in node.metadata.labels and not has_gpu(node)


DRIVER_LABEL = "cluster-autoscaler.kubernetes.io/csi-driver"
"""A label whose value is a driver that must register on the node."""
DRIVER_PREFIX = "csi-driver.cluster-autoscaler.kubernetes.io/"
"""Prefix of labels whose keys name such drivers, where there are several."""
DRIVERS_REGISTERED = "bayplan.io/csi-drivers-registered"
"""Annotation of a node: when all its required drivers had registered."""


@dataclass(frozen=True, slots=True)
class ReadinessCriteria:
    """What a group's new nodes need to count as ready, and within which time."""

    startup_time: float = 900.0
    """Seconds from their registration."""
    drivers: frozenset[str] = frozenset()
    """The required drivers."""
    optional_drivers: frozenset[str] = frozenset()
    """Drivers that may register: they are waited for, and are never missing."""
    waits_for_drivers: bool = True
    """Whether drivers are waited for; False without the feature gate."""
    gpu_label: str = ""
    """The label of GPU nodes, which are not ready without their GPUs."""


class NodeReadiness(Enum):
    """The readiness of a node."""

    READY = "ready"
    NOT_STARTED = "notStarted"
    """It is not ready yet, and its startup time has not passed."""
    AWAITING_DRIVERS = "awaitingDrivers"
    """It is ready except for its drivers, and their time has not passed."""
    UNREADY = "unready"
    MISSING_DRIVERS = "missingDrivers"
    """Its drivers did not register in time."""

    @property
    def is_upcoming(self) -> bool:
        """Whether the node is upcoming."""
        return self in (NodeReadiness.NOT_STARTED, NodeReadiness.AWAITING_DRIVERS)


@dataclass(slots=True)
class NodeState:
    """A node, and what has been observed of it."""

    node: Node
    group: str = ""
    readiness: NodeReadiness = NodeReadiness.NOT_STARTED
    missing: tuple[str, ...] = ()
    """The drivers that have not registered."""
    complete: bool = False
    """Whether all its drivers have registered once."""
    awaited: bool = False
    """Whether it was observed while its drivers were still in time."""
    ready_since: datetime | None = None
    _ready_cache: tuple[Node, datetime | None] | None = None
    """The last checked version of the node, and since when it was ready."""

    def ready_conditions_since(self) -> datetime | None:
        """Since when the node is ready by its conditions; None if it is not."""
        if self._ready_cache is None or self._ready_cache[0] is not self.node:
            self._ready_cache = (
                self.node,
                ready_since(self.node) if has_ready_conditions(self.node) else None,
            )
        return self._ready_cache[1]


def update_readiness(
    member: NodeState,
    csinode: CSINode | None,
    criteria: ReadinessCriteria,
    options: AutoscalerOptions,
    now: datetime,
) -> None:
    """Update the readiness of a node."""
    node = member.node
    member.missing = ()
    if not is_ready(node, options, criteria.gpu_label):
        member.ready_since = None
        born = read_time(node.metadata.creation_timestamp) or now
        young = now < born + timedelta(seconds=criteria.startup_time)
        member.readiness = NodeReadiness.NOT_STARTED if young else NodeReadiness.UNREADY
        return
    if member.ready_since is None:
        member.ready_since = ready_since(node) or now
    if not criteria.waits_for_drivers:
        member.readiness = NodeReadiness.READY
        return
    if DRIVERS_REGISTERED in node.metadata.annotations:
        member.complete = True
    missing = () if member.complete else missing_drivers(node, csinode, criteria)
    timeout = timedelta(seconds=options.csi_driver_startup_time)
    if not _promised(node, criteria, missing) and now >= member.ready_since + timeout:
        missing = ()
    member.complete, member.missing = not missing, missing
    member.readiness = _awaiting(member, options, now) if missing else NodeReadiness.READY


def _promised(node: Node, criteria: ReadinessCriteria, missing: Iterable[str]) -> bool:
    """Whether one of these drivers is required, not only optional."""
    required = {*criteria.drivers, *labelled_drivers(node)}
    return any(name in required for name in missing)


def _awaiting(member: NodeState, options: AutoscalerOptions, now: datetime) -> NodeReadiness:
    timeout = timedelta(seconds=options.csi_driver_startup_time)
    since = member.ready_since or now
    if now < since + timeout:
        member.awaited = True
        return NodeReadiness.AWAITING_DRIVERS
    if member.awaited or now < since + 2 * timeout:
        member.awaited = True
        return NodeReadiness.MISSING_DRIVERS
    return NodeReadiness.READY


def missing_drivers(
    node: Node, csinode: CSINode | None, criteria: ReadinessCriteria
) -> tuple[str, ...]:
    """Return the drivers that have not registered on a node, sorted by name."""
    drivers = csinode.spec.drivers if csinode is not None else ()
    there = {one.name for one in drivers}
    wanted = criteria.drivers | criteria.optional_drivers | {*labelled_drivers(node)}
    return tuple(sorted(wanted - there))


def labelled_drivers(node: Node) -> list[str]:
    """Return the drivers that a node's labels name."""
    labels = node.metadata.labels
    named = [key.removeprefix(DRIVER_PREFIX) for key in labels if key.startswith(DRIVER_PREFIX)]
    return [*named, labels[DRIVER_LABEL]] if labels.get(DRIVER_LABEL) else named


def ready_since(node: Node) -> datetime | None:
    """Return since when a node's Ready condition has its status."""
    conditions = (one for one in node.status.conditions if one.type == "Ready")
    return next((read_time(one.last_transition_time) for one in conditions), None)
