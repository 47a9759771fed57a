"""Of nodes that are not needed, those that go now: when, how many, and how many at once.

They must have been unneeded for long enough, be above the minimum of their group and of the
cluster, and be whole where a group goes as a whole. After a scale-up, a deletion and a failure
nothing goes for a while: in the whole cluster, or, with `scale-down-delay-type-local`, in the group
of which it was. So many go at once in all, and so many that must be drained.

Nodes of a group that is only ever empty or full go together or not at all. One such group may go
although it is more than is left, since otherwise a large one would never have its turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from bayplan.autoscaler.clusterstate.readiness import is_ready
from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.estimate.limits import read_resource_limits, sums
from bayplan.autoscaler.options import AutoscalerOptions, ScaleDownOptions
from bayplan.autoscaler.scaledown.eligibility import is_disabled
from bayplan.autoscaler.scaledown.reasons import Unremovable, UnremovableReason
from bayplan.autoscaler.scaledown.simulator import Removable
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.kube.nodes import Node


@dataclass(frozen=True, slots=True)
class Deletions:
    """Nodes that are being given back, each with its group."""

    empty: Mapping[str, str] = field(default_factory=dict)
    drained: Mapping[str, str] = field(default_factory=dict)
    """Those whose pods have to move first."""

    def __contains__(self, node: object) -> bool:
        return node in self.empty or node in self.drained

    def __len__(self) -> int:
        return len(self.empty) + len(self.drained)

    def by_group(self) -> Counter[str]:
        """How many of each group."""
        return Counter([*self.empty.values(), *self.drained.values()])


EVERYWHERE = ""


class Activity(Enum):
    """What is waited after."""

    ADD = "a scale-up"
    DELETE = "a deletion"
    FAILURE = "a failed deletion"


@dataclass(slots=True)
class Cooldowns:
    """When each last happened, by group and in all."""

    _last: dict[tuple[Activity, str], datetime] = field(default_factory=dict)

    def note(self, activity: Activity, group: str, now: datetime) -> None:
        """It has happened in a group."""
        self._last[activity, group] = self._last[activity, EVERYWHERE] = now

    def everywhere(self, now: datetime, options: AutoscalerOptions) -> str:
        """Why nothing is given back anywhere; empty if that is not so."""
        return "" if options.scale_down_delay_type_local else self._why(EVERYWHERE, now, options)

    def of_group(self, group: str, now: datetime, options: AutoscalerOptions) -> str:
        """Why nothing is given back of a group; empty if that is not so."""
        return self._why(group, now, options) if options.scale_down_delay_type_local else ""

    def _why(self, group: str, now: datetime, options: AutoscalerOptions) -> str:
        for activity, seconds in _delays(options).items():
            last = self._last.get((activity, group))
            if last is not None and last + timedelta(seconds=seconds) > now:
                return f"{activity.value} was less than {seconds:g}s ago"
        return ""


def _delays(options: AutoscalerOptions) -> dict[Activity, float]:
    return {
        Activity.ADD: options.scale_down_delay_after_add,
        Activity.FAILURE: options.scale_down_delay_after_failure,
        Activity.DELETE: options.scale_down_delay_after_delete or options.scan_interval,
    }


@dataclass(frozen=True, slots=True)
class Batch:
    """Nodes of one group that go now."""

    group: str
    nodes: tuple[Removable, ...]
    together: bool = False
    """Whether all of them must go, or none."""


class _Budget:
    """What is left of both."""

    def __init__(self, options: ScaleDownOptions, deletions: Deletions) -> None:
        self.parallel = options.max_scale_down_parallelism - len(deletions)
        self.drains = options.max_drain_parallelism - len(deletions.drained)
        self.overdrawn = False

    def admits(self, nodes: int, drains: int) -> bool:
        """Whether so many may go together."""
        if nodes <= self.parallel and drains <= self.drains:
            return True
        return not self.overdrawn and self.parallel > 0 and (not drains or self.drains > 0)

    def take(self, nodes: int, drains: int) -> None:
        """So many go."""
        self.parallel -= nodes
        self.drains -= drains


def crop(
    going: Sequence[Removable],
    group_of: Mapping[str, str],
    groups: Mapping[str, NodeGroupView],
    options: ScaleDownOptions,
    deletions: Deletions,
) -> list[Batch]:
    """Of nodes that may go, those that go now; empty ones before those that must be drained."""
    budget = _Budget(options, deletions)
    by_group = _by_group(going, group_of)
    atomic = {group for group in by_group if is_atomic(groups.get(group))}
    batches: list[Batch] = []
    for group in sorted(atomic, key=lambda one: not any(n.is_empty for n in by_group[one])):
        nodes = tuple(by_group[group])
        drains = sum(not one.is_empty for one in nodes)
        if budget.admits(len(nodes), drains):
            budget.take(len(nodes), drains)
            budget.overdrawn = True
            batches.append(Batch(group, nodes, together=True))
    single = [one for one in going if group_of.get(one.node) not in atomic]
    chosen = _by_group(_single(single, budget), group_of)
    return [*batches, *(Batch(group, tuple(nodes)) for group, nodes in chosen.items())]


def is_atomic(view: NodeGroupView | None) -> bool:
    """Whether a group is only ever empty or full."""
    return view is not None and view.options.zero_or_max_node_scaling


def _single(going: Iterable[Removable], budget: _Budget) -> list[Removable]:
    chosen: list[Removable] = []
    for one in sorted(going, key=lambda one: not one.is_empty):
        drains = int(not one.is_empty)
        if budget.parallel >= 1 and drains <= budget.drains:
            budget.take(1, drains)
            chosen.append(one)
    return chosen


def _by_group(
    going: Iterable[Removable], group_of: Mapping[str, str]
) -> dict[str, list[Removable]]:
    found: dict[str, list[Removable]] = {}
    for one in going:
        group = group_of.get(one.node)
        if group is not None:
            found.setdefault(group, []).append(one)
    return found


Released = tuple[list[Removable], list[Unremovable]]


def release(
    removable: Iterable[Removable],
    unneeded: Mapping[str, datetime],
    cluster_view: ClusterView,
    deletions: Deletions,
    gpu_label: str = "",
) -> Released:
    """Those that may go now, and why the others may not yet."""
    gate = _Gate(cluster_view, unneeded, deletions, gpu_label)
    go: list[Removable] = []
    stay: list[Unremovable] = []
    for one in sorted(removable, key=lambda one: (not one.is_empty, unneeded[one.node], one.node)):
        reason = gate.closed_to(one)
        if reason is None:
            go.append(one)
        else:
            stay.append(reason)
    whole, parts = _only_whole(go, cluster_view)
    ended, running = _without_running(whole)
    return sorted(ended, key=lambda one: (not one.is_empty, one.risky)), [*stay, *parts, *running]


class _Gate:
    """Lets nodes go as long as groups and cluster keep their least."""

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
        self._sums = sums(cluster_view.snapshot, self._totals)

    def closed_to(self, one: Removable) -> Unremovable | None:
        """Why a node may not go yet; None if it goes."""
        node = self._cluster_view.snapshot.cluster.node_named(one.node)
        view = self._cluster_view.groups.get(self._cluster_view.group_of.get(one.node, ""))
        if node is None or view is None:
            return Unremovable(one.node, UnremovableReason.NOT_AUTOSCALED)
        if is_disabled(node):
            return Unremovable(one.node, UnremovableReason.SCALE_DOWN_DISABLED_ANNOTATION)
        return self._too_early(node, view) or self._too_few(node, view)

    def _too_early(self, node: Node, view: NodeGroupView) -> Unremovable | None:
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
        return Unremovable(node.name, reason, detail=f"for {waited:.0f}s of {needed:.0f}s")

    def _too_few(self, node: Node, view: NodeGroupView) -> Unremovable | None:
        if self._sizes[view.id] <= view.group.min_size:
            return at_minimum(node.name, view)
        for total in self._totals:
            if self._sums[total.name] - total.of(node) < total.least:
                reason = UnremovableReason.MINIMAL_RESOURCE_LIMIT_EXCEEDED
                return Unremovable(node.name, reason, detail=f"{total.name} of the cluster")
        self._sizes[view.id] -= 1
        for total in self._totals:
            self._sums[total.name] -= total.of(node)
        return None


def at_minimum(node: str, view: NodeGroupView) -> Unremovable:
    """A node whose group has no more than it must have."""
    detail = f"group {view.id} has {view.target}, and must have {view.group.min_size}"
    return Unremovable(node, UnremovableReason.NODE_GROUP_MIN_SIZE_REACHED, detail=detail)


def _only_whole(go: list[Removable], cluster_view: ClusterView) -> Released:
    """Without nodes of groups that go as a whole, and cannot."""
    by_group: dict[str, int] = {}
    for one in go:
        group = cluster_view.group_of[one.node]
        by_group[group] = by_group.get(group, 0) + 1
    partly = {
        group
        for group, count in by_group.items()
        if is_atomic(cluster_view.groups[group])
        and count not in {cluster_view.groups[group].target, len(cluster_view.groups[group].nodes)}
    }
    failed = UnremovableReason.ATOMIC_SCALE_DOWN_FAILED
    kept = [one for one in go if cluster_view.group_of[one.node] in partly]
    return (
        [one for one in go if cluster_view.group_of[one.node] not in partly],
        [Unremovable(one.node, failed, detail="its group goes as a whole") for one in kept],
    )


def _without_running(go: list[Removable]) -> Released:
    """Without nodes that wait for a pod to end by itself."""
    reason = UnremovableReason.BLOCKED_BY_ON_COMPLETION_POD
    running = [one for one in go if one.on_completion]
    return (
        [one for one in go if not one.on_completion],
        [Unremovable(one.node, reason, detail=one.on_completion[0].key) for one in running],
    )
