"""A bound without a solver: by duality, any way of pricing what nodes have proves one.

Let each template spread what its node costs over the things that the node has. A pod then costs, on
a template, what it takes of each thing times that thing's price, and at the least what it costs on
the template where it costs least. The sum over all pods is a bound, whatever the spread: on no node
can pods be worth more than the node, since none holds more than it has. The spread is improved step
by step, towards the things of which most is asked. What pods are worth in the end says how well a
node is used: a filling that is worth nearly what the node costs is as good as any can be.
"""

from __future__ import annotations

import numpy as np

from bayplan.autoscaler.expanders.mix.figures import Figures
from bayplan.fit.state.columns import FloatArray

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
