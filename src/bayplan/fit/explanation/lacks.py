"""What nodes lack to take a pod: every plugin that refuses it, not only the first, and what lifting
that costs at the least.

Nodes that are refused by the same plugins, over the same taints and the same labels, lack alike;
of those the ones that are nearest in resources stand for all. So thousands of nodes are a few
groups, and the nearest of them are known before anything is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.plugins.registry import explaining
from bayplan.fit.plugins.trial import Costs
from bayplan.fit.refusal import Refusal
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.columns import ALL_ROWS
from bayplan.kube.pods import Pod

MOST_ALIKE = 2
"""Nodes that lack alike, of many, of which more would tell nothing."""
FEW_NODES = 64
"""So few that none need stand for others."""
OTHERWISE = 3.0
"""What lifting a refusal beside nominated pods costs, if its plugin does not say."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """A node, and what it lacks."""

    node: str
    plugins: tuple[str, ...]
    """All that refuse the pod there, in the order in which they are asked."""
    cost: float
    """What lifting that costs at the least."""
    is_spare: bool = False
    """Whether others that lack alike stand for it."""


def lacking_nodes(snapshot: Snapshot, pod: Pod) -> list[Lacking]:
    """The nodes that refuse a pod, those that lack the least first; of many that lack alike, the
    first few stand for the rest.
    """
    evaluation = snapshot.evaluation(pod)
    if isinstance(evaluation, Refusal):
        return []
    alike: Counter[Hashable] = Counter()
    found: list[Lacking] = []
    most = FEW_NODES if len(snapshot.cluster.slots) <= FEW_NODES else MOST_ALIKE
    for cost, name, plugins, like in sorted(_lacks(snapshot, pod, evaluation), key=_order):
        alike[plugins, like] += 1
        found.append(Lacking(name, plugins, cost, is_spare=alike[plugins, like] > most))
    return found


def refusals_on(snapshot: Snapshot, pod: Pod, node: str) -> tuple[Refusal, ...]:
    """Everything that refuses a pod on a node."""
    evaluation, check = snapshot.evaluation(pod), snapshot.nominated_pods_check(pod)
    if isinstance(evaluation, Refusal):
        return (evaluation,)
    slot = snapshot.cluster.slots.by_name[node]
    row = np.array([slot], dtype=np.intp)
    found = [
        one.refusal(slot)
        for one in evaluation.filters
        if one.has_say and not one.passes(row)[0]
    ]  # fmt: skip
    beside = check.refusal_beside(slot)
    return tuple(found) if found or beside is None else (beside,)


_Row = tuple[float, str, tuple[str, ...], Hashable]


def _order(row: _Row) -> tuple[float, str]:
    return row[0], row[1]


def _lacks(snapshot: Snapshot, pod: Pod, evaluation: Evaluation) -> Iterator[_Row]:
    """For each node: cost, name, plugins, and what else it must have in common to lack alike."""
    cluster = snapshot.cluster
    slots = np.flatnonzero(cluster.alive)
    names: dict[int, list[str]] = {slot: [] for slot in slots.tolist()}
    costs: Costs = np.zeros(cluster.slots.capacity)
    likes: dict[int, tuple[Hashable, ...]] = {}
    for one in evaluation.filters:
        if not one.has_say:
            continue
        refused = slots[~one.passes(ALL_ROWS)[slots]]
        for slot in refused.tolist():
            names[slot].append(one.name)
        lacks = explaining(one.name).lacks(one, pod, cluster, refused)
        costs[refused] += lacks.costs
        for slot, like in zip(refused.tolist(), lacks.likes or (), strict=False):
            likes[slot] = (*likes.get(slot, ()), like)
    for slot, refusal in snapshot.nominated_pods_check(pod).refusals_beside(names).items():
        if not names[slot]:
            names[slot].append(refusal.plugin)
            costs[slot] += explaining(refusal.plugin).least_cost or OTHERWISE
    for slot, plugins in names.items():
        if plugins:
            cost = float(costs[slot]) + 0.5 * (len(plugins) - 1)
            yield cost, cluster.slots.names[slot], tuple(plugins), likes.get(slot, ())
