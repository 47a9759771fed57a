"""What is bought: a pure decision over the world of one loop.

1. What is on its way is put into a fork. Pods whose claims have a node selected go there; then
   what is on its way takes the pods that it was bought for.
2. The other pods are tried on all nodes, those on their way too. Whoever fits needs nothing.
3. For the rest every group that may be bought from is estimated, and the expander chooses.
4. What it chose counts as on its way, and whoever is left is tried again, until nobody is left or
   nothing more helps. So the next loop has nothing to buy for the same pods.
5. Whoever is left is told why, group by group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.estimate.limits import ScaleUpLimits, read_resource_limits, scale_up_limits
from bayplan.autoscaler.estimate.options import Expander, ExpanderRequest, NewNodes, NodeGroupOption
from bayplan.autoscaler.estimate.upcoming import (
    NOTHING,
    PlannedPods,
    add_upcoming,
    holds,
    place_planned,
    place_selected,
    put_in_place,
)
from bayplan.autoscaler.plan import Considered, LeftPending, Mixed, Note, ScaleUp
from bayplan.autoscaler.scaleup.balance import balanced
from bayplan.autoscaler.scaleup.why import Why, cause_of, causes_before, explain_left
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit.batches import Group, fill_all, group_pods, options
from bayplan.fit.batches.comparing import compares_nodes
from bayplan.fit.batches.fill import Placed
from bayplan.fit.plugins.plugin import Cause

UPCOMING: Why = (Cause.UPCOMING, "")
OTHER: Why = (Cause.OTHER, "")
NO_USE = "no pod would be helped"
NOT_CHOSEN = "another group was chosen"


@dataclass(frozen=True, slots=True, eq=False)
class ScaleUpDecision:
    """What to buy, and what becomes of every pod that counts."""

    purchases: tuple[NewNodes, ...] = ()
    fits: Mapping[str, str] = field(default_factory=dict)
    """Pods that a node which is there, or on its way, has room for."""
    considered: tuple[Considered, ...] = ()
    left: tuple[LeftPending, ...] = ()
    causes: Mapping[Why, int] = field(default_factory=dict)
    """Why pods wait, and how many for each cause."""
    notes: tuple[Note, ...] = ()
    mixed: Mixed | None = None
    """If groups were mixed, how well."""


def decide(
    cluster_view: ClusterView, expander: Expander, remembered: PlannedPods = NOTHING
) -> ScaleUpDecision:
    """What to buy; the snapshot is left as it was."""
    if not cluster_view.waiting:
        return ScaleUpDecision()
    with cluster_view.snapshot.fork():
        coming = add_upcoming(cluster_view)
        groups = group_pods(cluster_view.snapshot, cluster_view.waiting)
        selected, groups = place_selected(cluster_view.snapshot, groups)
        placed, left = place_planned(cluster_view.snapshot, groups, coming, remembered)
        return _Orchestrator(cluster_view, expander, [*selected, *placed]).run(_some(left))


class _Orchestrator:
    """One decision on its way, in a fork that its caller undoes."""

    def __init__(
        self, cluster_view: ClusterView, expander: Expander, placed: Iterable[Placed]
    ) -> None:
        self._cluster_view = cluster_view
        self._snapshot = cluster_view.snapshot
        self._expander = expander
        self._there = frozenset(cluster_view.snapshot.cluster.slots.by_name)
        self._fits: dict[str, str] = {}
        self._purchases: list[NewNodes] = []
        self._considered: dict[str, Considered] = {}
        self._left: list[Group] = []
        self._causes: Counter[Why] = Counter()
        self._before: Mapping[str, Why] = {}
        self._notes: dict[Note, None] = {}
        self._mixed: Mixed | None = None
        self._take(placed)

    def run(self, groups: list[Group]) -> ScaleUpDecision:
        self._before = causes_before(self._snapshot, groups)
        while groups:
            limits = scale_up_limits(self._cluster_view)
            self._refuse(limits)
            bought = self._round(groups, limits)
            if not bought:
                break
            groups = self._carry_on(groups, bought)
        self._fill_for_good(groups)
        return self._decision(self._left if groups else [])

    def _see(self, left: Sequence[Group]) -> None:
        """Take note of those that no node has room for; at first also of why."""
        if not self._purchases:
            for group in _some(left):
                self._causes[self._cause(group)] += len(group)
        self._left = _some(left)

    def _cause(self, group: Group) -> Why:
        """Why a group waits: what kept it off the nodes before others took their room, if
        anything.
        """
        pod = group.pods[0]
        return self._before.get(pod.key) or cause_of(self._snapshot, pod) or OTHER

    def _fill_for_good(self, groups: Sequence[Group]) -> None:
        self._take(fill_all(self._snapshot, groups)[0])

    def _round(self, groups: Sequence[Group], limits: ScaleUpLimits) -> list[NewNodes]:
        """Estimate every group, and choose."""
        candidates = self._candidates(groups, limits)
        if not candidates:
            return []
        question = ExpanderRequest(self._snapshot, tuple(groups), tuple(candidates), limits.whole)
        choice = self._expander.choose(question)
        self._notes.update(dict.fromkeys(choice.notes))
        chosen = list(choice.purchases[:1] if limits.shared else choice.purchases)
        if len(chosen) == len(choice.purchases):
            self._mixed = together(self._mixed, choice.mixed)
        if self._cluster_view.options.balance_similar_node_groups:
            chosen = self._balanced(chosen, candidates)
        for one in chosen:
            self._considered[one.view.id] = _considered(one.view, one.nodes, one.helped)
        return chosen

    def _candidates(self, groups: Sequence[Group], limits: ScaleUpLimits) -> list[NodeGroupOption]:
        asked = limits.templates(self._cluster_view)
        most = [limits.most[view.id] for view, _ in asked]
        templates = [template for _, template in asked]
        found = options(self._snapshot, templates, groups, most, watch=self._see)
        candidates = []
        for (view, template), option in zip(asked, found, strict=True):
            needed, pods = option.estimate.nodes, option.estimate.pods
            whole = view.options.zero_or_max_node_scaling
            nodes = view.room if whole and needed else needed
            why = NOT_CHOSEN if nodes else NO_USE
            self._considered.setdefault(view.id, _considered(view, nodes, pods, why))
            if nodes:
                candidates.append(
                    NodeGroupOption(view, template, option, nodes, limits.most[view.id])
                )
        return candidates

    def _balanced(
        self, chosen: Sequence[NewNodes], candidates: Sequence[NodeGroupOption]
    ) -> list[NewNodes]:
        """The purchases spread over groups that are alike, if every pod still has its place."""
        if len(chosen) > 1:
            return list(chosen)
        spread = balanced(chosen[0], candidates, self._cluster_view.options)
        return spread if holds(self._snapshot, spread) else list(chosen)

    def _carry_on(self, groups: Sequence[Group], bought: Sequence[NewNodes]) -> list[Group]:
        """Take what was bought as on its way; returns who has no place yet."""
        self._purchases += bought
        self._take([one for purchase in bought for one in purchase.placed])
        gone = {pod.key for purchase in bought for pod in purchase.everybody()}
        left = _some(group.of([p for p in group.pods if p.key not in gone]) for group in groups)
        if left and self._leave_no_room(bought, groups):
            put_in_place(
                self._snapshot, [replace(one, nodes=0, pods=(), order=()) for one in bought]
            )
        elif left:
            put_in_place(self._snapshot, bought)
        grown: Counter[str] = Counter()
        for one in bought:
            grown[one.view.id] += one.nodes
        views = {
            name: replace(view, target=view.target + grown[name]) if name in grown else view
            for name, view in self._cluster_view.groups.items()
        }
        self._cluster_view = replace(self._cluster_view, groups=views)
        return left

    def _leave_no_room(self, bought: Sequence[NewNodes], groups: Sequence[Group]) -> bool:
        """Whether nobody who is left could be helped, or kept away, by the nodes that are bought:
        one group was filled with all that fits, and nobody looks at other nodes. Then these need
        not be put in place, unless nodes are counted.
        """
        counted = self._cluster_view.options.max_nodes_total or read_resource_limits(
            self._cluster_view.options
        )
        return (
            not counted
            and len(bought) == 1
            and all(bought[0].pods)
            and not any(compares_nodes(group, frozenset()) for group in groups)
        )

    def _take(self, placed: Iterable[Placed]) -> None:
        """Remember who fits where; what is only bought now helps, but is not there."""
        for pod, node in placed:
            if node in self._there:
                self._fits[pod.key] = node

    def _refuse(self, limits: ScaleUpLimits) -> None:
        for name, why in limits.refused.items():
            self._considered.setdefault(name, Considered(name, refused=why))

    def _decision(self, left: Sequence[Group]) -> ScaleUpDecision:
        refused = scale_up_limits(self._cluster_view).refused if left else {}
        causes = [(group, self._cause(group)) for group in left]
        told = explain_left(self._snapshot, causes, self._cluster_view.groups, refused)
        self._causes[UPCOMING] += len(self._fits)
        return ScaleUpDecision(
            tuple(self._purchases),
            self._fits,
            tuple(self._considered[name] for name in sorted(self._considered)),
            tuple(told),
            +self._causes,
            tuple(self._notes),
            self._mixed,
        )


def together(one: Mixed | None, other: Mixed | None) -> Mixed | None:
    """Two mixes for different pods: what either costs at the least, both do."""
    if one is None or other is None:
        return one or other
    return Mixed(
        one.cost + other.cost, max(one.bound, other.bound), priced=one.priced and other.priced
    )


def _considered(view: NodeGroupView, nodes: int, pods: int, refused: str = "") -> Considered:
    cost = None if view.price is None else view.price * nodes
    return Considered(view.id, nodes, pods, cost, refused)


def _some(groups: Iterable[Group]) -> list[Group]:
    return [group for group in groups if group.pods]


def scale_ups_of(
    purchases: Iterable[NewNodes], views: Mapping[str, NodeGroupView]
) -> list[ScaleUp]:
    """The purchases, one for each group, in the order in which groups came first."""
    pods: dict[str, list[tuple[str, ...]]] = {}
    for one in purchases:
        keys = [tuple(pod.key for pod in node) for node in one.pods]
        pods.setdefault(one.view.id, []).extend(keys)
    found = []
    for name, nodes in pods.items():
        view, count = views[name], len(nodes)
        cost = None if view.price is None else view.price * count
        size, most = view.target, view.group.max_size
        found.append(ScaleUp(name, size, size + count, most, tuple(nodes), cost))
    return found
