"""Which nodes are candidates for removal: in a group, not on their way out, used little enough.

Utilization is the larger share of cpu and memory that pods have requested, or of GPUs: a node with
GPUs is judged by them alone. Pods that should long be gone do not count; daemons and static pods
can be left out, and are then taken off what the node has. The arithmetic is Cluster Autoscaler's,
so a share can be infinite or no number at all where nothing is left of a node.

Attach slots are told beside it, by driver, and are no part of the share that is held against the
threshold: a node with little on it but volumes is still worth emptying where its volumes have other
places, and whether they have is asked of every destination. They decide who goes first: of nodes
that could go, the one that is used least in every respect.

A node is judged again when it, what is on it, or its group's options have changed; one with pods
that are about to end is judged every time, since time alone can change that. So a loop in which
nothing happens costs one look at each node.
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
from bayplan.autoscaler.scaledown.reasons import Unremovable, UnremovableReason
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit.batches.template import GATE
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import SlotChanges
from bayplan.fit.state.pods import PodRecord
from bayplan.fit.volumes.limits import NO_LIMIT
from bayplan.kube.nodes import Node
from bayplan.kube.quantity import milli_value
from bayplan.kube.requests import Millis, pod_requests_milli
from bayplan.kube.resources import CPU, GPU_RESOURCES, MEMORY
from bayplan.nodegroups import GroupOptions

MOST_SHAPES = 1 << 14


@dataclass(frozen=True, slots=True)
class Utilization:
    """Shares by resource, and the one that counts."""

    shares: Mapping[str, float]
    resource: str
    value: float
    volumes: Mapping[str, float] = field(default_factory=dict)
    """By driver, what part of the places for volumes is taken; where there is a limit."""

    @property
    def overall(self) -> float:
        """The largest share of anything, volumes included; what is no number counts as none."""
        every = (self.value, *self.volumes.values())
        return max(0.0 if math.isnan(one) else one for one in every)


@dataclass(frozen=True, slots=True)
class Counting:
    """How pods are counted."""

    now: datetime
    ignore_daemon_sets: bool = False
    ignore_mirror_pods: bool = False
    gpu_label: str = ""
    """The label of nodes that have a GPU, ready or not."""

    @property
    def leaves_out(self) -> bool:
        """Whether some pods are left out."""
        return self.ignore_daemon_sets or self.ignore_mirror_pods


class Requests:
    """What pods ask for in thousandths, worked out once a signature."""

    def __init__(self) -> None:
        self._known: dict[PodSignature, Millis] = {}

    def of(self, record: PodRecord) -> Millis:
        """A pod's requests; pods of one signature were written alike."""
        known = self._known.get(record.signature)
        if known is None:
            if len(self._known) >= MOST_SHAPES:
                self._known.clear()
            known = self._known[record.signature] = pod_requests_milli(record.pod)
        return known


def utilization(
    node: Node, records: Iterable[PodRecord], counting: Counting, requests: Requests
) -> Utilization | None:
    """How much of a node is asked for; None if it does not say what it has."""
    gpu = gpu_resource(node, counting.gpu_label)
    names = (CPU, MEMORY) if gpu is None else (gpu,)
    has = [milli_value(node.status.allocatable.get(name, 0)) for name in names]
    if not all(has):
        return None if gpu is None else Utilization({gpu: 0.0}, gpu, 0.0)
    asked, leaves_out = [0] * len(names), counting.leaves_out
    for record in records:
        amounts, totals, sign = requests.of(record), asked, 1
        if leaves_out or record.terminating:
            totals, sign = _counted(record, counting, asked, has)
        for at, name in enumerate(names):
            totals[at] += sign * amounts.get(name, 0)
    shares = dict(zip(names, map(_divided, asked, has), strict=True))
    resource = names[0] if gpu is not None or shares[CPU] > shares[MEMORY] else MEMORY
    return Utilization(shares, resource, shares[resource])


def _counted(
    record: PodRecord, counting: Counting, asked: list[int], has: list[int]
) -> tuple[list[int], int]:
    """What a pod is counted in: what is asked for, or what is left of the node without it."""
    if _is_left_out(record, counting):
        return has, -1
    gone = record.terminating and is_long_terminating(record.pod, counting.now)
    return asked, 0 if gone else 1


def _is_left_out(record: PodRecord, counting: Counting) -> bool:
    if counting.ignore_daemon_sets and is_daemon(record.pod):
        return True
    return counting.ignore_mirror_pods and is_mirror(record.pod)


def _divided(asked: int, has: int) -> float:
    """As processors divide: by nothing gives infinity, nothing by nothing is no number."""
    if has:
        return asked / has
    return math.copysign(math.inf, asked) if asked else math.nan


SCALE_DOWN_DISABLED = f"{PREFIX}scale-down-disabled"


def ineligible_itself(node: Node, now: datetime) -> UnremovableReason | None:
    """Why a node says that it stays, or is going already."""
    if is_being_deleted(node, now):
        return UnremovableReason.CURRENTLY_BEING_DELETED
    if is_disabled(node):
        return UnremovableReason.SCALE_DOWN_DISABLED_ANNOTATION
    return None


