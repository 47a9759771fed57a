"""Nodes filled one kind after another, each time the one whose filling is worth most for its cost.

A filling is how many pods of each group go onto one node of a template. At every step each template
suggests one for the pods that are left, and the best is bought as often as there are pods for it.
Every filling that was ever suggested is remembered, since others may find a use for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from bayplan.autoscaler.expanders.mix.ascent import climb
from bayplan.autoscaler.expanders.mix.figures import Figures
from bayplan.fit.batches.attempt import Prospect
from bayplan.fit.batches.blending import Blend
from bayplan.fit.state.columns import BoolArray, FloatArray, IntArray

STEPS_ANEW = 60
"""How far the bound is climbed when pods are valued anew."""


@dataclass(frozen=True, slots=True, eq=False)
class Lot:
    """Nodes of one template that are filled alike."""

    template: int
    counts: IntArray
    nodes: int


@dataclass(slots=True, eq=False)
class Cart:
    """What is bought, and what may still be."""

    supply: IntArray
    """By group, the pods without a place."""
    most: IntArray
    """By template, the nodes that may be bought."""
    total: int
    lots: list[Lot] = field(default_factory=list)

    @classmethod
    def empty(cls, figures: Figures) -> Cart:
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
        self.lots.append(Lot(template, counts, nodes))
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
class Shop:
    """All templates, and the fillings that they have suggested."""

    figures: Figures
    templates: list[_Template]
    seen: dict[tuple[int, bytes], IntArray] = field(default_factory=dict)

    @classmethod
    def of(cls, prospects: Sequence[Prospect], figures: Figures, plain: Iterable[int]) -> Shop:
        """The templates, for those groups for which only their size matters."""
        numbers = range(len(figures.wanted))
        wanted = np.isin(numbers, list(plain))
        made = []
        for at, prospect in enumerate(prospects):
            fresh = prospect.loads.fresh
            blend = Blend([prospect.loads[n] for n in numbers], [0] * len(numbers), fresh)
            made.append(_Template(blend, fresh, wanted & (figures.rooms[:, at] > 0)))
        return cls(figures, made)

    def buy(self, cart: Cart, worth: FloatArray, anew: int = 0) -> Cart:
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

    def _best(self, cart: Cart, worth: FloatArray) -> tuple[int, IntArray] | None:
        """The template and the filling that are worth most for what they cost."""
        found: list[tuple[float, int, IntArray]] = []
        for at, template in enumerate(self.templates):
            counts = template.suggest(cart.supply) if cart.room(at) > 0 else None
            if counts is not None and counts.any():
                self.seen.setdefault((at, counts.tobytes()), counts)
                found.append((float(worth @ counts) / float(self.figures.costs[at]), at, counts))
        _, at, counts = max(found, key=lambda one: one[:2], default=(0.0, -1, self.figures.wanted))
        return None if at < 0 else (at, counts)
