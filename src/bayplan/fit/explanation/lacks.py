"""What nodes lack to take a pod: every plugin that refuses it, not only the first, and what lifting
that costs at the least.

Nodes that are refused by the same plugins, over the same taints and the same labels, lack alike;
of those the ones that are nearest in resources stand for all. So thousands of nodes are a few
groups, and the nearest of them are known before anything is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.explanation.neighbours import topology_keys
from bayplan.fit.explanation.steps.labels import is_kept_label, label_keys, mismatch
from bayplan.fit.explanation.steps.taints import untolerated
from bayplan.fit.plugins.base import Filter
from bayplan.fit.plugins.inter_pod_affinity.filter import InterPodAffinity
from bayplan.fit.plugins.node_affinity.named_nodes import NAME as NOT_ASKED
from bayplan.fit.plugins.node_resources_fit.filter import NodeResourcesFit
from bayplan.fit.plugins.node_volume_limits.filter import NodeVolumeLimits
from bayplan.fit.refusal import Refusal
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.columns import ALL_ROWS
from bayplan.fit.state.volume_report import volumes_on
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.tolerations import tells_state

MOST_ALIKE = 2
"""Nodes that lack alike, of many, of which more would tell nothing."""
FEW_NODES = 64
"""So few that none need stand for others."""
HOPELESS = 100.0
_LEAST: Mapping[str, float] = {
    "NodeUnschedulable": 1.0,
    NOT_ASKED: 4.0,
    "NodePorts": 3.0,
    "VolumeRestrictions": 3.0,
    "NodeVolumeLimits": 2.5,
    "VolumeBinding": 3.5,
    "PodTopologySpread": 2.5,
    "InterPodAffinity": 3.0,
}
"""By plugin, what the cheapest step costs that could lift its refusal."""

Costs = npt.NDArray[np.float64]
Lack = tuple[Hashable, float]
"""What nodes must have in common to lack alike, and what lifting it costs at the least."""
OfNode = Callable[[Node, int], Lack]
_SEVERAL_IN_THE_WAY = 2.0


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
        costs[refused] += _least(snapshot, pod, one, refused, likes)
    for slot, refusal in snapshot.nominated_pods_check(pod).refusals_beside(names).items():
        if not names[slot]:
            names[slot].append(refusal.plugin)
            costs[slot] += _LEAST.get(refusal.plugin, 3.0)
    for slot, plugins in names.items():
        if plugins:
            cost = float(costs[slot]) + 0.5 * (len(plugins) - 1)
            yield cost, cluster.slots.names[slot], tuple(plugins), likes.get(slot, ())


def _least(
    snapshot: Snapshot,
    pod: Pod,
    one: Filter,
    refused: npt.NDArray[np.intp],
    likes: dict[int, tuple[Hashable, ...]],
) -> Costs | float:
    """What lifting a plugin's refusals costs at the least, by node."""
    if isinstance(one, NodeResourcesFit):
        shares = one.missing_shares(refused)
        return 2.0 + np.minimum(6.0 * shares, 1.5 + shares / 10)
    if isinstance(one, NodeVolumeLimits):
        of_node = _places(snapshot, one)
    else:
        of_node = _OF_NODE.get(one.name, _reasons)(pod, one)
    found: list[float] = []
    for slot in refused.tolist():
        like, cost = of_node(snapshot.cluster.node_at(slot), slot)
        likes[slot] = (*likes.get(slot, ()), like)
        found.append(cost)
    if isinstance(one, InterPodAffinity):
        several = (one.keeping_off(refused) > 1).tolist()
        each = zip(found, several, strict=True)
        found = [cost + _SEVERAL_IN_THE_WAY * more for cost, more in each]
    return np.array(found, dtype=np.float64)


def _reasons(_: Pod, one: Filter) -> OfNode:
    """Where only the plugin knows, nodes that it refuses for the same reasons lack alike."""
    cost = _LEAST.get(one.name, HOPELESS)
    return lambda _, slot: (one.refusal(slot).reasons, cost)


def _places(snapshot: Snapshot, one: NodeVolumeLimits) -> OfNode:
    """Of places for volumes, those matter that volumes take which no pod there uses."""
    cluster = snapshot.cluster

    def of_node(node: Node, slot: int) -> Lack:
        reasons, full = one.refusal(slot).reasons, one.full_drivers(slot)
        reports = (volumes_on(cluster, node.name, driver) for driver in full)
        idle = tuple(sum(not use.pods for use in report.uses) for report in reports)
        return (reasons, tuple(full), idle), 2.5 if any(idle) else 3.0

    return of_node


def _domains(pod: Pod, one: Filter) -> OfNode:
    """Of rules between pods, the domains matter that a node is in."""
    keys, cost = sorted(topology_keys(pod)), _LEAST.get(one.name, HOPELESS)

    def of_node(node: Node, slot: int) -> Lack:
        labels = node.metadata.labels
        return (one.refusal(slot).reasons, *(labels.get(key) for key in keys)), cost

    return of_node


def _taints(pod: Pod, _: Filter) -> OfNode:
    known: dict[Hashable, Lack] = {}

    def of_node(node: Node, _: int) -> Lack:
        key = tuple((taint.key, taint.value, taint.effect) for taint in node.spec.taints)
        if key not in known:
            taints = untolerated(node, pod)
            cost = sum(3.0 if tells_state(taint) else 2.0 for taint in taints)
            known[key] = (tuple((t.key, t.value, t.effect) for t in taints), cost)
        return known[key]

    return of_node


def _labels(pod: Pod, _: Filter) -> OfNode:
    keys = sorted(label_keys(pod))
    known: dict[Hashable, Lack] = {}

    def of_node(node: Node, _: int) -> Lack:
        labels = node.metadata.labels
        key = tuple(labels.get(key) for key in keys)
        if key not in known:
            found = mismatch(pod, node)
            wanted = {*found.selector, *(e.key for e in found.expressions)}
            each = 3.0 if any(map(is_kept_label, wanted)) else 2.0
            known[key] = (key, each * len(wanted) or 4.0)
        return known[key]

    return of_node


_OF_NODE: Mapping[str, Callable[[Pod, Filter], OfNode]] = {
    "TaintToleration": _taints,
    "NodeAffinity": _labels,
    "PodTopologySpread": _domains,
    "InterPodAffinity": _domains,
}
