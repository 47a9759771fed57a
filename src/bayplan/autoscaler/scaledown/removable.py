"""Which unneeded nodes are removed now: unneeded time, cooldowns, minimum sizes, parallelism.

They must have been unneeded for long enough, and their groups and the cluster must stay above their
minimum. After a scale-up, a deletion and a failed deletion there is a cooldown: of the whole
cluster, or, with `scale-down-delay-type-local`, of the group. The numbers of parallel removals and
drains are limited.

Nodes of a zero-or-max group are removed all or none. One such group may exceed the parallelism,
since otherwise a large group would never be removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from bayplan.autoscaler.clusterstate.readiness import is_ready
from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.estimate.limits import read_resource_limits, resource_totals
from bayplan.autoscaler.options import AutoscalerOptions, ScaleDownOptions
from bayplan.autoscaler.scaledown.eligibility import is_disabled
from bayplan.autoscaler.scaledown.reasons import UnremovableNode, UnremovableReason
from bayplan.autoscaler.scaledown.simulator import NodeToBeRemoved
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.kube.nodes import Node


@dataclass(frozen=True, slots=True)
class Deletions:
    """Nodes that are being removed, each with its group."""

    empty: Mapping[str, str] = field(default_factory=dict)
    drained: Mapping[str, str] = field(default_factory=dict)
    """Nodes that are drained."""

    def __contains__(self, node: object) -> bool:
        return node in self.empty or node in self.drained

    def __len__(self) -> int:
        return len(self.empty) + len(self.drained)

    def by_group(self) -> Counter[str]:
        """Return the number of nodes by group."""
        return Counter([*self.empty.values(), *self.drained.values()])


CLUSTER = ""


class CooldownTrigger(Enum):
    """What starts a cooldown."""

    ADD = "a scale-up"
    DELETE = "a deletion"
    FAILURE = "a failed deletion"


@dataclass(slots=True)
class Cooldowns:
    """When each trigger last happened, by group and in the cluster."""

    _last: dict[tuple[CooldownTrigger, str], datetime] = field(default_factory=dict)

    def record(self, activity: CooldownTrigger, group: str, now: datetime) -> None:
        """Record that a trigger happened in a group."""
        self._last[activity, group] = self._last[activity, CLUSTER] = now

    def in_cluster(self, now: datetime, options: AutoscalerOptions) -> str:
        """Return why the cluster is in cooldown; empty if it is not."""
        return "" if options.scale_down_delay_type_local else self._reason(CLUSTER, now, options)

    def of_group(self, group: str, now: datetime, options: AutoscalerOptions) -> str:
        """Return why a group is in cooldown; empty if it is not."""
        return self._reason(group, now, options) if options.scale_down_delay_type_local else ""

    def _reason(self, group: str, now: datetime, options: AutoscalerOptions) -> str:
        for activity, seconds in _delays(options).items():
            last = self._last.get((activity, group))
            if last is not None and last + timedelta(seconds=seconds) > now:
                return f"{activity.value} was less than {seconds:g}s ago"
        return ""


def _delays(options: AutoscalerOptions) -> dict[CooldownTrigger, float]:
    return {
        CooldownTrigger.ADD: options.scale_down_delay_after_add,
        CooldownTrigger.FAILURE: options.scale_down_delay_after_failure,
        CooldownTrigger.DELETE: options.scale_down_delay_after_delete or options.scan_interval,
    }


@dataclass(frozen=True, slots=True)
class RemovalBatch:
    """Nodes of one group that are removed now."""

    group: str
    nodes: tuple[NodeToBeRemoved, ...]
    atomic: bool = False
    """Whether they are removed all or none."""


class _Budget:
    """The remaining parallelism of removals and drains."""

    def __init__(self, options: ScaleDownOptions, deletions: Deletions) -> None:
        self.parallel = options.max_scale_down_parallelism - len(deletions)
        self.drains = options.max_drain_parallelism - len(deletions.drained)
        self.overdrawn = False

    def allows(self, nodes: int, drains: int) -> bool:
        """Whether so many may be removed."""
        if nodes <= self.parallel and drains <= self.drains:
            return True
        return not self.overdrawn and self.parallel > 0 and (not drains or self.drains > 0)

    def use(self, nodes: int, drains: int) -> None:
        """Count so many as removed."""
        self.parallel -= nodes
        self.drains -= drains


def crop_nodes(
    going: Sequence[NodeToBeRemoved],
    group_of: Mapping[str, str],
    groups: Mapping[str, NodeGroupView],
    options: ScaleDownOptions,
    deletions: Deletions,
) -> list[RemovalBatch]:
    """Return the nodes that are removed now within the parallelism, empty ones first."""
    budget = _Budget(options, deletions)
    by_group = _by_group(going, group_of)
    atomic = {group for group in by_group if is_atomic(groups.get(group))}
    batches: list[RemovalBatch] = []
    for group in sorted(atomic, key=lambda one: not any(n.is_empty for n in by_group[one])):
        nodes = tuple(by_group[group])
        drains = sum(not one.is_empty for one in nodes)
        if budget.allows(len(nodes), drains):
            budget.use(len(nodes), drains)
            budget.overdrawn = True
            batches.append(RemovalBatch(group, nodes, atomic=True))
    single = [one for one in going if group_of.get(one.node) not in atomic]
    chosen = _by_group(_single(single, budget), group_of)
    return [*batches, *(RemovalBatch(group, tuple(nodes)) for group, nodes in chosen.items())]


def is_atomic(view: NodeGroupView | None) -> bool:
    """Whether a group has zero-or-max scaling."""
    return view is not None and view.options.zero_or_max_node_scaling


def _single(going: Iterable[NodeToBeRemoved], budget: _Budget) -> list[NodeToBeRemoved]:
    chosen: list[NodeToBeRemoved] = []
    for one in sorted(going, key=lambda one: not one.is_empty):
        drains = int(not one.is_empty)
        if budget.parallel >= 1 and drains <= budget.drains:
            budget.use(1, drains)
            chosen.append(one)
    return chosen


def _by_group(
    going: Iterable[NodeToBeRemoved], group_of: Mapping[str, str]
) -> dict[str, list[NodeToBeRemoved]]:
    found: dict[str, list[NodeToBeRemoved]] = {}
    for one in going:
        group = group_of.get(one.node)
        if group is not None:
            found.setdefault(group, []).append(one)
    return found


_Split = tuple[list[NodeToBeRemoved], list[UnremovableNode]]


def removable_now(
    removable: Iterable[NodeToBeRemoved],
    unneeded: Mapping[str, datetime],
    cluster_view: ClusterView,
    deletions: Deletions,
    gpu_label: str = "",
) -> _Split:
    """Return the nodes that may be removed now, and why the others may not."""
    limits = _RemovalLimits(cluster_view, unneeded, deletions, gpu_label)
    removable_nodes: list[NodeToBeRemoved] = []
    unremovable: list[UnremovableNode] = []
    for one in sorted(removable, key=lambda one: (not one.is_empty, unneeded[one.node], one.node)):
        reason = limits.check(one)
        if reason is None:
            removable_nodes.append(one)
        else:
            unremovable.append(reason)
    whole, parts = _without_partial_groups(removable_nodes, cluster_view)
    ended, running = _without_running(whole)
    return sorted(ended, key=lambda one: (not one.is_empty, one.risky)), [
        *unremovable,
        *parts,
        *running,
    ]


class _RemovalLimits:
    """Checks unneeded times and the minimum of groups and cluster, node by node."""

    def __init__(
        self,
        cluster_view: ClusterView,
        unneeded: Mapping[str, datetime],
        deletions: Deletions,
        gpu_label: str,
    ) -> None:
        self._cluster_view = cluster_view
        self._unneeded = unneeded
        self._gpu_label = gpu_label
        leaving = deletions.by_group()
        self._sizes = {
            name: view.target - leaving[name] for name, view in cluster_view.groups.items()
        }
        self._totals = [
            total for total in read_resource_limits(cluster_view.options) if total.least
        ]
        self._sums = resource_totals(cluster_view.snapshot, self._totals)

    def check(self, one: NodeToBeRemoved) -> UnremovableNode | None:
        """Return why a node may not be removed yet; None if it is counted as removed."""
        node = self._cluster_view.snapshot.cluster.node_named(one.node)
        view = self._cluster_view.groups.get(self._cluster_view.group_of.get(one.node, ""))
        if node is None or view is None:
            return UnremovableNode(one.node, UnremovableReason.NOT_AUTOSCALED)
        if is_disabled(node):
            return UnremovableNode(one.node, UnremovableReason.SCALE_DOWN_DISABLED_ANNOTATION)
        return self._not_long_enough(node, view) or self._below_minimum(node, view)

    def _not_long_enough(self, node: Node, view: NodeGroupView) -> UnremovableNode | None:
        ready = is_ready(node, self._cluster_view.options, self._gpu_label)
        options = view.options
        needed = options.scale_down_unneeded_time if ready else options.scale_down_unready_time
        waited = (self._cluster_view.now - self._unneeded[node.name]).total_seconds()
        if not needed or waited > needed:
            return None
        reason = (
            UnremovableReason.NOT_UNNEEDED_LONG_ENOUGH
            if ready
            else UnremovableReason.NOT_UNREADY_LONG_ENOUGH
        )
        return UnremovableNode(node.name, reason, detail=f"for {waited:.0f}s of {needed:.0f}s")

    def _below_minimum(self, node: Node, view: NodeGroupView) -> UnremovableNode | None:
        if self._sizes[view.id] <= view.group.min_size:
            return at_minimum(node.name, view)
        for total in self._totals:
            if self._sums[total.name] - total.of(node) < total.least:
                reason = UnremovableReason.MINIMAL_RESOURCE_LIMIT_EXCEEDED
                return UnremovableNode(node.name, reason, detail=f"{total.name} of the cluster")
        self._sizes[view.id] -= 1
        for total in self._totals:
            self._sums[total.name] -= total.of(node)
        return None


def at_minimum(node: str, view: NodeGroupView) -> UnremovableNode:
    """Return a node as unremovable because of its group's minimum size."""
    detail = f"group {view.id} has target size {view.target}, minimum {view.group.min_size}"
    return UnremovableNode(node, UnremovableReason.NODE_GROUP_MIN_SIZE_REACHED, detail=detail)


