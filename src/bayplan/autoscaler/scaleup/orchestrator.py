"""The scale-up decision: a pure function over the view of one loop.

1. Upcoming nodes are added to a fork. Pods whose claims have a selected node are placed there; then
   pods are placed on the upcoming nodes that were added for them.
2. The other pods are tried on all nodes, including upcoming ones. Pods that fit need no scale-up.
3. For the rest every group that may be scaled up is estimated, and the expander chooses.
4. The chosen nodes count as upcoming, and the remaining pods are tried again, until none is left or
   no group helps. So the next loop does not scale up again for the same pods.
5. For each pod that is left, the reasons are collected by group.
6. With --enforce-node-group-min-size, groups below their minimum size get the nodes that they lack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.estimate.limits import ScaleUpLimits, read_resource_limits, scale_up_limits
from bayplan.autoscaler.estimate.options import Expander, ExpanderRequest, NewNodes, NodeGroupOption
from bayplan.autoscaler.estimate.upcoming_nodes import (
    NO_PLANNED_PODS,
    PlannedPods,
    add_upcoming,
    apply_new_nodes,
    is_feasible,
    place_planned,
    place_selected,
)
from bayplan.autoscaler.plan import (
    ConsideredGroup,
    ExpanderNote,
    MixResult,
    NoScaleUpInfo,
    ScaleUp,
)
from bayplan.autoscaler.scaleup.balance import balance
from bayplan.autoscaler.scaleup.explanation import (
    PendingCause,
    cause_of,
    causes_before,
    explain_unschedulable,
)
from bayplan.autoscaler.scaleup.minimum_size import missing_to_minimum
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit.batches import PodEquivalenceGroup, fill_all, group_pods, options
from bayplan.fit.batches.fill import PodPlacement
from bayplan.fit.batches.groups import compares_nodes
from bayplan.fit.plugins.plugin import Cause

UPCOMING: PendingCause = (Cause.UPCOMING, "")
OTHER: PendingCause = (Cause.OTHER, "")
NO_HELP = "it would help no pod"
NOT_CHOSEN = "another group was chosen"


@dataclass(frozen=True, slots=True, eq=False)
class ScaleUpDecision:
    """The new nodes, and the outcome for every unschedulable pod."""

    new_nodes: tuple[NewNodes, ...] = ()
    fits: Mapping[str, str] = field(default_factory=dict)
    """Pods that fit an existing or upcoming node, by pod."""
    considered: tuple[ConsideredGroup, ...] = ()
    unschedulable: tuple[NoScaleUpInfo, ...] = ()
    causes: Mapping[PendingCause, int] = field(default_factory=dict)
    """The number of pending pods by cause."""
    notes: tuple[ExpanderNote, ...] = ()
    mixed: MixResult | None = None
    """The quality of the mix, if groups were mixed."""


def decide(
    cluster_view: ClusterView, expander: Expander, planned: PlannedPods = NO_PLANNED_PODS
) -> ScaleUpDecision:
    """Decide on a scale-up; the snapshot is left unchanged."""
    found = _decide_for_pods(cluster_view, expander, planned)
    if not cluster_view.options.enforce_node_group_min_size:
        return found
    more = missing_to_minimum(cluster_view, found.new_nodes)
    return replace(found, new_nodes=(*found.new_nodes, *more))


def _decide_for_pods(
    cluster_view: ClusterView, expander: Expander, planned: PlannedPods
) -> ScaleUpDecision:
    if not cluster_view.unschedulable_pods:
        return ScaleUpDecision()
    with cluster_view.snapshot.fork():
        coming = add_upcoming(cluster_view)
        groups = group_pods(cluster_view.snapshot, cluster_view.unschedulable_pods)
        selected, groups = place_selected(cluster_view.snapshot, groups)
        placed, left = place_planned(cluster_view.snapshot, groups, coming, planned)
        return _Orchestrator(cluster_view, expander, [*selected, *placed]).run(_non_empty(left))


class _Orchestrator:
    """The state of one decision, in a fork that the caller reverts."""

    def __init__(
        self, cluster_view: ClusterView, expander: Expander, placed: Iterable[PodPlacement]
    ) -> None:
        self._cluster_view = cluster_view
        self._snapshot = cluster_view.snapshot
        self._expander = expander
        self._existing = frozenset(cluster_view.snapshot.cluster.slots.by_name)
        self._fits: dict[str, str] = {}
        self._new_nodes: list[NewNodes] = []
        self._unapplied: list[NewNodes] = []
        """New nodes that are not in the snapshot, since they cannot affect the remaining pods."""
        self._considered: dict[str, ConsideredGroup] = {}
        self._unschedulable: list[PodEquivalenceGroup] = []
        self._causes: Counter[PendingCause] = Counter()
        self._before: Mapping[str, PendingCause] = {}
        self._notes: dict[ExpanderNote, None] = {}
        self._mixed: MixResult | None = None
        self._note_fits(placed)

    def run(self, groups: list[PodEquivalenceGroup]) -> ScaleUpDecision:
        views = (self._cluster_view.groups[name] for name in sorted(self._cluster_view.groups))
        templates = [view.template for view in views if view.template is not None]
        self._before = causes_before(self._snapshot, groups, templates)
        while groups:
            limits = scale_up_limits(self._cluster_view)
            self._note_skipped(limits)
            added = self._choose(groups, limits)
            if not added:
                break
            groups = self._apply(groups, added)
        self._fill_existing(groups)
        return self._decision(self._unschedulable if groups else [])

    def _note_unschedulable(self, left: Sequence[PodEquivalenceGroup]) -> None:
        """Note the pods that fit no node; the first time also their causes."""
        if not self._new_nodes:
            for group in _non_empty(left):
                self._causes[self._cause(group)] += len(group)
        self._unschedulable = _non_empty(left)

    def _cause(self, group: PodEquivalenceGroup) -> PendingCause:
        """Return the cause of a group of equivalent pods, before others were placed if any."""
        pod = group.pods[0]
        return self._before.get(pod.key) or cause_of(self._snapshot, pod) or OTHER

    def _fill_existing(self, groups: Sequence[PodEquivalenceGroup]) -> None:
        """Note the pods that fit nodes without another scale-up, including the new nodes."""
        self._fits.update({pod.key: node for pod, node in fill_all(self._snapshot, groups)[0]})

    def _choose(
        self, groups: Sequence[PodEquivalenceGroup], limits: ScaleUpLimits
    ) -> list[NewNodes]:
        """Estimate every group, and have the expander choose."""
        candidates = self._candidates(groups, limits)
        if not candidates:
            return []
        request = ExpanderRequest(
            self._snapshot, tuple(groups), tuple(candidates), limits.cluster_max
        )
        choice = self._expander.choose(request)
        self._notes.update(dict.fromkeys(choice.notes))
        chosen = list(choice.new_nodes[:1] if limits.shared else choice.new_nodes)
        if len(chosen) == len(choice.new_nodes):
            self._mixed = combine_mixes(self._mixed, choice.mixed)
        if self._cluster_view.options.balance_similar_node_groups:
            chosen = self._balanced(chosen, candidates)
        for one in chosen:
            self._considered[one.view.id] = _considered(one.view, one.nodes, one.helped)
        return chosen

    def _candidates(
        self, groups: Sequence[PodEquivalenceGroup], limits: ScaleUpLimits
    ) -> list[NodeGroupOption]:
        views = limits.templates(self._cluster_view)
        most = [limits.max_nodes[view.id] for view, _ in views]
        templates = [template for _, template in views]
        found = options(self._snapshot, templates, groups, most, watch=self._note_unschedulable)
        candidates = []
        for (view, template), option in zip(views, found, strict=True):
            needed, pods = option.estimate.nodes, option.estimate.pods
            whole = view.options.zero_or_max_node_scaling
            nodes = view.max_increase if whole and needed else needed
            reason = NOT_CHOSEN if nodes else NO_HELP
            self._considered.setdefault(view.id, _considered(view, nodes, pods, reason))
            if nodes:
                candidates.append(
                    NodeGroupOption(view, template, option, nodes, limits.max_nodes[view.id])
                )
        return candidates

    def _balanced(
        self, chosen: Sequence[NewNodes], candidates: Sequence[NodeGroupOption]
    ) -> list[NewNodes]:
        """Balance the new nodes between similar groups, if every pod still fits."""
        if len(chosen) > 1:
            return list(chosen)
        spread = balance(chosen[0], candidates, self._cluster_view.options)
        return spread if is_feasible(self._snapshot, spread) else list(chosen)

    def _apply(
        self, groups: Sequence[PodEquivalenceGroup], added: Sequence[NewNodes]
    ) -> list[PodEquivalenceGroup]:
        """Count the new nodes as upcoming; return the pods that fit no node yet."""
        self._new_nodes += added
        self._note_fits([one for new in added for one in new.placed])
        gone = {pod.key for new in added for pod in new.all_pods()}
        left = _non_empty(
            group.of([p for p in group.pods if p.key not in gone]) for group in groups
        )
        if left and self._are_full(added, groups):
            self._unapplied += [replace(one, placed=()) for one in added]
            apply_new_nodes(
                self._snapshot, [replace(one, nodes=0, pods=(), order=()) for one in added]
            )
        elif left:
            apply_new_nodes(self._snapshot, added)
        grown: Counter[str] = Counter()
        for one in added:
            grown[one.view.id] += one.nodes
        views = {
            name: replace(view, target=view.target + grown[name]) if name in grown else view
            for name, view in self._cluster_view.groups.items()
        }
        self._cluster_view = replace(self._cluster_view, groups=views)
        return left

    def _are_full(self, added: Sequence[NewNodes], groups: Sequence[PodEquivalenceGroup]) -> bool:
        """Whether the new nodes cannot affect the remaining pods: one group was filled with all
        that fits, and no pod depends on other nodes. Then they need not be added to the snapshot,
        unless nodes are counted.
        """
        counted = self._cluster_view.options.max_nodes_total or read_resource_limits(
            self._cluster_view.options
        )
        return (
            not counted
            and len(added) == 1
            and all(added[0].pods)
            and not any(compares_nodes(group, frozenset()) for group in groups)
        )

    def _causes_left(
        self, left: Sequence[PodEquivalenceGroup]
    ) -> list[tuple[PodEquivalenceGroup, PendingCause]]:
        """Return the causes of pods that no scale-up helps, with all new nodes."""
        causes = [(group, self._cause(group)) for group in left]
        if not self._unapplied or not any(cause is Cause.NODES for _, (cause, _) in causes):
            return causes
        with self._snapshot.fork():
            apply_new_nodes(self._snapshot, self._unapplied)
            return [
                (group, self._cause(group) if why[0] is Cause.NODES else why)
                for group, why in causes
            ]

    def _note_fits(self, placed: Iterable[PodPlacement]) -> None:
        """Note the pods that fit existing nodes; new nodes do not exist yet."""
        for pod, node in placed:
            if node in self._existing:
                self._fits[pod.key] = node

    def _note_skipped(self, limits: ScaleUpLimits) -> None:
        for name, reason in limits.skipped.items():
            self._considered.setdefault(name, ConsideredGroup(name, refused=reason))

    def _decision(self, left: Sequence[PodEquivalenceGroup]) -> ScaleUpDecision:
        refused = scale_up_limits(self._cluster_view).skipped if left else {}
        causes = self._causes_left(left)
        explained = explain_unschedulable(
            self._snapshot, causes, self._cluster_view.groups, refused
        )
        self._causes[UPCOMING] += len(self._fits)
        return ScaleUpDecision(
            tuple(self._new_nodes),
            self._fits,
            tuple(self._considered[name] for name in sorted(self._considered)),
            tuple(explained),
            +self._causes,
            tuple(self._notes),
            self._mixed,
        )


def combine_mixes(one: MixResult | None, other: MixResult | None) -> MixResult | None:
    """Combine two mixes for different pods."""
    if one is None or other is None:
        return one or other
    return MixResult(
        one.cost + other.cost, max(one.bound, other.bound), priced=one.priced and other.priced
    )


def _considered(view: NodeGroupView, nodes: int, pods: int, refused: str = "") -> ConsideredGroup:
    cost = None if view.price is None else view.price * nodes
    return ConsideredGroup(view.id, nodes, pods, cost, refused)


def _non_empty(groups: Iterable[PodEquivalenceGroup]) -> list[PodEquivalenceGroup]:
    return [group for group in groups if group.pods]


def scale_ups_of(
    new_nodes: Iterable[NewNodes], views: Mapping[str, NodeGroupView]
) -> list[ScaleUp]:
    """Return one scale-up for each group, in the order of the groups' first new nodes."""
    pods: dict[str, list[tuple[str, ...]]] = {}
    for one in new_nodes:
        keys = [tuple(pod.key for pod in node) for node in one.pods]
        pods.setdefault(one.view.id, []).extend(keys)
    found = []
    for name, nodes in pods.items():
        view, count = views[name], len(nodes)
        cost = None if view.price is None else view.price * count
        size, most = view.target, view.group.max_size
        found.append(ScaleUp(name, size, size + count, most, tuple(nodes), cost))
    return found
