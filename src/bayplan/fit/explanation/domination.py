"""Fixes that nobody needs beside another: one that asks for the same and more.

A fix dominates another if each of its steps stands against one of the other's: the same step, less
of the same (a request that shrinks by less), or, for the same node, a step of the same kind that
costs no more. So does one that takes fewer steps of the same kinds, and costs no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bayplan.fit.fixes import Fix, Step, Steps, cost_of


def undominated(fixes: Iterable[Fix]) -> list[Fix]:
    """The fixes that no other dominates, the cheapest first."""
    kept: list[Fix] = []
    for fix in sorted(fixes, key=order):
        if not any(dominates(other, fix) for other in kept):
            kept.append(fix)
    return kept


def dominates(fix: Fix, other: Fix) -> bool:
    """Whether nobody needs the other fix beside this one."""
    if Counter(fix.kinds) < Counter(other.kinds) and fix.cost <= other.cost:
        return True
    left: list[Step] = list(other.steps)
    for step in fix.steps:
        match = next((one for one in left if _asks_no_more(step, one, fix, other)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def order(fix: Fix) -> tuple[float, tuple[str, ...]]:
    """The cheapest first."""
    return order_of(fix.steps)


def order_of(steps: Steps) -> tuple[float, tuple[str, ...]]:
    """The same for steps."""
    return cost_of(steps), tuple(step.text for step in steps)


def _asks_no_more(step: Step, other: Step, fix: Fix, another: Fix) -> bool:
    if step.kind is not other.kind:
        return False
    if step.text == other.text:
        return True
    same_thing = bool(step.less_of) and step.less_of == other.less_of
    return (same_thing or fix.node == another.node) and step.cost <= other.cost
