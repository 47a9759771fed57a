"""Nodes that refuse a pod: by which plugins, not only the first, and what lifting that costs at the
least.

Nodes that refuse by the same plugins, over the same taints and the same labels, are one group; of
those the ones that are nearest in resources represent all. So thousands of nodes are a few
groups, and the nearest of them are known before anything is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from bayplan.fit.decision import Refusal
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.plugins.explanation import Costs
from bayplan.fit.plugins.registry import explainer_of
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.columns import ALL_ROWS
from bayplan.kube.pods import Pod

MAX_PER_GROUP = 2
"""Nodes of one group, of many, beyond which more would add nothing."""
FEW_NODES = 64
"""So few nodes that none need represent others."""
DEFAULT_COST = 3.0
"""The cost of lifting a refusal because of nominated pods, if its plugin has none."""


@dataclass(frozen=True, slots=True)
class RefusingNode:
    """A node, the plugins that refuse the pod there, and the cost of lifting that."""

    node: str
    plugins: tuple[str, ...]
    """All that refuse the pod there, in the order in which they are run."""
    cost: float
    """What lifting that costs at the least."""
    is_duplicate: bool = False
    """Whether other nodes of its group represent it."""


def refusing_nodes(snapshot: Snapshot, pod: Pod) -> list[RefusingNode]:
    """Return the nodes that refuse a pod, those that lack the least first; of many in one group the
    first few represent the rest.
    """
    evaluation = snapshot.evaluation(pod)
    if isinstance(evaluation, Refusal):
        return []
    counts: Counter[Hashable] = Counter()
    found: list[RefusingNode] = []
    most = FEW_NODES if len(snapshot.cluster.slots) <= FEW_NODES else MAX_PER_GROUP
    for cost, name, plugins, group in sorted(_repairs(snapshot, pod, evaluation), key=_order):
        counts[plugins, group] += 1
        found.append(RefusingNode(name, plugins, cost, is_duplicate=counts[plugins, group] > most))
    return found


def refusals_on(snapshot: Snapshot, pod: Pod, node: str) -> tuple[Refusal, ...]:
    """Return all refusals of a pod on a node."""
    evaluation, check = snapshot.evaluation(pod), snapshot.nominated_pods_check(pod)
    if isinstance(evaluation, Refusal):
        return (evaluation,)
    slot = snapshot.cluster.slots.by_name[node]
    row = np.array([slot], dtype=np.intp)
    found = [
        one.refusal(slot)
        for one in evaluation.filters
        if one.is_active and not one.passes(row)[0]
    ]  # fmt: skip
    with_nominated = check.refusal_with_nominated(slot)
    return tuple(found) if found or with_nominated is None else (with_nominated,)


_Row = tuple[float, str, tuple[str, ...], Hashable]


def _order(row: _Row) -> tuple[float, str]:
    return row[0], row[1]


def _repairs(snapshot: Snapshot, pod: Pod, evaluation: Evaluation) -> Iterator[_Row]:
    """Yield for each node: cost, name, plugins, and what else its group has in common."""
    cluster = snapshot.cluster
    slots = np.flatnonzero(cluster.alive)
    names: dict[int, list[str]] = {slot: [] for slot in slots.tolist()}
    costs: Costs = np.zeros(cluster.slots.capacity)
    groups_by_node: dict[int, tuple[Hashable, ...]] = {}
    for one in evaluation.filters:
        if not one.is_active:
            continue
        refused = slots[~one.passes(ALL_ROWS)[slots]]
        for slot in refused.tolist():
            names[slot].append(one.name)
        repair_estimate = explainer_of(one.name).repair_estimate(one, pod, cluster, refused)
        costs[refused] += repair_estimate.costs
        for slot, group in zip(
            refused.tolist(), repair_estimate.groups_by_node or (), strict=False
        ):
            groups_by_node[slot] = (*groups_by_node.get(slot, ()), group)
    for slot, refusal in snapshot.nominated_pods_check(pod).refusals_with_nominated(names).items():
        if not names[slot]:
            names[slot].append(refusal.plugin)
            costs[slot] += explainer_of(refusal.plugin).least_cost or DEFAULT_COST
    for slot, plugins in names.items():
        if plugins:
            cost = float(costs[slot]) + 0.5 * (len(plugins) - 1)
            yield cost, cluster.slots.names[slot], tuple(plugins), groups_by_node.get(slot, ())