def _without_partial_groups(
    removable_nodes: list[NodeToBeRemoved], cluster_view: ClusterView
) -> _Split:
    """Split off nodes of zero-or-max groups that cannot be removed completely."""
    by_group: dict[str, int] = {}
    for one in removable_nodes:
        group = cluster_view.group_of[one.node]
        by_group[group] = by_group.get(group, 0) + 1
    partly = {
        group
        for group, count in by_group.items()
        if is_atomic(cluster_view.groups[group])
        and count not in {cluster_view.groups[group].target, len(cluster_view.groups[group].nodes)}
    }
    failed = UnremovableReason.ATOMIC_SCALE_DOWN_FAILED
    kept = [one for one in removable_nodes if cluster_view.group_of[one.node] in partly]
    return (
        [one for one in removable_nodes if cluster_view.group_of[one.node] not in partly],
        [
            UnremovableNode(one.node, failed, detail="its group is removed as a whole")
            for one in kept
        ],
    )


def _without_running(removable_nodes: list[NodeToBeRemoved]) -> _Split:
    """Split off nodes with on-completion pods that are still running."""
    reason = UnremovableReason.BLOCKED_BY_ON_COMPLETION_POD
    running = [one for one in removable_nodes if one.on_completion]
    return (
        [one for one in removable_nodes if not one.on_completion],
        [UnremovableNode(one.node, reason, detail=one.on_completion[0].key) for one in running],
    )
