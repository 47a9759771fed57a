"""The cheapest mix of groups for all pods that wait, and how cheap it could be.

Pods that matter by more than their size (ports, anti-affinity, volumes in common, spreading) come
first: they go, all together, to the group where they cost least for what they are worth, and others
fill what they leave of its nodes. The rest is a matter of sizes (`packing`). What comes of it is
held against every group alone; whatever helps the most pods, and then costs least, is chosen.

Prices are those of the cloud. Where it names none at all, a node costs one, and the fewest nodes
are the cheapest. Groups without a price among others with one are left out as long as those help,
and that is told; so are groups that are only ever empty or full.
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
from bayplan.autoscaler.estimate.upcoming import put_in_place
from bayplan.autoscaler.expanders.mix.packing import (
    Figures,
    Packing,
    TemplateFillings,
    climb,
    figures_of,
)
from bayplan.autoscaler.expanders.mix.solver import best_cart, bound_of, has_highs
from bayplan.autoscaler.plan import Mixed, Note
from bayplan.fit.batches import Estimate, Group, fill_all
from bayplan.fit.batches.attempt import Prospect
from bayplan.fit.batches.estimate import filled, look, orders, shared
from bayplan.fit.state.columns import FloatArray

UNLIMITED = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class MixPart:
    """Nodes of one candidate, as part of a mix."""

    candidate: NodeGroupOption
    estimate: Estimate

    @property
    def purchase(self) -> NewNodes:
        """It, bought."""
        pods = tuple(map(tuple, self.estimate.by_node()))
        order = tuple(self.estimate.placements())
        return NewNodes(self.candidate.view, self.estimate.nodes, pods, order=order)


class MixBuilder:
    """One mix on its way, in a fork that its caller undoes."""

    def __init__(
        self,
        question: ExpanderRequest,
        candidates: Sequence[NodeGroupOption],
        costs: Sequence[float],
    ) -> None:
        self._snapshot = question.snapshot
        self._candidates = candidates
        self._costs = costs
        self._most = [one.most for one in candidates]
        self._room = UNLIMITED if question.room is None else question.room
        self.bought: list[MixPart] = []

    def run(self, groups: Sequence[Group], *, exact: bool) -> list[Group]:
        """Buy for these pods; returns who has no place then."""
        prospects = self._prospects(groups)
        awkward = frozenset().union(*(one.loads.awkward | one.comparing for one in prospects))
        if awkward:
            groups = self._place_awkward(prospects, list(groups), awkward)
            prospects = self._prospects(groups)
        figures = figures_of(prospects, self._costs, self._room)
        plain = [number for number in range(len(groups)) if number not in awkward]
        cart = best_cart(TemplateFillings.of(prospects, _only(figures, plain), plain), exact=exact)
        return self._take(cart, prospects, groups)

    def _prospects(self, groups: Sequence[Group]) -> list[Prospect]:
        most = [min(one, self._room) for one in self._most]
        asked = zip(self._candidates, most, strict=True)
        return [look(self._snapshot, one.template, groups, limit) for one, limit in asked]

    # -- what matters by more than its size ------------------------------------------------------

    def _place_awkward(
        self, prospects: Sequence[Prospect], groups: list[Group], awkward: frozenset[int]
    ) -> list[Group]:
        """Buy for awkward groups, of one candidate after another, until nothing helps them."""
        worth = climb(figures_of(prospects, self._costs, self._room))[1]
        compares = any(one.comparing for one in prospects)
        while any(groups[number].pods for number in awkward):
            best = self._best(prospects, groups, awkward, worth)
            if best is None:
                break
            at, found, groups = best
            self._note(at, found)
            if compares:
                put_in_place(self._snapshot, [self.bought[-1].purchase])
            prospects = self._prospects(groups)
        return groups

    def _best(
        self,
        prospects: Sequence[Prospect],
        groups: Sequence[Group],
        awkward: frozenset[int],
        worth: FloatArray,
    ) -> tuple[int, Estimate, list[Group]] | None:
        counts = [len(group) if at in awkward else 0 for at, group in enumerate(groups)]
        tried = []
        for at, prospect in enumerate(prospects):
            found, left = shared(prospect, orders(prospect)[-1], counts)
            if found.nodes:
                value = float(worth @ np.array(found.helped)) / (found.nodes * self._costs[at])
                tried.append((value, found.pods, -at, found, left))
        if not tried:
            return None
        _, _, at, found, left = max(tried, key=lambda one: one[:3])
        return -at, found, left

    # -- the rest --------------------------------------------------------------------------------

    def _take(
        self, cart: Packing, prospects: Sequence[Prospect], groups: Sequence[Group]
    ) -> list[Group]:
        left = list(groups)
        for at, prospect in enumerate(prospects):
            lots = [(one.counts.tolist(), one.nodes) for one in cart.lots if one.template == at]
            if lots:
                wanted = np.sum([np.array(counts) * nodes for counts, nodes in lots], axis=0)
                pairs = list(zip(left, wanted.tolist(), strict=True))
                asked = tuple(group.of(group.pods[:count]) for group, count in pairs)
                self._note(at, filled(replace(prospect, groups=asked), lots))
                left = [group.of(group.pods[count:]) for group, count in pairs]
        return left

    def _note(self, at: int, found: Estimate) -> None:
        self.bought.append(MixPart(self._candidates[at], found))
        self._most[at] -= found.nodes
        self._room -= found.nodes


def _only(figures: Figures, numbers: Sequence[int]) -> Figures:
    """The figures with nobody but some groups."""
    return figures.wanting(
        [count if at in numbers else 0 for at, count in enumerate(figures.wanted.tolist())]
    )


TINY = 1e-9
"""What a node costs at the least, so that there is something to compare."""


@dataclass(frozen=True, slots=True, eq=False)
class MixAnswer:
    """One way to buy."""

    purchases: tuple[NewNodes, ...]
    pods: int
    """How many pods have a place then, on any node."""
    cost: float
    left: tuple[Group, ...]
    """All groups without those that nodes which are there take."""
    helped: tuple[int, ...]
    """How many of them new nodes take."""


def cheapest_mix(
    candidates: Sequence[NodeGroupOption], question: ExpanderRequest, notes: tuple[Note, ...] = ()
) -> ExpanderChoice:
    """What to buy of these candidates together."""
    usable, told = _usable(candidates)
    priced = all(one.view.price is not None for one in usable)
    costs = [max(one.view.price or 0.0, TINY) if priced else 1.0 for one in usable]
    exact = has_highs()
    answers = [_alone(one, cost) for one, cost in zip(usable, costs, strict=True)]
    if not any(one.view.options.zero_or_max_node_scaling for one in usable):
        answers.append(_mix(usable, costs, question, exact=exact))
    best = max(answers, key=lambda one: (one.pods, -one.cost, -len(one.purchases)))
    bound = _bound(best, usable, costs, question, exact=exact)
    mixed = Mixed(best.cost, min(bound, best.cost), priced=priced)
    return ExpanderChoice(best.purchases, (*notes, *told), mixed)


def _usable(candidates: Sequence[NodeGroupOption]) -> tuple[list[NodeGroupOption], list[Note]]:
    """Those that can be mixed, and what is told of the others."""
    parts = [one for one in candidates if not one.view.options.zero_or_max_node_scaling]
    found = parts or list(candidates)
    priced = [one for one in found if one.view.price is not None]
    if not priced:
        return found, []
    left_out = [one.view.id for one in found if one.view.price is None]
    return priced, [_unpriced(name) for name in left_out]


def _unpriced(group: str) -> Note:
    said = f"cheapest-mix: nobody can say what a node of node group {group} costs"
    return Note("NodePriceUnknown", f"{said}. Others are preferred.")


def _alone(candidate: NodeGroupOption, cost: float) -> MixAnswer:
    found = candidate.option.estimate
    return MixAnswer(
        (candidate.purchase(),),
        candidate.option.helped,
        candidate.nodes * cost,
        found.groups,
        found.helped,
    )


def _mix(
    candidates: Sequence[NodeGroupOption],
    costs: Sequence[float],
    question: ExpanderRequest,
    *,
    exact: bool,
) -> MixAnswer:
    with question.snapshot.fork():
        placed, groups = fill_all(question.snapshot, question.groups)
        buying = MixBuilder(question, candidates, costs)
        left = buying.run(groups, exact=exact)
    price = {one.view.id: cost for one, cost in zip(candidates, costs, strict=True)}
    bought = [one.purchase for one in buying.bought]
    purchases = [replace(one, placed=placed if not at else ()) for at, one in enumerate(bought)]
    helped = [len(group) - len(rest) for group, rest in zip(groups, left, strict=True)]
    return MixAnswer(
        tuple(purchases),
        len(placed) + sum(helped),
        sum(one.nodes * price[one.view.id] for one in bought),
        tuple(groups),
        tuple(helped),
    )


def _bound(
    answer: MixAnswer,
    candidates: Sequence[NodeGroupOption],
    costs: Sequence[float],
    question: ExpanderRequest,
    *,
    exact: bool,
) -> float:
    """What helping the same pods costs at the least."""
    room = UNLIMITED if question.room is None else question.room
    with question.snapshot.fork():
        asked = [look(question.snapshot, one.template, answer.left, one.most) for one in candidates]
    figures = figures_of(asked, costs, room)
    return bound_of(figures.wanting(answer.helped), exact=exact)
