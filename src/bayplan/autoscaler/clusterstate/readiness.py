"""Whether a node is ready, on its way, or late: by its conditions, taints, GPUs and CSI drivers.

Conditions and taints are read as Cluster Autoscaler reads them. Beside what the node says of
itself, it is not ready while it has a taint that new nodes start with, nor while its label says
that it has a GPU and it has none yet.

A node that says it is ready is upcoming still, until it reports every CSI driver that its group's
template promises, with a count where one was promised; and every driver that a label of its own
names. Past the time that drivers have for it, it is late.

Only a node that has never had all its drivers can be late for them: a driver that is restarted on a
node which has served for months says nothing against the node. Nor can one that had long been ready
when it was first seen: it may never have been complete. And where no template names the drivers,
those that the cluster knows are waited for as long, and no longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from bayplan.autoscaler.options import AutoscalerOptions, ScaleUpOptions
from bayplan.kube.nodes import Node
from bayplan.kube.quantity import milli_value
from bayplan.kube.resources import GPU_RESOURCES
from bayplan.kube.storage import CSINode
from bayplan.kube.times import read_time


def gpu_resource(node: Node, gpu_label: str) -> str | None:
    """The resource that a node's GPUs are; None if it has none, nor a label that says so."""
    found = _allocatable(node)
    if found is not None:
        return found
    return GPU_RESOURCES[0] if gpu_label and gpu_label in node.metadata.labels else None


def has_gpu(node: Node) -> bool:
    """Whether a node has a GPU that can be used."""
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
"""By condition, what it says of a node that is not ready."""
STARTUP_TAINTS = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
)
"""What the keys of taints begin with that new nodes start with."""


def is_ready(node: Node, options: ScaleUpOptions, gpu_label: str = "") -> bool:
    """Whether a node is ready, and all of it is."""
    return says_ready(node) and not is_starting(node, options) and not lacks_gpu(node, gpu_label)


def says_ready(node: Node) -> bool:
    """Whether a node says that it is ready, and no condition or taint speaks against it."""
    conditions = node.status.conditions
    if not any(one.type == "Ready" for one in conditions):
        return False
    if any(taint.key in NOT_READY_TAINTS for taint in node.spec.taints):
        return False
    return not any(one.status in NOT_READY.get(one.type, ()) for one in conditions)


def is_starting(node: Node, options: ScaleUpOptions) -> bool:
    """Whether a node still has a taint that new ones start with."""
    prefixes = (*STARTUP_TAINTS, *options.startup_taint_prefix)
    return any(
        taint.key in options.startup_taint or taint.key.startswith(prefixes)
        for taint in node.spec.taints
    )


def lacks_gpu(node: Node, gpu_label: str) -> bool:
    """Whether a node is to have a GPU, and has none yet."""
    return bool(gpu_label) and gpu_label in node.metadata.labels and not has_gpu(node)


DRIVER_LABEL = "cluster-autoscaler.kubernetes.io/csi-driver"
"""A label whose value names a driver that the node is to have."""
DRIVER_PREFIX = "csi-driver.cluster-autoscaler.kubernetes.io/"
"""What labels begin with whose keys name such drivers, where there are several."""


@dataclass(frozen=True, slots=True)
class ReadinessCriteria:
    """What a group's new nodes are to be like before they count as ready, and when."""

    startup_time: float = 900.0
    """Seconds from their registration."""
    drivers: Mapping[str, bool] = field(default_factory=dict)
    """By name, whether it will say how many volumes it can attach."""
    hoped: frozenset[str] = frozenset()
    """Drivers that nobody promised and that may come: they are waited for, and not missed."""
    asks_drivers: bool = True
    """Whether drivers matter at all; not without the gate."""
    gpu_label: str = ""
    """The label of nodes that are to have a GPU; they are not ready without."""


