"""Eligibility: nodes that are in a group, not being deleted, and underutilized.

Utilization is the larger of the requested shares of cpu and memory, or that of GPUs on a node with
GPUs. Pods that should be gone do not count; DaemonSet and mirror pods can be ignored, and are then
subtracted from allocatable. The arithmetic is Cluster Autoscaler's, so a share can be infinite or
NaN where nothing is left of a node.

Attach slots in use are reported by driver, and are not compared with the threshold: a node with few
requests and many volumes may be removed if its volumes can be attached elsewhere, which is checked
for every destination. They count in the order of candidates: the node with the lowest utilization
of anything comes first.

A node is evaluated again when it, its pods, or its group's options have changed; one with
terminating pods every time, since its result depends on the time. So a loop without changes is
cheap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from bayplan.autoscaler.clusterstate.readiness import gpu_resource, is_ready
from bayplan.autoscaler.clusterstate.taints import TO_BE_DELETED, has_taint, is_being_deleted
from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.scaledown.drain import PREFIX, is_daemon, is_long_terminating, is_mirror
from bayplan.autoscaler.scaledown.reasons import UnremovableNode, UnremovableReason
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit.batches.template import GATE
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import SlotChanges
from bayplan.fit.state.pods import PodRecord
from bayplan.fit.volumes.limits import NO_LIMIT
from bayplan.kube.nodes import Node
from bayplan.kube.quantity import milli_value
from bayplan.kube.requests import Millis, pod_requests_milli
from bayplan.kube.resources import CPU, GPU_RESOURCES, MEMORY
from bayplan.nodegroups import GroupOptions

MAX_SIGNATURES = 1 << 14


@dataclass(frozen=True, slots=True)
class Utilization:
    """Utilization by resource, and the decisive one."""

    shares: Mapping[str, float]
    resource: str
    value: float
    volumes: Mapping[str, float] = field(default_factory=dict)
    """By driver with a limit, the share of attach slots in use."""

    @property
    def overall(self) -> float:
        """The largest share of anything, including volumes; NaN counts as 0."""
        every = (self.value, *self.volumes.values())
        return max(0.0 if math.isnan(one) else one for one in every)


@dataclass(frozen=True, slots=True)
class UtilizationOptions:
    """Which pods count in utilization."""

    now: datetime
    ignore_daemon_sets: bool = False
    ignore_mirror_pods: bool = False
    gpu_label: str = ""
    """The label of GPU nodes."""

    @property
    def ignores_pods(self) -> bool:
        """Whether some pods are ignored."""
        return self.ignore_daemon_sets or self.ignore_mirror_pods


class RequestsCache:
    """Requests of pods in milli-units, computed once for each signature."""

    def __init__(self) -> None:
        self._known: dict[PodSignature, Millis] = {}

    def of(self, record: PodRecord) -> Millis:
        """Return a pod's requests; pods of one signature have the same."""
        known = self._known.get(record.signature)
        if known is None:
            if len(self._known) >= MAX_SIGNATURES:
                self._known.clear()
            known = self._known[record.signature] = pod_requests_milli(record.pod)
        return known


def utilization(
    node: Node, records: Iterable[PodRecord], counting: UtilizationOptions, requests: RequestsCache
) -> Utilization | None:
    """Return the utilization of a node; None if it has no allocatable cpu or memory."""
    gpu = gpu_resource(node, counting.gpu_label)
    names = (CPU, MEMORY) if gpu is None else (gpu,)
    has = [milli_value(node.status.allocatable.get(name, 0)) for name in names]
    if not all(has):
        return None if gpu is None else Utilization({gpu: 0.0}, gpu, 0.0)
    requested, ignores_pods = [0] * len(names), counting.ignores_pods
    for record in records:
        amounts, totals, sign = requests.of(record), requested, 1
        if ignores_pods or record.terminating:
            totals, sign = _counted(record, counting, requested, has)
        for at, name in enumerate(names):
            totals[at] += sign * amounts.get(name, 0)
    shares = dict(zip(names, map(_divided, requested, has), strict=True))
    resource = names[0] if gpu is not None or shares[CPU] > shares[MEMORY] else MEMORY
    return Utilization(shares, resource, shares[resource])


def _counted(
    record: PodRecord, counting: UtilizationOptions, requested: list[int], has: list[int]
) -> tuple[list[int], int]:
    """Return the totals that a pod is added to, and its sign: requested, or allocatable."""
    if _is_ignored(record, counting):
        return has, -1
    gone = record.terminating and is_long_terminating(record.pod, counting.now)
    return requested, 0 if gone else 1


def _is_ignored(record: PodRecord, counting: UtilizationOptions) -> bool:
    if counting.ignore_daemon_sets and is_daemon(record.pod):
        return True
    return counting.ignore_mirror_pods and is_mirror(record.pod)


def _divided(requested: int, has: int) -> float:
    """Divide as in IEEE 754: x/0 is infinite, 0/0 is NaN."""
    if has:
        return requested / has
    return math.copysign(math.inf, requested) if requested else math.nan


SCALE_DOWN_DISABLED = f"{PREFIX}scale-down-disabled"


def ineligible_itself(node: Node, now: datetime) -> UnremovableReason | None:
    """Return why a node is unremovable by its own taints and annotations."""
    if is_being_deleted(node, now):
        return UnremovableReason.CURRENTLY_BEING_DELETED
    if is_disabled(node):
        return UnremovableReason.SCALE_DOWN_DISABLED_ANNOTATION
    return None


def is_disabled(node: Node) -> bool:
    """Whether a node has the annotation scale-down-disabled."""
    return node.metadata.annotations.get(SCALE_DOWN_DISABLED) == "true"