def is_disabled(node: Node) -> bool:
    """Whether a node says that it must not be given back."""
    return node.metadata.annotations.get(SCALE_DOWN_DISABLED) == "true"


def ineligible(
    node: Node,
    group: NodeGroupView | None,
    used: Utilization | None,
    cluster_view: ClusterView,
    gpu_label: str = "",
) -> UnremovableReason | None:
    """Why a node is not looked at; None if it is."""
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
    """How much of a node of this kind may be used at most."""
    if used.resource in GPU_RESOURCES:
        return options.scale_down_gpu_utilization_threshold
    return options.scale_down_utilization_threshold


@dataclass(frozen=True, slots=True, eq=False)
class NodeEligibility:
    """A node as it was judged."""

    node: Node
    options: GroupOptions | None
    """What its group wishes; None if it is in no group."""
    used: Utilization | None
    stays: Unremovable | None
    """Why it is not looked at; None if it is."""


class EligibilityChecker:
    """All nodes, judged."""

    def __init__(self, gpu_label: str = "") -> None:
        self._gpu_label = gpu_label
        self._known: dict[str, NodeEligibility] = {}
        self._requests = Requests()
        self._cursors = [-1, -1]

    def of(self, cluster_view: ClusterView) -> dict[str, NodeEligibility]:
        """Every node of a world."""
        cluster = cluster_view.snapshot.cluster
        self._forget_changed(cluster)
        known = self._known
        judged: dict[str, NodeEligibility] = {}
        for name, slot in cluster.slots.by_name.items():
            view = cluster_view.groups.get(cluster_view.group_of.get(name, ""))
            options = None if view is None else view.options
            found = known.get(name)
            node = cluster.node_at(slot)
            if found is not None and found.node is not node and _says_the_same(found.node, node):
                found = known[name] = replace(found, node=node)
            if found is None or found.node is not node or not _wishes(found, options):
                found = self._judge(cluster_view, slot, view)
            judged[name] = found
        return judged

    def _judge(
        self, cluster_view: ClusterView, slot: int, view: NodeGroupView | None
    ) -> NodeEligibility:
        cluster = cluster_view.snapshot.cluster
        node = cluster.node_at(slot)
        records = cluster.records_on(node.name)
        counting = _counting(cluster_view, view, self._gpu_label)
        used = utilization(node, records, counting, self._requests)
        if used is not None and cluster_view.snapshot.profile.gates.enabled(GATE):
            used = replace(used, volumes=_volume_shares(cluster, slot))
        reason = ineligible(node, view, used, cluster_view, self._gpu_label)
        stays = None if reason is None else Unremovable(node.name, reason, None, _detail(used))
        judged = NodeEligibility(node, None if view is None else view.options, used, stays)
        if not _time_matters(node, records):
            self._known[node.name] = judged
        return judged

    def _forget_changed(self, cluster: Cluster) -> None:
        for number, log in enumerate((cluster.usage_changes, cluster.node_changes)):
            self._forget(cluster, log, self._cursors[number])
            self._cursors[number] = log.end

    def _forget(self, cluster: Cluster, log: SlotChanges, cursor: int) -> None:
        changed = log.since(cursor, cluster.slots.capacity)
        if isinstance(changed, slice):
            self._known.clear()
        elif changed is not None:
            for slot in changed.tolist():
                self._known.pop(cluster.slots.names[slot], None)


def _wishes(found: NodeEligibility, options: GroupOptions | None) -> bool:
    """Whether a node was judged by what its group wishes; mostly that is the same object."""
    return found.options is options or found.options == options


def _says_the_same(before: Node, now: Node) -> bool:
    """Whether a node says nothing new that it is judged by, as with every heartbeat."""
    old, new = before.metadata, now.metadata
    same = old.uid == new.uid and old.labels == new.labels and old.annotations == new.annotations
    return same and before.spec == now.spec and before.status == now.status


def _counting(cluster_view: ClusterView, view: NodeGroupView | None, gpu_label: str) -> Counting:
    options = cluster_view.options.group_defaults() if view is None else view.options
    ignores_mirrors = cluster_view.options.ignore_mirror_pods_utilization
    return Counting(
        cluster_view.now, options.ignore_daemon_sets_utilization, ignores_mirrors, gpu_label
    )


def _volume_shares(cluster: Cluster, slot: int) -> dict[str, float]:
    """By driver with a limit here, what part of the places for volumes is taken."""
    places = cluster.attached_volumes
    shares: dict[str, float] = {}
    for driver in places.drivers():
        columns = places.columns(driver)
        used, limit = int(columns.used[slot]), int(columns.limit[slot])
        if used and limit < NO_LIMIT:
            shares[driver] = used / limit if limit else float("inf")
    return shares


def _detail(used: Utilization | None) -> str:
    return "" if used is None else f"{used.resource} requested is {used.value:.1%} of allocatable"


def _time_matters(node: Node, records: list[PodRecord]) -> bool:
    return has_taint(node, TO_BE_DELETED) or any(record.terminating for record in records)
