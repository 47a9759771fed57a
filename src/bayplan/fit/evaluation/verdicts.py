"""The verdict of every filter and every score on every node, for explanations.

Deciding needs only ranks; this walks the filters in order and keeps, for each node that fails, the
first filter that refused it and why, and for each node that passes, what each score gives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from bayplan.fit.decision import Refusal
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.plugins.base import Filter, LocalScore, RelativeScore
from bayplan.fit.state.columns import ALL_ROWS, BoolArray, IntArray, Rows, SlotArray

NO_REFUSALS: Mapping[int, Refusal] = {}


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Each node by name: refused, or scored."""

    refusals: dict[str, Refusal]
    scores: dict[str, dict[str, int]]
    """By node and plugin the weighted points, with their sum under `total`."""


def refusers(evaluation: Evaluation) -> Iterator[tuple[Filter, SlotArray]]:
    """The filters that refuse nodes, in order, each with the slots that it is the first to
    refuse.
    """
    left = evaluation.request.cluster.alive.copy()
    for one in evaluation.filters:
        if one.is_active:
            slots = np.flatnonzero(left & ~one.passes(ALL_ROWS))
            if len(slots):
                left[slots] = False
                yield one, slots


def verdicts(
    evaluation: Evaluation, with_nominated: Mapping[int, Refusal] = NO_REFUSALS
) -> Verdicts:
    """Return the verdicts of filters and scores on every node.

    `with_nominated` has, by slot, refusals because of nominated pods, which come first.
    """
    cluster = evaluation.request.cluster
    names = cluster.slots.names
    left = cluster.alive.copy()
    refusals: dict[str, Refusal] = {}
    for one, slots in refusers(evaluation):
        left[slots] = False
        found = one.refusals(slots)
        refusals.update(zip((names[slot] for slot in slots.tolist()), found, strict=True))
    for slot, refusal in with_nominated.items():
        left[slot] = False
        refusals[names[slot]] = refusal
    return Verdicts(refusals, _scores(evaluation, left))


def refusing_plugins(evaluation: Evaluation, among: Rows = ALL_ROWS) -> frozenset[str]:
    """Return the plugins that are the first to refuse one of these slots' nodes."""
    left = evaluation.request.cluster.alive[among].copy()
    refusing: set[str] = set()
    for one in evaluation.filters:
        if one.is_active:
            passes = one.passes(among)
            if (left & ~passes).any():
                refusing.add(one.plugin)
            left &= passes
    return frozenset(refusing)


def refusing_drivers(evaluation: Evaluation) -> frozenset[str]:
    """Return the CSI drivers because of which some node is refused."""
    alive = np.flatnonzero(evaluation.request.cluster.alive)
    return frozenset(driver for one in evaluation.filters for driver in one.drivers(alive))


def first_refusal(
    evaluation: Evaluation, slot: int, plugins: frozenset[str] | None = None
) -> Refusal | None:
    """The first filter's refusal of one node; None if it passes them all (or those of some
    plugins).
    """
    row = np.array([slot], dtype=np.intp)
    for one in evaluation.filters:
        asked = one.is_active and (plugins is None or one.name in plugins)
        if asked and not one.passes(row)[0]:
            return one.refusal(slot)
    return None


def _scores(evaluation: Evaluation, feasible: BoolArray) -> dict[str, dict[str, int]]:
    names = evaluation.request.cluster.slots.names
    by_plugin = _points(evaluation, feasible)
    scores = {}
    for slot in np.flatnonzero(feasible).tolist():
        points = {plugin: int(vector[slot]) for plugin, vector in by_plugin.items()}
        scores[names[slot]] = {**points, "total": sum(points.values())}
    return scores


def _points(evaluation: Evaluation, feasible: BoolArray) -> dict[str, IntArray]:
    found: dict[str, IntArray] = {}
    for score in evaluation.scores:
        if isinstance(score, LocalScore):
            found[score.name] = score.points(ALL_ROWS) * score.weight
        elif isinstance(score, RelativeScore) and not score.is_inactive:
            found[score.name] = score.points(feasible) * score.weight
    return found