class NodeReadiness(Enum):
    """How a node stands."""

    READY = "ready"
    STARTING = "notStarted"
    """It is not ready yet, and not late."""
    AWAITING = "awaitingDrivers"
    """It is ready but for its drivers, and not late."""
    UNREADY = "unready"
    LATE = "missingDrivers"
    """Its drivers did not come in time."""

    @property
    def is_upcoming(self) -> bool:
        """Whether it is on its way."""
        return self in (NodeReadiness.STARTING, NodeReadiness.AWAITING)


@dataclass(slots=True)
class NodeState:
    """A node, and what has been seen of it."""

    node: Node
    group: str = ""
    standing: NodeReadiness = NodeReadiness.STARTING
    missing: tuple[str, ...] = ()
    """The drivers that it still lacks."""
    complete: bool = False
    """Whether it has had all its drivers once."""
    awaited: bool = False
    """Whether it was seen while its drivers were on their way."""
    ready_since: datetime | None = None
    _said: tuple[Node, datetime | None] | None = None
    """The node as it was last asked whether it is ready, and its answer."""

    def says_ready_since(self) -> datetime | None:
        """Since when the node says that it is ready; None if it does not, or something else does
        not.
        """
        if self._said is None or self._said[0] is not self.node:
            self._said = self.node, ready_since(self.node) if says_ready(self.node) else None
        return self._said[1]


def update_readiness(
    member: NodeState,
    csinode: CSINode | None,
    promise: ReadinessCriteria,
    options: AutoscalerOptions,
    now: datetime,
) -> None:
    """Say how a node stands now."""
    node = member.node
    member.missing = ()
    if not is_ready(node, options, promise.gpu_label):
        member.ready_since = None
        born = read_time(node.metadata.creation_timestamp) or now
        young = now < born + timedelta(seconds=promise.startup_time)
        member.standing = NodeReadiness.STARTING if young else NodeReadiness.UNREADY
        return
    if member.ready_since is None:
        member.ready_since = ready_since(node) or now
    if not promise.asks_drivers:
        member.standing = NodeReadiness.READY
        return
    missing = () if member.complete else missing_drivers(node, csinode, promise)
    patience = timedelta(seconds=options.csi_driver_startup_time)
    if not _promised(node, promise, missing) and now >= member.ready_since + patience:
        missing = ()
    member.complete, member.missing = not missing, missing
    member.standing = _awaiting(member, options, now) if missing else NodeReadiness.READY


def _promised(node: Node, promise: ReadinessCriteria, missing: Iterable[str]) -> bool:
    """Whether one of these drivers was more than hoped for."""
    said = {*promise.drivers, *labelled_drivers(node)}
    return any(name in said for name in missing)


def _awaiting(member: NodeState, options: AutoscalerOptions, now: datetime) -> NodeReadiness:
    patience = timedelta(seconds=options.csi_driver_startup_time)
    since = member.ready_since or now
    if now < since + patience:
        member.awaited = True
        return NodeReadiness.AWAITING
    if member.awaited or now < since + 2 * patience:
        member.awaited = True
        return NodeReadiness.LATE
    return NodeReadiness.READY


def missing_drivers(
    node: Node, csinode: CSINode | None, promise: ReadinessCriteria
) -> tuple[str, ...]:
    """The drivers that a node is to have and has not reported, in the order of their names."""
    drivers = csinode.spec.drivers if csinode is not None else ()
    there = {one.name: one.allocatable is not None for one in drivers}
    wanted = dict.fromkeys([*promise.hoped, *labelled_drivers(node)], False)
    wanted |= promise.drivers
    return tuple(
        sorted(
            name
            for name, counted in wanted.items()
            if name not in there or (counted and not there[name])
        )
    )


def labelled_drivers(node: Node) -> list[str]:
    """The drivers that a node's labels name."""
    labels = node.metadata.labels
    named = [key.removeprefix(DRIVER_PREFIX) for key in labels if key.startswith(DRIVER_PREFIX)]
    return [*named, labels[DRIVER_LABEL]] if labels.get(DRIVER_LABEL) else named


def ready_since(node: Node) -> datetime | None:
    """Since when a node says that it is ready."""
    conditions = (one for one in node.status.conditions if one.type == "Ready")
    return next((read_time(one.last_transition_time) for one in conditions), None)
