"""The cheapest mix of groups for all unschedulable pods, and a lower bound of its cost.

Pods with constraints beyond their size (host ports, anti-affinity, shared volumes, spreading) come
first: all together go to the group where they are cheapest relative to their value, and others fill
what they leave of its nodes. The rest is binpacking by size (`fillings`). The result is compared
with every group alone; the one that helps the most pods, and then costs least, is chosen.

Prices are the provider's. If it has none at all, a node costs 1, and the fewest nodes are the
cheapest. Groups without a price are left out if others have one, and that is noted; groups with
zero-or-max scaling are left out as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bayplan.autoscaler.estimate.options import (
    ExpanderChoice,
    ExpanderRequest,
    NewNodes,
    NodeGroupOption,
)
from bayplan.autoscaler.estimate.upcoming_nodes import apply_new_nodes
from bayplan.autoscaler.expanders.mix.fillings import (
    NodePacking,
    PackingProblem,
    TemplateFillings,
    improve_bound,
    packing_problem,
)
from bayplan.autoscaler.expanders.mix.solver import best_packing, bound_of, has_highs
from bayplan.autoscaler.plan import ExpanderNote, MixResult
from bayplan.fit.batches import Estimate, PodEquivalenceGroup, fill_all
from bayplan.fit.batches.attempt import EstimateInput
from bayplan.fit.batches.estimate import estimate_filled, estimate_shared, orders, prepare_estimate
from bayplan.fit.state.columns import FloatArray

UNLIMITED = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class MixPart:
    """Nodes of one option, as part of a mix."""

    candidate: NodeGroupOption
    estimate: Estimate

    @property
    def new_nodes(self) -> NewNodes:
        """The new nodes of the part."""
        pods = tuple(map(tuple, self.estimate.by_node()))
        order = tuple(self.estimate.placements())
        return NewNodes(self.candidate.view, self.estimate.nodes, pods, order=order)


class MixBuilder:
    """The state of one mix, in a fork that the caller reverts."""

    def __init__(
        self,
        request: ExpanderRequest,
        candidates: Sequence[NodeGroupOption],
        costs: Sequence[float],
    ) -> None:
        self._snapshot = request.snapshot
        self._candidates = candidates
        self._costs = costs
        self._most = [one.most for one in candidates]
        self._max_new_nodes = UNLIMITED if request.max_new_nodes is None else request.max_new_nodes
        self.parts: list[MixPart] = []

    def run(
        self, groups: Sequence[PodEquivalenceGroup], *, exact: bool
    ) -> list[PodEquivalenceGroup]:
        """Add nodes for these pods; return the pods that fit none of them."""
        estimate_inputs = self._estimate_inputs(groups)
        constrained = frozenset().union(
            *(one.loads.awkward | one.comparing for one in estimate_inputs)
        )
        if constrained:
            groups = self._place_constrained(estimate_inputs, list(groups), constrained)
            estimate_inputs = self._estimate_inputs(groups)
        problem = packing_problem(estimate_inputs, self._costs, self._max_new_nodes)
        plain = [number for number in range(len(groups)) if number not in constrained]
        packing = best_packing(
            TemplateFillings.of(estimate_inputs, _only(problem, plain), plain), exact=exact
        )
        return self._add_parts(packing, estimate_inputs, groups)

    def _estimate_inputs(self, groups: Sequence[PodEquivalenceGroup]) -> list[EstimateInput]:
        most = [min(one, self._max_new_nodes) for one in self._most]
        options = zip(self._candidates, most, strict=True)
        return [
            prepare_estimate(self._snapshot, one.template, groups, limit) for one, limit in options
        ]

    # -- what matters by more than its size ------------------------------------------------------

    def _place_constrained(
        self,
        estimate_inputs: Sequence[EstimateInput],
        groups: list[PodEquivalenceGroup],
        constrained: frozenset[int],
    ) -> list[PodEquivalenceGroup]:
        """Add nodes for pods with further constraints, option by option, until none helps."""
        worth = improve_bound(packing_problem(estimate_inputs, self._costs, self._max_new_nodes))[1]
        compares = any(one.comparing for one in estimate_inputs)
        while any(groups[number].pods for number in constrained):
            best = self._best(estimate_inputs, groups, constrained, worth)
            if best is None:
                break
            at, found, groups = best
            self._add_part(at, found)
            if compares:
                apply_new_nodes(self._snapshot, [self.parts[-1].new_nodes])
            estimate_inputs = self._estimate_inputs(groups)
        return groups

    def _best(
        self,
        estimate_inputs: Sequence[EstimateInput],
        groups: Sequence[PodEquivalenceGroup],
        constrained: frozenset[int],
        worth: FloatArray,
    ) -> tuple[int, Estimate, list[PodEquivalenceGroup]] | None:
        counts = [len(group) if at in constrained else 0 for at, group in enumerate(groups)]
        tried = []
        for at, estimate_input in enumerate(estimate_inputs):
            found, left = estimate_shared(estimate_input, orders(estimate_input)[-1], counts)
            if found.nodes:
                value = float(worth @ np.array(found.helped)) / (found.nodes * self._costs[at])
                tried.append((value, found.pods, -at, found, left))
        if not tried:
            return None
        _, _, at, found, left = max(tried, key=lambda one: one[:3])
        return -at, found, left

    # -- the rest --------------------------------------------------------------------------------

    def _add_parts(
        self,
        packing: NodePacking,
        estimate_inputs: Sequence[EstimateInput],
        groups: Sequence[PodEquivalenceGroup],
    ) -> list[PodEquivalenceGroup]:
        left = list(groups)
        for at, estimate_input in enumerate(estimate_inputs):
            lots = [(one.counts.tolist(), one.nodes) for one in packing.lots if one.template == at]
            if lots:
                wanted = np.sum([np.array(counts) * nodes for counts, nodes in lots], axis=0)
                pairs = list(zip(left, wanted.tolist(), strict=True))
                packed = tuple(group.of(group.pods[:count]) for group, count in pairs)
                self._add_part(at, estimate_filled(replace(estimate_input, groups=packed), lots))
                left = [group.of(group.pods[count:]) for group, count in pairs]
        return left

    def _add_part(self, at: int, found: Estimate) -> None:
        self.parts.append(MixPart(self._candidates[at], found))
        self._most[at] -= found.nodes
        self._max_new_nodes -= found.nodes


def _only(problem: PackingProblem, numbers: Sequence[int]) -> PackingProblem:
    """Return the problem with the pods of some groups only."""
    return problem.with_pods(
        [count if at in numbers else 0 for at, count in enumerate(problem.wanted.tolist())]
    )


TINY = 1e-9
"""The minimum price of a node, so that costs can be compared."""


@dataclass(frozen=True, slots=True, eq=False)
class MixOption:
    """A possible scale-up of one or several groups."""

    new_nodes: tuple[NewNodes, ...]
    pods: int
    """The number of pods that fit then, on any node."""
    cost: float
    left: tuple[PodEquivalenceGroup, ...]
    """The equivalence classes, without the pods that fit existing nodes."""
    helped: tuple[int, ...]
    """By equivalence class, the number of pods on new nodes."""


def cheapest_mix(
    candidates: Sequence[NodeGroupOption],
    request: ExpanderRequest,
    notes: tuple[ExpanderNote, ...] = (),
) -> ExpanderChoice:
    """Choose the cheapest mix of these options."""
    usable, more_notes = _usable(candidates)
    priced = all(one.view.price is not None for one in usable)
    costs = [max(one.view.price or 0.0, TINY) if priced else 1.0 for one in usable]
    exact = has_highs()
    answers = [_alone(one, cost) for one, cost in zip(usable, costs, strict=True)]
    if not any(one.view.options.zero_or_max_node_scaling for one in usable):
        answers.append(_mix(usable, costs, request, exact=exact))
    best = max(answers, key=lambda one: (one.pods, -one.cost, -len(one.new_nodes)))
    bound = _bound(best, usable, costs, request, exact=exact)
    mixed = MixResult(best.cost, min(bound, best.cost), priced=priced)
    return ExpanderChoice(best.new_nodes, (*notes, *more_notes), mixed)


def _usable(
    candidates: Sequence[NodeGroupOption],
) -> tuple[list[NodeGroupOption], list[ExpanderNote]]:
    """Return the options that can be mixed, and notes on the others."""
    parts = [one for one in candidates if not one.view.options.zero_or_max_node_scaling]
    found = parts or list(candidates)
    priced = [one for one in found if one.view.price is not None]
    if not priced:
        return found, []
    left_out = [one.view.id for one in found if one.view.price is None]
    return priced, [_unpriced(name) for name in left_out]


def _unpriced(group: str) -> ExpanderNote:
    message = f"cheapest-mix: the price of node group {group} is unknown"
    return ExpanderNote("NodePriceUnknown", f"{message}. Other groups are preferred.")


def _alone(candidate: NodeGroupOption, cost: float) -> MixOption:
    found = candidate.option.estimate
    return MixOption(
        (candidate.new_nodes(),),
        candidate.option.helped,
        candidate.nodes * cost,
        found.groups,
        found.helped,
    )


def _mix(
    candidates: Sequence[NodeGroupOption],
    costs: Sequence[float],
    request: ExpanderRequest,
    *,
    exact: bool,
) -> MixOption:
    with request.snapshot.fork():
        placed, groups = fill_all(request.snapshot, request.groups)
        builder = MixBuilder(request, candidates, costs)
        left = builder.run(groups, exact=exact)
    price = {one.view.id: cost for one, cost in zip(candidates, costs, strict=True)}
    parts = [one.new_nodes for one in builder.parts]
    new_nodes = [replace(one, placed=placed if not at else ()) for at, one in enumerate(parts)]
    helped = [len(group) - len(rest) for group, rest in zip(groups, left, strict=True)]
    return MixOption(
        tuple(new_nodes),
        len(placed) + sum(helped),
        sum(one.nodes * price[one.view.id] for one in parts),
        tuple(groups),
        tuple(helped),
    )


def _bound(
    answer: MixOption,
    candidates: Sequence[NodeGroupOption],
    costs: Sequence[float],
    request: ExpanderRequest,
    *,
    exact: bool,
) -> float:
    """Return the lower bound of the cost of helping the same pods."""
    max_nodes = UNLIMITED if request.max_new_nodes is None else request.max_new_nodes
    with request.snapshot.fork():
        estimate_inputs = [
            prepare_estimate(request.snapshot, one.template, answer.left, one.most)
            for one in candidates
        ]
    problem = packing_problem(estimate_inputs, costs, max_nodes)
    return bound_of(problem.with_pods(answer.helped), exact=exact)
