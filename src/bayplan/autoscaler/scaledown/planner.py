"""Which nodes are not needed, since when, and which of them may go now: a decision, loop by loop.

1. Nodes are judged: in a group, used little, not on their way out.
2. Those that may go are taken away one after the other in a fork, each from what the ones before it
   left: its pods must find places, by every filter and with their volumes' limits, and budgets must
   allow it. Those that were not needed before come first, then those that are used least in every
   respect, volumes included.
3. Who could be taken away is not needed, since now or since it was first found so; who could not is
   not asked again for a while.
4. Of those, the ones that have been so for long enough, and that groups and cluster can spare, go.

Only what nodes were not needed, and could not go, is kept from one loop to the next.
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
from bayplan.autoscaler.scaledown.reasons import Unremovable, UnremovableReason
from bayplan.autoscaler.scaledown.release import Deletions, at_minimum, release
from bayplan.autoscaler.scaledown.simulator import (
    Destinations,
    Removable,
    RemovalSimulator,
    settle_nominated,
)
from bayplan.kube.pods import Pod

NO_DELETIONS = Deletions()
Order = Callable[[Mapping[str, NodeEligibility], Iterable[str]], list[str]]
"""In which order nodes are tried."""


@dataclass(frozen=True, slots=True)
class ScaleDownContext:
    """What a plan rests on beside the world."""

    controllers: Controllers
    deletions: Deletions = NO_DELETIONS
    fits: Mapping[str, str] = field(default_factory=dict)
    """Waiting pods that a node which is there has room for: they will be there."""
    resting: Mapping[str, str] = field(default_factory=dict)
    """Groups that nothing is given back of now, and why."""
    expendable: Collection[str] = ()
    """The keys of pods that are not seen at all."""


@dataclass(frozen=True, slots=True)
class ScaleDownPlan:
    """What becomes of every node."""

    go: tuple[Removable, ...] = ()
    """They may go now; empty ones first, and those last that strain budgets."""
    removable: tuple[Removable, ...] = ()
    """All that are not needed, in the order in which they were taken away."""
    unneeded: Mapping[str, datetime] = field(default_factory=dict)
    """Nodes that are not needed, and since when."""
    stays: tuple[Unremovable, ...] = ()
    """All others, and those that are not needed and may not go yet, with why."""
    utilization: Mapping[str, Utilization] = field(default_factory=dict)


def least_used_first(judged: Mapping[str, NodeEligibility], names: Iterable[str]) -> list[str]:
    """By what is used of a node in any respect, volumes included; then by name."""

    def share(name: str) -> float:
        used = judged[name].used
        return 0.0 if used is None else used.overall

    return sorted(names, key=lambda name: (share(name), name))


class Planner:
    """Plans, and remembers which nodes were not needed, and which could not go."""

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
        self._judgements = EligibilityChecker(gpu_label)
        self._budgets = BudgetIndexCache()
        self._unneeded: dict[str, datetime] = {}
        self._recent: dict[str, tuple[datetime, Unremovable]] = {}

    def forget(self) -> None:
        """Take every node for needed again: the cluster is in no state to tell."""
        self._unneeded.clear()

    def plan(self, cluster_view: ClusterView, given: ScaleDownContext) -> ScaleDownPlan:
        """What becomes of every node; the snapshot is left as it was."""
        self._forget_gone(cluster_view)
        with cluster_view.snapshot.fork():
            for key in given.expendable:
                cluster_view.snapshot.delete(Pod, key)
            settle_nominated(cluster_view.snapshot)
            _settle(cluster_view, given.fits)
            judged = self._judgements.of(cluster_view)
            candidates, stays = self._candidates(cluster_view, given, judged)
            removable, failed = self._try(cluster_view, given, judged, candidates)
        self._remember(cluster_view, removable, failed)
        go, waiting = release(
            removable, self._unneeded, cluster_view, given.deletions, self._gpu_label
        )
        used = {name: one.used for name, one in judged.items() if one.used is not None}
        every = (*stays, *failed, *waiting)
        return ScaleDownPlan(tuple(go), tuple(removable), dict(self._unneeded), every, used)

    def _forget_gone(self, cluster_view: ClusterView) -> None:
        there, now = cluster_view.snapshot.cluster.slots.by_name, cluster_view.now
        recent = self._recent
        self._recent = {k: one for k, one in recent.items() if k in there and one[0] > now}
        self._unneeded = {k: since for k, since in self._unneeded.items() if k in there}

    def _candidates(
        self,
        cluster_view: ClusterView,
        given: ScaleDownContext,
        judged: Mapping[str, NodeEligibility],
    ) -> tuple[list[str], list[Unremovable]]:
        """The nodes to try, in order, and why the others are not."""
        starting = _starting(cluster_view)
        found: list[str] = []
        stays: list[Unremovable] = []
        for name, one in judged.items():
            why = one.stays or self._not_now(name, cluster_view, given, starting)
            if why is None:
                found.append(name)
            else:
                stays.append(why)
        ordered = self._order(judged, found)
        # Sorting keeps the order of those that are alike.
        return sorted(ordered, key=lambda name: name not in self._unneeded), stays

    def _not_now(
        self,
        name: str,
        cluster_view: ClusterView,
        given: ScaleDownContext,
        starting: frozenset[str],
    ) -> Unremovable | None:
        """Why a node that could be tried is not tried now."""
        view = cluster_view.groups[cluster_view.group_of[name]]
        if name in given.deletions:
            return Unremovable(name, UnremovableReason.CURRENTLY_BEING_DELETED)
        if name in starting:
            return _other(name, "it is still starting")
        if view.id in given.resting:
            return _other(name, given.resting[view.id])
        if view.target <= view.group.min_size:
            return at_minimum(name, view)
        return self._recent[name][1] if name in self._recent else None

    def _try(
        self,
        cluster_view: ClusterView,
        given: ScaleDownContext,
        names: Iterable[str],
        candidates: list[str],
    ) -> tuple[list[Removable], list[Unremovable]]:
        """Take candidates away one after the other, as long as that makes sense."""
        if not candidates:
            return [], []
        removals = self._removals(cluster_view, given, names)
        removable: list[Removable] = []
        failed: list[Unremovable] = []
        ends = self._monotonic() + cluster_view.options.scale_down_simulation_timeout
        most = self._most(cluster_view)
        for number, name in enumerate(candidates):
            if len(removable) >= most or self._monotonic() > ends:
                failed += [_other(one, "it was not looked at") for one in candidates[number:]]
                break
            outcome = removals.take_away(name)
            if isinstance(outcome, Removable):
                removable.append(outcome)
            else:
                failed.append(outcome)
        return removable, failed

    def _removals(
        self, cluster_view: ClusterView, given: ScaleDownContext, names: Iterable[str]
    ) -> RemovalSimulator:
        """The cluster to take nodes away from: those that are being drained make room first."""
        budgets = self._budgets.remaining(cluster_view.snapshot)
        scene = DrainContext(cluster_view.now, cluster_view.options, budgets, given.controllers)
        starting = _starting(cluster_view)
        there = [name for name in names if name not in given.deletions and name not in starting]
        removals = RemovalSimulator(
            cluster_view.snapshot, scene, Destinations(cluster_view.snapshot, there)
        )
        for name in given.deletions.drained:
            removals.make_room_for(name)
        return removals

    def _most(self, cluster_view: ClusterView) -> int:
        """How many unneeded nodes are worth finding: what could be given back until then."""
        options = cluster_view.options
        at_once = options.max_scale_down_parallelism
        loops = int(max(options.scale_down_unneeded_time / options.scan_interval, 1))
        return min(len(self._unneeded) + 2 * at_once, at_once * loops + at_once)

    def _remember(
        self,
        cluster_view: ClusterView,
        removable: Iterable[Removable],
        failed: Iterable[Unremovable],
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


def _recently(one: Unremovable) -> Unremovable:
    """The same, as it is told until it is asked again."""
    detail = f"{one.reason.value}, {one.detail}" if one.detail else one.reason.value
    return replace(one, reason=UnremovableReason.RECENTLY_UNREMOVABLE, detail=detail)


def _starting(cluster_view: ClusterView) -> frozenset[str]:
    """Nodes that are there, and not ready for anything yet."""
    return frozenset(name for one in cluster_view.upcoming.values() for name in one.nodes)


def _settle(cluster_view: ClusterView, fits: Mapping[str, str]) -> None:
    """Count waiting pods on the nodes that have room for them."""
    cluster = cluster_view.snapshot.cluster
    for key, node in fits.items():
        record = cluster.pods.by_key.get(key)
        if record is not None and not record.node and node in cluster.slots.by_name:
            cluster_view.snapshot.move(key, node)


def _other(name: str, detail: str) -> Unremovable:
    return Unremovable(name, UnremovableReason.NOT_UNNEEDED_OTHER_REASON, detail=detail)
