"""The scale-down part of a loop: plan, check cooldowns, remove nodes, report.

There is no scale-down in a loop that scales up, nor while the cluster is unhealthy; then every node
counts as needed, and its unneeded time starts again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bayplan.autoscaler.actuation.actuator import Actuator, ActuatorContext
from bayplan.autoscaler.actuation.node_taints import TaintCleaner
from bayplan.autoscaler.cloudstate.reader import gpu_label
from bayplan.autoscaler.clusterview import NOT_ANSWERING, ClusterView
from bayplan.autoscaler.events import AutoscalerEvents
from bayplan.autoscaler.metrics import ScaleDownMetrics
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.plan import Removal, UnremovableNodeInfo
from bayplan.autoscaler.scaledown.drain import (
    BudgetIndexCache,
    Controllers,
    DrainContext,
    Expendables,
)
from bayplan.autoscaler.scaledown.planner import Planner, ScaleDownContext, ScaleDownPlan
from bayplan.autoscaler.scaledown.reasons import UnremovableNode, UnremovableReason
from bayplan.autoscaler.scaledown.removable import (
    Cooldowns,
    CooldownTrigger,
    RemovalBatch,
    crop_nodes,
)
from bayplan.autoscaler.scaledown.simulator import NodeToBeRemoved
from bayplan.client import Client
from bayplan.nodegroups import NodeRef, Provider

LATER = UnremovableReason.NOT_UNNEEDED_OTHER_REASON.value


@dataclass(frozen=True, slots=True)
class NodeRemovalResult:
    """The nodes that a loop removes, and the unremovable ones."""

    removals: tuple[Removal, ...] = ()
    unremovable: tuple[UnremovableNodeInfo, ...] = ()
    candidates: Mapping[str, int] = field(default_factory=dict)
    """By group, the number of unneeded nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeRemovalContext:
    """The clients, options and recorders of node removal."""

    client: Client
    provider: Provider
    controllers: Controllers
    options: AutoscalerOptions
    recorder: AutoscalerEvents
    metrics: ScaleDownMetrics


async def start_node_removal(inputs: NodeRemovalContext, *, acts: bool = True) -> NodeRemoval:
    """Build the node removal; in a dry run (`acts` is False) nothing is removed."""
    cooldowns, snapshot = Cooldowns(), inputs.controllers.snapshot
    budgets = BudgetIndexCache()

    def drain_context() -> DrainContext:
        now = inputs.client.clock.now()
        return DrainContext(now, inputs.options, budgets.remaining(snapshot), inputs.controllers)

    context = ActuatorContext(
        client=inputs.client,
        provider=inputs.provider,
        snapshot=snapshot,
        options=inputs.options,
        recorder=inputs.recorder,
        metrics=inputs.metrics,
        cooldowns=cooldowns,
        drain_context=drain_context,
    )
    label = await gpu_label(inputs.provider)
    return NodeRemoval(
        planner=Planner(label, monotonic=inputs.client.clock.monotonic),
        actuator=Actuator(context),
        taint_cleaner=TaintCleaner(inputs.client),
        cooldowns=cooldowns,
        controllers=inputs.controllers,
        expendables=Expendables(inputs.options.expendable_pods_priority_cutoff),
        metrics=inputs.metrics,
        dry_run_provider=None if acts else inputs.provider,
    )