def ineligible(
    node: Node,
    group: NodeGroupView | None,
    used: Utilization | None,
    cluster_view: ClusterView,
    gpu_label: str = "",
) -> UnremovableReason | None:
    """Return why a node is not eligible; None if it is."""
    reason = ineligible_itself(node, cluster_view.now)
    if reason is not None:
        return reason
    if group is None:
        return UnremovableReason.NOT_AUTOSCALED
    if used is None:
        return UnremovableReason.UNEXPECTED_ERROR
    options = cluster_view.options
    if not options.scale_down_unready_enabled and not is_ready(node, options, gpu_label):
        return UnremovableReason.SCALE_DOWN_UNREADY_DISABLED
    if used.value > threshold(used, group.options):
        return UnremovableReason.NOT_UNDERUTILIZED
    return None


def threshold(used: Utilization, options: GroupOptions) -> float:
    """Return the utilization threshold for the decisive resource."""
    if used.resource in GPU_RESOURCES:
        return options.scale_down_gpu_utilization_threshold
    return options.scale_down_utilization_threshold


@dataclass(frozen=True, slots=True, eq=False)
class NodeEligibility:
    """The eligibility of a node."""

    node: Node
    options: GroupOptions | None
    """The options of its group; None if it is in no group."""
    used: Utilization | None
    unremovable: UnremovableNode | None
    """Why it is not eligible; None if it is."""


class EligibilityChecker:
    """Evaluates the eligibility of all nodes, with a cache."""

    def __init__(self, gpu_label: str = "") -> None:
        self._gpu_label = gpu_label
        self._known: dict[str, NodeEligibility] = {}
        self._requests = RequestsCache()
        self._cursors = [-1, -1]

    def of(self, cluster_view: ClusterView) -> dict[str, NodeEligibility]:
        """Return the eligibility of every node."""
        cluster = cluster_view.snapshot.cluster
        self._forget_changed(cluster)
        known = self._known
        evaluated: dict[str, NodeEligibility] = {}
        for name, slot in cluster.slots.by_name.items():
            view = cluster_view.groups.get(cluster_view.group_of.get(name, ""))
            options = None if view is None else view.options
            found = known.get(name)
            node = cluster.node_at(slot)
            if found is not None and found.node is not node and _is_unchanged(found.node, node):
                found = known[name] = replace(found, node=node)
            if found is None or found.node is not node or not _has_options(found, options):
                found = self._evaluate(cluster_view, slot, view)
            evaluated[name] = found
        return evaluated

    def _evaluate(
        self, cluster_view: ClusterView, slot: int, view: NodeGroupView | None
    ) -> NodeEligibility:
        cluster = cluster_view.snapshot.cluster
        node = cluster.node_at(slot)
        records = cluster.records_on(node.name)
        counting = _utilization_options(cluster_view, view, self._gpu_label)
        used = utilization(node, records, counting, self._requests)
        if used is not None and cluster_view.snapshot.profile.gates.enabled(GATE):
            used = replace(used, volumes=_volume_shares(cluster, slot))
        reason = ineligible(node, view, used, cluster_view, self._gpu_label)
        unremovable = (
            None if reason is None else UnremovableNode(node.name, reason, None, _detail(used))
        )
        evaluated = NodeEligibility(node, None if view is None else view.options, used, unremovable)
        if not _time_matters(node, records):
            self._known[node.name] = evaluated
        return evaluated

    def _forget_changed(self, cluster: ClusterState) -> None:
        for number, log in enumerate((cluster.usage_changes, cluster.node_changes)):
            self._forget(cluster, log, self._cursors[number])
            self._cursors[number] = log.end

    def _forget(self, cluster: ClusterState, log: SlotChanges, cursor: int) -> None:
        changed = log.since(cursor, cluster.slots.capacity)
        if isinstance(changed, slice):
            self._known.clear()
        elif changed is not None:
            for slot in changed.tolist():
                self._known.pop(cluster.slots.names[slot], None)


def _has_options(found: NodeEligibility, options: GroupOptions | None) -> bool:
    """Whether a node was evaluated with these options; mostly they are the same object."""
    return found.options is options or found.options == options


def _is_unchanged(before: Node, now: Node) -> bool:
    """Whether a node is unchanged except for its heartbeat."""
    old, new = before.metadata, now.metadata
    same = old.uid == new.uid and old.labels == new.labels and old.annotations == new.annotations
    return same and before.spec == now.spec and before.status == now.status


def _utilization_options(
    cluster_view: ClusterView, view: NodeGroupView | None, gpu_label: str
) -> UtilizationOptions:
    options = cluster_view.options.group_defaults() if view is None else view.options
    ignores_mirrors = cluster_view.options.ignore_mirror_pods_utilization
    return UtilizationOptions(
        cluster_view.now, options.ignore_daemon_sets_utilization, ignores_mirrors, gpu_label
    )


def _volume_shares(cluster: ClusterState, slot: int) -> dict[str, float]:
    """Return the share of attach slots in use, by driver with a limit."""
    volumes = cluster.attached_volumes
    shares: dict[str, float] = {}
    for driver in volumes.drivers():
        columns = volumes.columns(driver)
        used, limit = int(columns.used[slot]), int(columns.limit[slot])
        if used and limit < NO_LIMIT:
            shares[driver] = used / limit if limit else float("inf")
    return shares


def _detail(used: Utilization | None) -> str:
    return "" if used is None else f"{used.resource} requested is {used.value:.1%} of allocatable"


def _time_matters(node: Node, records: list[PodRecord]) -> bool:
    return has_taint(node, TO_BE_DELETED) or any(record.terminating for record in records)
