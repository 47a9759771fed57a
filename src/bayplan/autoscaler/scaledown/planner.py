"""The scale-down planner: which nodes are unneeded, since when, and which are removed now.

1. Eligible nodes are found: in a group, underutilized, not being deleted.
2. Their removal is simulated one after the other in a fork: their pods must fit other nodes, by
   every filter and with attach limits, and budgets must allow it. Nodes that were unneeded before
   come first, then those with the lowest utilization, including volumes.
3. A node that could be removed is unneeded, since now or since it was first found so; one that
   could not is not simulated again for --unremovable-node-recheck-timeout.
4. Nodes that have been unneeded for long enough are removed, within the minimum sizes of groups and
   the cluster's resource limits.

Only unneeded and recently unremovable nodes are kept from one loop to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.scaledown.drain import BudgetIndexCache, Controllers, DrainContext
from bayplan.autoscaler.scaledown.eligibility import (
    EligibilityChecker,
    NodeEligibility,
    Utilization,
)
from bayplan.autoscaler.scaledown.reasons import UnremovableNode, UnremovableReason
from bayplan.autoscaler.scaledown.removable import Deletions, at_minimum, removable_now
from bayplan.autoscaler.scaledown.simulator import (
    Destinations,
    NodeToBeRemoved,
    RemovalSimulator,
    count_nominated,
)
from bayplan.kube.pods import Pod

NO_DELETIONS = Deletions()
Order = Callable[[Mapping[str, NodeEligibility], Iterable[str]], list[str]]
"""Sorts candidates in the order in which they are simulated."""


@dataclass(frozen=True, slots=True)
class ScaleDownContext:
    """Inputs of the planner besides the cluster view."""

    controllers: Controllers
    deletions: Deletions = NO_DELETIONS
    fits: Mapping[str, str] = field(default_factory=dict)
    """Pending pods that fit an existing node, which they will use."""
    skipped_groups: Mapping[str, str] = field(default_factory=dict)
    """Groups that are not scaled down now, and why."""
    expendable: Collection[str] = ()
    """The keys of expendable pods, which are ignored."""


@dataclass(frozen=True, slots=True)
class ScaleDownPlan:
    """The outcome for every node."""

    to_remove: tuple[NodeToBeRemoved, ...] = ()
    """The nodes that may be removed now; empty ones first, risky ones last."""
    removable: tuple[NodeToBeRemoved, ...] = ()
    """All unneeded nodes, in the order of the simulation."""
    unneeded: Mapping[str, datetime] = field(default_factory=dict)
    """Unneeded nodes, and since when."""
    unremovable: tuple[UnremovableNode, ...] = ()
    """All others, and unneeded nodes that may not be removed yet, with their reasons."""
    utilization: Mapping[str, Utilization] = field(default_factory=dict)


def least_used_first(eligibility: Mapping[str, NodeEligibility], names: Iterable[str]) -> list[str]:
    """Sort by utilization of any resource, including volumes; then by name."""

    def share(name: str) -> float:
        used = eligibility[name].used
        return 0.0 if used is None else used.overall

    return sorted(names, key=lambda name: (share(name), name))


class Planner:
    """Plans scale-down, and remembers unneeded and recently unremovable nodes."""

    def __init__(
        self,
        gpu_label: str = "",
        *,
        order: Order = least_used_first,
        monotonic: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._gpu_label = gpu_label
        self._order = order
        self._monotonic = monotonic
        self._eligibility = EligibilityChecker(gpu_label)
        self._budgets = BudgetIndexCache()
        self._unneeded: dict[str, datetime] = {}
        self._recent: dict[str, tuple[datetime, UnremovableNode]] = {}

    def forget(self) -> None:
        """Count every node as needed again, since the cluster is unhealthy."""
        self._unneeded.clear()

    def plan(self, cluster_view: ClusterView, inputs: ScaleDownContext) -> ScaleDownPlan:
        """Return the outcome for every node; the snapshot is left unchanged."""
        self._forget_deleted(cluster_view)
        with cluster_view.snapshot.fork():
            for key in inputs.expendable:
                cluster_view.snapshot.delete(Pod, key)
            count_nominated(cluster_view.snapshot)
            _count_pending(cluster_view, inputs.fits)
            eligibility = self._eligibility.of(cluster_view)
            candidates, unremovable = self._candidates(cluster_view, inputs, eligibility)
            removable, failed = self._simulate(cluster_view, inputs, eligibility, candidates)
        self._remember(cluster_view, removable, failed)
        to_remove, not_yet = removable_now(
            removable, self._unneeded, cluster_view, inputs.deletions, self._gpu_label
        )
        used = {name: one.used for name, one in eligibility.items() if one.used is not None}
        every = (*unremovable, *failed, *not_yet)
        return ScaleDownPlan(tuple(to_remove), tuple(removable), dict(self._unneeded), every, used)

    def _forget_deleted(self, cluster_view: ClusterView) -> None:
        there, now = cluster_view.snapshot.cluster.slots.by_name, cluster_view.now
        recent = self._recent
        self._recent = {k: one for k, one in recent.items() if k in there and one[0] > now}
        self._unneeded = {k: since for k, since in self._unneeded.items() if k in there}

    def _candidates(
        self,
        cluster_view: ClusterView,
        inputs: ScaleDownContext,
        eligibility: Mapping[str, NodeEligibility],
    ) -> tuple[list[str], list[UnremovableNode]]:
        """Return the candidates in order, and the unremovable nodes."""
        not_started = _not_started(cluster_view)
        found: list[str] = []
        unremovable: list[UnremovableNode] = []
        for name, one in eligibility.items():
            why = one.unremovable or self._skip_reason(name, cluster_view, inputs, not_started)
            if why is None:
                found.append(name)
            else:
                unremovable.append(why)
        ordered = self._order(eligibility, found)
        # The sort is stable.
        return sorted(ordered, key=lambda name: name not in self._unneeded), unremovable

    def _skip_reason(
        self,
        name: str,
        cluster_view: ClusterView,
        inputs: ScaleDownContext,
        not_started: frozenset[str],
    ) -> UnremovableNode | None:
        """Return why an eligible node is not a candidate now; None if it is."""
        view = cluster_view.groups[cluster_view.group_of[name]]
        if name in inputs.deletions:
            return UnremovableNode(name, UnremovableReason.CURRENTLY_BEING_DELETED)
        if name in not_started:
            return _other(name, "the node has not started yet")
        if view.id in inputs.skipped_groups:
            return _other(name, inputs.skipped_groups[view.id])
        if view.target <= view.group.min_size:
            return at_minimum(name, view)
        return self._recent[name][1] if name in self._recent else None

    def _simulate(
        self,
        cluster_view: ClusterView,
        inputs: ScaleDownContext,
        names: Iterable[str],
        candidates: list[str],
    ) -> tuple[list[NodeToBeRemoved], list[UnremovableNode]]:
        """Simulate the removal of candidates one after the other, within the limits."""
        if not candidates:
            return [], []
        simulator = self._simulator(cluster_view, inputs, names)
        removable: list[NodeToBeRemoved] = []
        failed: list[UnremovableNode] = []
        ends = self._monotonic() + cluster_view.options.scale_down_simulation_timeout
        most = self._max_unneeded(cluster_view)
        for number, name in enumerate(candidates):
            if len(removable) >= most or self._monotonic() > ends:
                failed += [_other(one, "not simulated in this loop") for one in candidates[number:]]
                break
            outcome = simulator.simulate_removal(name)
            if isinstance(outcome, NodeToBeRemoved):
                removable.append(outcome)
            else:
                failed.append(outcome)
        return removable, failed

    def _simulator(
        self, cluster_view: ClusterView, inputs: ScaleDownContext, names: Iterable[str]
    ) -> RemovalSimulator:
        """Return the simulator, with the pods of nodes that are being drained already moved."""
        budgets = self._budgets.remaining(cluster_view.snapshot)
        drain_context = DrainContext(
            cluster_view.now, cluster_view.options, budgets, inputs.controllers
        )
        not_started = _not_started(cluster_view)
        there = [name for name in names if name not in inputs.deletions and name not in not_started]
        simulator = RemovalSimulator(
            cluster_view.snapshot, drain_context, Destinations(cluster_view.snapshot, there)
        )
        for name in inputs.deletions.drained:
            simulator.move_drained_pods(name)
        return simulator

    def _max_unneeded(self, cluster_view: ClusterView) -> int:
        """Return how many unneeded nodes are enough: what could be removed in the unneeded time."""
        options = cluster_view.options
        parallelism = options.max_scale_down_parallelism
        loops = int(max(options.scale_down_unneeded_time / options.scan_interval, 1))
        return min(len(self._unneeded) + 2 * parallelism, parallelism * loops + parallelism)

    def _remember(
        self,
        cluster_view: ClusterView,
        removable: Iterable[NodeToBeRemoved],
        failed: Iterable[UnremovableNode],
    ) -> None:
        self._unneeded = {
            one.node: self._unneeded.get(one.node, cluster_view.now) for one in removable
        }
        until = cluster_view.now + timedelta(
            seconds=cluster_view.options.unremovable_node_recheck_timeout
        )
        for one in failed:
            if one.reason is not UnremovableReason.NOT_UNNEEDED_OTHER_REASON:
                self._recent[one.node] = (until, _recently(one))


def _recently(one: UnremovableNode) -> UnremovableNode:
    """Return the node as recently unremovable, with its reason as detail."""
    detail = f"{one.reason.value}, {one.detail}" if one.detail else one.reason.value
    return replace(one, reason=UnremovableReason.RECENTLY_UNREMOVABLE, detail=detail)


def _not_started(cluster_view: ClusterView) -> frozenset[str]:
    """Return the registered upcoming nodes."""
    return frozenset(name for one in cluster_view.upcoming.values() for name in one.nodes)


def _count_pending(cluster_view: ClusterView, fits: Mapping[str, str]) -> None:
    """Count pending pods on the nodes that they fit."""
    cluster = cluster_view.snapshot.cluster
    for key, node in fits.items():
        record = cluster.pods.by_key.get(key)
        if record is not None and not record.node and node in cluster.slots.by_name:
            cluster_view.snapshot.move(key, node)


def _other(name: str, detail: str) -> UnremovableNode:
    return UnremovableNode(name, UnremovableReason.NOT_UNNEEDED_OTHER_REASON, detail=detail)
