"""The scale-down part of a loop: plan, wait if in cooldown, act, report.

Nothing is removed in a loop that scales up, nor while the cluster is in no state to tell which
nodes are needed; then every node counts as needed, and its time starts anew.
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
from bayplan.autoscaler.plan import Removal, Stays
from bayplan.autoscaler.scaledown.drain import (
    BudgetIndexCache,
    Controllers,
    DrainContext,
    Expendables,
)
from bayplan.autoscaler.scaledown.planner import Planner, ScaleDownContext, ScaleDownPlan
from bayplan.autoscaler.scaledown.reasons import Unremovable, UnremovableReason
from bayplan.autoscaler.scaledown.release import Activity, Batch, Cooldowns, crop
from bayplan.autoscaler.scaledown.simulator import Removable
from bayplan.client import Client
from bayplan.nodegroups import NodeRef, Provider

LATER = UnremovableReason.NOT_UNNEEDED_OTHER_REASON.value


@dataclass(frozen=True, slots=True)
class NodeRemovalResult:
    """What a loop gives back, and why the other nodes stay."""

    removals: tuple[Removal, ...] = ()
    stays: tuple[Stays, ...] = ()
    candidates: Mapping[str, int] = field(default_factory=dict)
    """By group, how many nodes are not needed."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeRemovalContext:
    """What is needed to give nodes back."""

    client: Client
    provider: Provider
    controllers: Controllers
    options: AutoscalerOptions
    recorder: AutoscalerEvents
    metrics: ScaleDownMetrics


async def start_node_removal(given: NodeRemovalContext, *, acts: bool = True) -> NodeRemoval:
    """Everything that gives nodes back, put together; in a dry run the cloud only shows it."""
    cooldowns, snapshot = Cooldowns(), given.controllers.snapshot
    budgets = BudgetIndexCache()

    def scene() -> DrainContext:
        now = given.client.clock.now()
        return DrainContext(now, given.options, budgets.remaining(snapshot), given.controllers)

    context = ActuatorContext(
        client=given.client,
        provider=given.provider,
        snapshot=snapshot,
        options=given.options,
        recorder=given.recorder,
        metrics=given.metrics,
        cooldowns=cooldowns,
        scene=scene,
    )
    label = await gpu_label(given.provider)
    return NodeRemoval(
        planner=Planner(label, monotonic=given.client.clock.monotonic),
        actuator=Actuator(context),
        taint_cleaner=TaintCleaner(given.client),
        cooldowns=cooldowns,
        controllers=given.controllers,
        expendables=Expendables(given.options.expendable_pods_priority_cutoff),
        metrics=given.metrics,
        shows=None if acts else given.provider,
    )


@dataclass(slots=True)
class NodeRemoval:
    """Gives nodes back, loop by loop."""

    planner: Planner
    actuator: Actuator
    taint_cleaner: TaintCleaner
    cooldowns: Cooldowns
    controllers: Controllers
    expendables: Expendables
    metrics: ScaleDownMetrics
    shows: Provider | None = None
    """In a dry run, the cloud that shows what would be given back; nothing else is done then."""
    _told_before: dict[str, tuple[Unremovable, Stays]] = field(default_factory=dict)
    """What was told of nodes that stay; most of it is the same from loop to loop."""

    async def loop(self, cluster_view: ClusterView, fits: Mapping[str, str]) -> NodeRemovalResult:
        """One loop that buys nothing; `fits` are waiting pods that nodes have room for."""
        if self.shows is None:
            await self.taint_cleaner.clean(cluster_view, self.actuator.deletions())
        if not cluster_view.options.scale_down_enabled:
            return NodeRemovalResult()
        plan = self.planner.plan(cluster_view, self._circumstances(cluster_view, fits))
        rest = self.cooldowns.everywhere(cluster_view.now, cluster_view.options)
        reasons = (one.reason.value for one in plan.stays)
        self.metrics.show(len(plan.unneeded), reasons, cooldown=bool(rest))
        batches = [] if rest else self._batches(plan, cluster_view)
        started = await self._start(batches, cluster_view)
        if self.shows is None:
            await self.taint_cleaner.soften(cluster_view, plan.unneeded)
        stays = tuple(self._stays(plan, started, rest or "its turn has not come"))
        return _told(plan, started, cluster_view, stays)

    def _stays(
        self, plan: ScaleDownPlan, started: Collection[str], why_later: str
    ) -> Iterator[Stays]:
        before, now = self._told_before, dict[str, tuple[Unremovable, Stays]]()
        for one in plan.stays:
            known = before.get(one.node)
            if known is None or known[0] is not one:
                known = (one, _stay(one))
            now[one.node] = known
            yield known[1]
        self._told_before = now
        for name in (one.node for one in plan.go):
            if name not in started:
                yield Stays(name, LATER, detail=why_later)

    async def _start(self, batches: list[Batch], cluster_view: ClusterView) -> list[str]:
        """The nodes that go now; in a dry run, those that would."""
        if self.shows is None:
            return await self.actuator.start(batches)
        for batch in batches:
            found = [cluster_view.snapshot.cluster.node_named(one.node) for one in batch.nodes]
            refs = [NodeRef.of(node) for node in found if node is not None]
            await self.shows.delete_nodes(batch.group, refs)
        return [one.node for batch in batches for one in batch.nodes]

    def bought(self, groups: Iterable[str], cluster_view: ClusterView) -> None:
        """Nodes were bought: nothing is given back for a while."""
        for group in groups:
            self.cooldowns.note(Activity.ADD, group, cluster_view.now)

    def forget(self) -> None:
        """Take every node for needed: the cluster is in no state to tell."""
        self.planner.forget()

    def _circumstances(
        self, cluster_view: ClusterView, fits: Mapping[str, str]
    ) -> ScaleDownContext:
        # How many nodes a silent group has, and so whether it can spare one, nobody knows.
        resting = {name: why for name, why in cluster_view.closed.items() if why == NOT_ANSWERING}
        for name in cluster_view.groups:
            why = self.cooldowns.of_group(name, cluster_view.now, cluster_view.options)
            if why:
                resting[name] = why
        deletions = self.actuator.deletions()
        return ScaleDownContext(self.controllers, deletions, fits, resting, self.expendables.keys)

    def _batches(self, plan: ScaleDownPlan, cluster_view: ClusterView) -> list[Batch]:
        deletions = self.actuator.deletions()
        return crop(
            plan.go, cluster_view.group_of, cluster_view.groups, cluster_view.options, deletions
        )


def _stay(one: Unremovable) -> Stays:
    return Stays(one.node, one.reason.value, one.blocking.pod if one.blocking else "", one.detail)


def _told(
    plan: ScaleDownPlan,
    started: Collection[str],
    cluster_view: ClusterView,
    stays: tuple[Stays, ...],
) -> NodeRemovalResult:
    removals = [_removal(one, cluster_view) for one in plan.go if one.node in started]
    candidates: dict[str, int] = {}
    for name in plan.unneeded:
        group = cluster_view.group_of.get(name, "")
        candidates[group] = candidates.get(group, 0) + 1
    return NodeRemovalResult(tuple(removals), stays, candidates)


def _removal(one: Removable, cluster_view: ClusterView) -> Removal:
    group = cluster_view.group_of[one.node]
    moved = tuple((pod.key, node) for pod, node in one.moved)
    reason = "empty" if one.is_empty else "underutilized"
    return Removal(one.node, group, reason, moved, cluster_view.groups[group].price)
