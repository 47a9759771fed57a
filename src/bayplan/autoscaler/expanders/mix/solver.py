"""Packs pods by size alone: a good packing, and a lower bound of its cost.

Fillings are chosen by the values of pods, twice: valued once, and revalued on the way. With HiGHS
all suggested fillings are then combined: how often each is used in the optimum gives better values
of pods, and with them better fillings; the remainder is packed as before. The cheapest of these
packings is used.
"""

from __future__ import annotations

import math
from importlib.util import find_spec

import numpy as np

from bayplan.autoscaler.expanders.mix.fillings import (
    NodePacking,
    PackingProblem,
    TemplateFillings,
    improve_bound,
)
from bayplan.fit.state.columns import FloatArray

REVALUE_EVERY = 8
ROUNDS = 4
GOOD = 1.005
"""The ratio to the bound at which the search ends."""
SLACK = 1e-6
"""The relative error of floating point arithmetic."""


def has_highs() -> bool:
    """Whether HiGHS is installed."""
    return find_spec("highspy") is not None


def best_packing(fillings: TemplateFillings, *, exact: bool) -> NodePacking:
    """Return the best packing found; with HiGHS, if `exact`."""
    problem = fillings.problem
    least, worth = improve_bound(problem)
    packings = [fillings.fill(NodePacking.empty(problem), worth)]
    if not _is_good(packings, problem, least):
        packings.append(fillings.fill(NodePacking.empty(problem), worth, REVALUE_EVERY))
    for _ in range(ROUNDS if exact else 0):
        if _is_good(packings, problem, least) or not fillings.seen:
            break
        packings.append(_improved(fillings))
    return min(packings, key=lambda packing: (int(packing.supply.sum()), cost_of(packing, problem)))


def bound_of(problem: PackingProblem, *, exact: bool) -> float:
    """Return the lower bound of the cost of helping all pods; with HiGHS, if `exact`."""
    least, _ = improve_bound(problem)
    if exact:
        from bayplan.autoscaler.expanders.mix.highs import bound  # noqa: PLC0415 - an extra

        least = max(least, bound(problem))
    return _rounded_up(least, problem.costs)


def cost_of(packing: NodePacking, problem: PackingProblem) -> float:
    """Return the cost of a packing."""
    return float(sum(lot.nodes * problem.costs[lot.template] for lot in packing.lots))


def _improved(fillings: TemplateFillings) -> NodePacking:
    from bayplan.autoscaler.expanders.mix.highs import filling_counts  # noqa: PLC0415 - an extra

    problem = fillings.problem
    suggested = [(at, counts) for (at, _), counts in fillings.seen.items()]
    often, worth = filling_counts(problem, suggested)
    packing = NodePacking.empty(problem)
    for (at, counts), times in zip(suggested, np.floor(often + SLACK).tolist(), strict=True):
        if times:
            packing.add(at, counts, int(times))
    fillings.fill(NodePacking.empty(problem), worth)  # for the sake of what it suggests
    return fillings.fill(packing, worth)


def _is_good(packings: list[NodePacking], problem: PackingProblem, least: float) -> bool:
    best = min(packings, key=lambda packing: cost_of(packing, problem))
    enough = _rounded_up(least, problem.costs) * GOOD
    return not best.supply.any() and cost_of(best, problem) <= enough


def _rounded_up(bound: float, costs: FloatArray) -> float:
    """Round a bound up to whole nodes if all have the same price."""
    safe = bound * (1 - SLACK)
    price = float(costs[0]) if len(costs) else 0.0
    if price > 0 and bool((costs == price).all()):
        return math.ceil(safe / price - SLACK) * price
    return safe
