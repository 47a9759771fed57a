"""The pods for which only their size matters: a good answer, and how good one could be.

Fillings are chosen by what pods are worth, twice: valued once, and valued anew on the way. With
HiGHS, all fillings that were suggested are then looked at together: how often each is best taken
says what pods are really worth, and leads to better fillings; what is left of whole numbers is
taken as before. The cheapest of all these answers counts.
"""

from __future__ import annotations

import math
from importlib.util import find_spec

import numpy as np

from bayplan.autoscaler.expanders.mix.packing import Figures, Packing, TemplateFillings, climb
from bayplan.fit.state.columns import FloatArray

ANEW = 8
ROUNDS = 4
GOOD = 1.005
"""So near to the bound nothing better is looked for."""
SLACK = 1e-6
"""How far figures may be off that were reckoned in floating point, as a part of them."""


def has_highs() -> bool:
    """Whether HiGHS is installed."""
    return find_spec("highspy") is not None


def best_cart(shop: TemplateFillings, *, exact: bool) -> Packing:
    """The best answer that is found; with HiGHS, if `exact`."""
    figures = shop.figures
    least, worth = climb(figures)
    carts = [shop.buy(Packing.empty(figures), worth)]
    if not _is_good(carts, figures, least):
        carts.append(shop.buy(Packing.empty(figures), worth, ANEW))
    for _ in range(ROUNDS if exact else 0):
        if _is_good(carts, figures, least) or not shop.seen:
            break
        carts.append(_improved(shop))
    return min(carts, key=lambda cart: (int(cart.supply.sum()), cost_of(cart, figures)))


def bound_of(figures: Figures, *, exact: bool) -> float:
    """What helping all these pods costs at the least; with HiGHS, if `exact`."""
    least, _ = climb(figures)
    if exact:
        from bayplan.autoscaler.expanders.mix.highs import bound  # noqa: PLC0415 - an extra

        least = max(least, bound(figures))
    return _rounded_up(least, figures.costs)


def cost_of(cart: Packing, figures: Figures) -> float:
    """What all that is bought costs."""
    return float(sum(lot.nodes * figures.costs[lot.template] for lot in cart.lots))


def _improved(shop: TemplateFillings) -> Packing:
    from bayplan.autoscaler.expanders.mix.highs import how_often  # noqa: PLC0415 - an extra

    figures = shop.figures
    fillings = [(at, counts) for (at, _), counts in shop.seen.items()]
    often, worth = how_often(figures, fillings)
    cart = Packing.empty(figures)
    for (at, counts), times in zip(fillings, np.floor(often + SLACK).tolist(), strict=True):
        if times:
            cart.add(at, counts, int(times))
    shop.buy(Packing.empty(figures), worth)  # for the sake of what it suggests
    return shop.buy(cart, worth)


def _is_good(carts: list[Packing], figures: Figures, least: float) -> bool:
    best = min(carts, key=lambda cart: cost_of(cart, figures))
    enough = _rounded_up(least, figures.costs) * GOOD
    return not best.supply.any() and cost_of(best, figures) <= enough


def _rounded_up(bound: float, costs: FloatArray) -> float:
    """A bound, made a whole number of nodes if all cost the same."""
    safe = bound * (1 - SLACK)
    price = float(costs[0]) if len(costs) else 0.0
    if price > 0 and bool((costs == price).all()):
        return math.ceil(safe / price - SLACK) * price
    return safe