@dataclass(slots=True)
class NodeRemoval:
    """Scales down, loop by loop."""

    planner: Planner
    actuator: Actuator
    taint_cleaner: TaintCleaner
    cooldowns: Cooldowns
    controllers: Controllers
    expendables: Expendables
    metrics: ScaleDownMetrics
    dry_run_provider: Provider | None = None
    """In a dry run, the provider that shows what would be deleted."""
    _reported: dict[str, tuple[UnremovableNode, UnremovableNodeInfo]] = field(default_factory=dict)
    """Reported unremovable nodes; most are the same from loop to loop."""

    async def loop(self, cluster_view: ClusterView, fits: Mapping[str, str]) -> NodeRemovalResult:
        """Scale down in one loop; `fits` are pending pods that fit existing nodes."""
        if self.dry_run_provider is None:
            await self.taint_cleaner.clean(cluster_view, self.actuator.deletions())
        if not cluster_view.options.scale_down_enabled:
            return NodeRemovalResult()
        plan = self.planner.plan(cluster_view, self._scale_down_context(cluster_view, fits))
        cooldown = self.cooldowns.in_cluster(cluster_view.now, cluster_view.options)
        reasons = (one.reason.value for one in plan.unremovable)
        self.metrics.show(len(plan.unneeded), reasons, cooldown=bool(cooldown))
        batches = [] if cooldown else self._batches(plan, cluster_view)
        started = await self._start(batches, cluster_view)
        if self.dry_run_provider is None:
            await self.taint_cleaner.update_soft_taints(cluster_view, plan.unneeded)
        unremovable = tuple(
            self._unremovable_nodes(plan, started, cooldown or "not removed in this loop")
        )
        return _result(plan, started, cluster_view, unremovable)

    def _unremovable_nodes(
        self, plan: ScaleDownPlan, started: Collection[str], reason: str
    ) -> Iterator[UnremovableNodeInfo]:
        before, now = self._reported, dict[str, tuple[UnremovableNode, UnremovableNodeInfo]]()
        for one in plan.unremovable:
            known = before.get(one.node)
            if known is None or known[0] is not one:
                known = (one, _unremovable_info(one))
            now[one.node] = known
            yield known[1]
        self._reported = now
        for name in (one.node for one in plan.to_remove):
            if name not in started:
                yield UnremovableNodeInfo(name, LATER, detail=reason)

    async def _start(self, batches: list[RemovalBatch], cluster_view: ClusterView) -> list[str]:
        """Start the removal; return the nodes that are removed, or would be in a dry run."""
        if self.dry_run_provider is None:
            return await self.actuator.start(batches)
        for batch in batches:
            found = [cluster_view.snapshot.cluster.node_named(one.node) for one in batch.nodes]
            refs = [NodeRef.of(node) for node in found if node is not None]
            await self.dry_run_provider.delete_nodes(batch.group, refs)
        return [one.node for batch in batches for one in batch.nodes]

    def note_scale_up(self, groups: Iterable[str], cluster_view: ClusterView) -> None:
        """Note a scale-up, which starts a cooldown."""
        for group in groups:
            self.cooldowns.record(CooldownTrigger.ADD, group, cluster_view.now)

    def forget(self) -> None:
        """Count every node as needed again, since the cluster is unhealthy."""
        self.planner.forget()

    def _scale_down_context(
        self, cluster_view: ClusterView, fits: Mapping[str, str]
    ) -> ScaleDownContext:
        # The size of a group that does not answer is unknown, and so whether it is at its minimum.
        skipped_groups = {
            name: why for name, why in cluster_view.skipped_groups.items() if why == NOT_ANSWERING
        }
        for name in cluster_view.groups:
            why = self.cooldowns.of_group(name, cluster_view.now, cluster_view.options)
            if why:
                skipped_groups[name] = why
        deletions = self.actuator.deletions()
        return ScaleDownContext(
            self.controllers, deletions, fits, skipped_groups, self.expendables.keys
        )

    def _batches(self, plan: ScaleDownPlan, cluster_view: ClusterView) -> list[RemovalBatch]:
        deletions = self.actuator.deletions()
        return crop_nodes(
            plan.to_remove,
            cluster_view.group_of,
            cluster_view.groups,
            cluster_view.options,
            deletions,
        )


def _unremovable_info(one: UnremovableNode) -> UnremovableNodeInfo:
    return UnremovableNodeInfo(
        one.node, one.reason.value, one.blocking.pod if one.blocking else "", one.detail
    )


def _result(
    plan: ScaleDownPlan,
    started: Collection[str],
    cluster_view: ClusterView,
    unremovable: tuple[UnremovableNodeInfo, ...],
) -> NodeRemovalResult:
    removals = [_removal(one, cluster_view) for one in plan.to_remove if one.node in started]
    candidates: dict[str, int] = {}
    for name in plan.unneeded:
        group = cluster_view.group_of.get(name, "")
        candidates[group] = candidates.get(group, 0) + 1
    return NodeRemovalResult(tuple(removals), unremovable, candidates)


def _removal(one: NodeToBeRemoved, cluster_view: ClusterView) -> Removal:
    group = cluster_view.group_of[one.node]
    moved = tuple((pod.key, node) for pod, node in one.moved)
    reason = "empty" if one.is_empty else "underutilized"
    return Removal(one.node, group, reason, moved, cluster_view.groups[group].price)
