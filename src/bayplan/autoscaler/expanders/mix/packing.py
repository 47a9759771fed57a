"""Packing pods for which only their size matters: figures, a bound, and fillings of nodes.

The question is made figures first, with all that hampers it left out. For each group of pods and
each template there is the part of a new node that one pod takes, by resource and by driver, and how
many pods of that group alone one node has room for. Left out is all that can only make things
dearer: pods that keep each other away, volumes in common, rules that compare nodes, and that no pod
can be on two nodes in parts. So whatever helps the same pods costs at least as much as the best
answer to these figures. Pods that hinge on others, or on other filters than the usual ones, take
nothing here at all.

A bound without a solver: by duality, any way of pricing what nodes have proves one. Let each
template spread what its node costs over the things that the node has. A pod then costs, on a
template, what it takes of each thing times that thing's price, and at the least what it costs on
the template where it costs least. The sum over all pods is a bound, whatever the spread: on no node
can pods be worth more than the node, since none holds more than it has. The spread is improved step
by step, towards the things of which most is asked. What pods are worth in the end says how well a
node is used: a filling that is worth nearly what the node costs is as good as any can be.

A filling is how many pods of each group go onto one node of a template. At every step each template
suggests one for the pods that are left, and the best is taken as often as there are pods for it.
Every filling that was ever suggested is remembered, since others may find a use for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bayplan.fit.batches.attempt import Prospect
from bayplan.fit.batches.blending import Blend
from bayplan.fit.batches.comparing import compares_nodes
from bayplan.fit.plugins.capacity import PLENTY
from bayplan.fit.state.columns import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """S groups of pods, T templates, and R things of which a node has so much."""

    parts: FloatArray
    """[S, T, R] the part of a node that one pod takes."""
    rooms: IntArray
    """[S, T] how many pods one node has room for; 0 where it takes none."""
    costs: FloatArray
    """[T] what a node costs."""
    most: IntArray
    """[T] how many nodes there may be."""
    wanted: IntArray
    """[S] how many pods there are."""
    total: int
    """How many nodes there may be of all templates together."""

    @property
    def takeable(self) -> BoolArray:
        """[S] which groups any template takes."""
        return np.asarray((self.rooms > 0).any(axis=1))

    def wanting(self, wanted: Sequence[int] | IntArray) -> Figures:
        """The same for other numbers of pods."""
        return replace(self, wanted=np.array(wanted, dtype=np.int64))


def figures_of(prospects: Sequence[Prospect], costs: Sequence[float], total: int) -> Figures:
    """The figures of these templates, all asked about the same pods."""
    pods = [len(group) for group in prospects[0].groups]
    wide = max(len(one.loads.fresh) for one in prospects)
    parts = np.zeros((len(pods), len(prospects), wide))
    rooms = np.zeros((len(pods), len(prospects)), dtype=np.int64)
    for at, prospect in enumerate(prospects):
        fresh = np.maximum(prospect.loads.fresh, 1)
        for number, group in enumerate(prospect.groups):
            if group.hinges:
                rooms[number, at] = PLENTY
            elif takes(prospect, number):
                rooms[number, at] = prospect.loads.room(number)
                parts[number, at, : len(fresh)] = prospect.loads[number].need / fresh
    most = np.array([one.most for one in prospects], dtype=np.int64)
    return Figures(
        parts, rooms, np.array(costs), most, np.array(pods, dtype=np.int64), min(total, PLENTY)
    )


def takes(prospect: Prospect, number: int) -> bool:
    """Whether new nodes of a template could take pods of a group, once others may have come."""
    group = prospect.groups[number]
    if not group.pods or group.refusal:
        return False
    return number in prospect.loads.fitting or compares_nodes(group, prospect.template.own_labels)


STEPS = 300
PACE = 2.0


def climb(figures: Figures, steps: int = STEPS) -> tuple[float, FloatArray]:
    """The best bound found, and what it takes one pod of each group to be worth."""
    groups, templates, things = figures.parts.shape
    takes, wanted = figures.rooms > 0, np.where(figures.takeable, figures.wanted, 0)
    spread = np.full((templates, things), 1 / max(things, 1))
    best, worths, every = -1.0, np.zeros(groups), np.arange(groups)
    for step in range(1, steps + 1):
        priced = np.einsum("str,tr->st", figures.parts, spread) * figures.costs
        where = np.where(takes, priced, np.inf).argmin(axis=1)
        worth = priced[every, where]
        bound = float(worth @ wanted)
        if bound > best:
            best, worths = bound, worth
        asked = np.zeros((templates, things))
        np.add.at(asked, where, figures.parts[every, where] * wanted[:, None])
        pull = asked / np.maximum(asked.max(axis=1, keepdims=True), 1e-300)
        spread = spread * np.exp(PACE / np.sqrt(step) * pull)
        spread /= spread.sum(axis=1, keepdims=True)
    return max(best, by_one(figures)), worths


def by_one(figures: Figures) -> float:
    """What the pods of one group cost at the least, were they alone: of the dearest group."""
    takes = figures.rooms > 0
    each = figures.wanted[:, None] * figures.costs / np.maximum(figures.rooms, 1)
    least = np.where(takes, each, np.inf).min(axis=1, initial=np.inf)
    return float(least[figures.takeable].max(initial=0.0))


STEPS_ANEW = 60
"""How far the bound is climbed when pods are valued anew."""


@dataclass(frozen=True, slots=True, eq=False)
class FilledNodes:
    """Nodes of one template that are filled alike."""

    template: int
    counts: IntArray
    nodes: int


@dataclass(slots=True, eq=False)
class Packing:
    """What is bought, and what may still be."""

    supply: IntArray
    """By group, the pods without a place."""
    most: IntArray
    """By template, the nodes that may be bought."""
    total: int
    lots: list[FilledNodes] = field(default_factory=list)

    @classmethod
    def empty(cls, figures: Figures) -> Packing:
        """Nothing is bought."""
        return cls(figures.wanted.copy(), figures.most.copy(), figures.total)

    def room(self, template: int) -> int:
        """How many more nodes of a template there may be."""
        return min(int(self.most[template]), self.total)

    def add(self, template: int, counts: IntArray, nodes: int) -> bool:
        """Buy up to so many nodes of a filling, as far as there are pods for it; says whether there
        was any.
        """
        chosen = counts > 0
        if not chosen.any():
            return False
        there = int((self.supply[chosen] // counts[chosen]).min())
        nodes = min(nodes, there, self.room(template))
        if nodes <= 0:
            return False
        self.lots.append(FilledNodes(template, counts, nodes))
        self.supply -= counts * nodes
        self.most[template] -= nodes
        self.total -= nodes
        return True


@dataclass(slots=True, eq=False)
class _Template:
    """What suggests fillings of one template."""

    blend: Blend
    fresh: IntArray
    takes: BoolArray

    def suggest(self, supply: IntArray) -> IntArray:
        """A filling of pods that are left."""
        self.blend.left = np.where(self.takes, supply, 0)
        return self.blend.suggest(self.fresh)


@dataclass(slots=True, eq=False)
class TemplateFillings:
    """All templates, and the fillings that they have suggested."""

    figures: Figures
    templates: list[_Template]
    seen: dict[tuple[int, bytes], IntArray] = field(default_factory=dict)

    @classmethod
    def of(
        cls, prospects: Sequence[Prospect], figures: Figures, plain: Iterable[int]
    ) -> TemplateFillings:
        """The templates, for those groups for which only their size matters."""
        numbers = range(len(figures.wanted))
        wanted = np.isin(numbers, list(plain))
        made = []
        for at, prospect in enumerate(prospects):
            fresh = prospect.loads.fresh
            blend = Blend([prospect.loads[n] for n in numbers], [0] * len(numbers), fresh)
            made.append(_Template(blend, fresh, wanted & (figures.rooms[:, at] > 0)))
        return cls(figures, made)

    def buy(self, cart: Packing, worth: FloatArray, anew: int = 0) -> Packing:
        """Buy for the pods that are left, valued so, or valued again after every `anew` steps."""
        step = 0
        while cart.supply.any() and cart.total > 0:
            step += 1
            if anew and step % anew == 0:
                worth = climb(self.figures.wanting(cart.supply), STEPS_ANEW)[1]
            best = self._best(cart, worth)
            if best is None or not cart.add(*best, cart.total):
                break
        return cart

    def _best(self, cart: Packing, worth: FloatArray) -> tuple[int, IntArray] | None:
        """The template and the filling that are worth most for what they cost."""
        found: list[tuple[float, int, IntArray]] = []
        for at, template in enumerate(self.templates):
            counts = template.suggest(cart.supply) if cart.room(at) > 0 else None
            if counts is not None and counts.any():
                self.seen.setdefault((at, counts.tobytes()), counts)
                found.append((float(worth @ counts) / float(self.figures.costs[at]), at, counts))
        _, at, counts = max(found, key=lambda one: one[:2], default=(0.0, -1, self.figures.wanted))
        return None if at < 0 else (at, counts)
