"""Filling existing nodes with pods of a group: filters only.

Nodes are put in an order, and each pod goes to the first that takes it. By default nodes with the
least free capacity for the group come first, so that large free capacity is kept for what needs it.
Where only one node at a time matters, free capacity is computed once for all nodes, as the plugins
count it; where placing one pod changes the answer of other nodes (spreading, affinity, shared
claims), nodes are evaluated again after every pod, and so are nodes that pods of no lower priority
are nominated for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bayplan.fit.batches.groups import PodEquivalenceGroup, compares_nodes
from bayplan.fit.decision import Decision
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.plugins.base import Filter
from bayplan.fit.plugins.capacity import UNLIMITED
from bayplan.fit.plugins.registry import CAPACITIES
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import BoolArray, FloatArray, IntArray, SlotArray
from bayplan.kube.pods import Pod


def free_capacity(cluster: ClusterState, group: PodEquivalenceGroup) -> IntArray:
    """Return by slot how many more pods of the group fit; never below zero."""
    free: IntArray = np.full(cluster.slots.capacity, UNLIMITED, dtype=np.int64)
    for capacity in CAPACITIES:
        some = (
            capacity.free_capacity(cluster, group) if capacity.free_capacity is not None else None
        )
        if some is not None:
            np.minimum(free, some, out=free)
    return np.maximum(free, 0)


def place_on(snapshot: Snapshot, pod: Pod, node: str) -> None:
    """Assume a pod on a node, with the volumes that it would get there."""
    snapshot.assume(pod, snapshot.decision_on(pod, node))


def place_all_on(
    snapshot: Snapshot, group: PodEquivalenceGroup, pods: Sequence[Pod], node: str
) -> None:
    """Assume pods of a group on a node."""
    if group.requirements is not None and group.requirements.first_consumer:
        for pod in pods:
            place_on(snapshot, pod, node)
        return
    decision = Decision(node)
    for pod in pods:
        snapshot.assume(pod, decision)


def passing(evaluation: Evaluation, slots: SlotArray) -> BoolArray:
    """Return which of these slots' nodes pass every filter."""
    return passing_all(evaluation.filters, slots)


def passing_all(filters: Iterable[Filter], slots: SlotArray) -> BoolArray:
    """Return which of these slots' nodes pass all of these filters."""
    passes: BoolArray = np.ones(len(slots), dtype=np.bool_)
    for one in filters:
        if one.is_active:
            passes &= one.passes(slots)
    return passes


PodPlacement = tuple[Pod, str]
"""A pod, and the name of its node."""
Ranking = IntArray | FloatArray
"""By slot, the nodes to be tried first have the least."""


@dataclass(frozen=True, slots=True)
class FillResult:
    """The pods that were placed, and the rest of the group."""

    placed: tuple[PodPlacement, ...]
    left: PodEquivalenceGroup
    """The group without them."""


def fill(
    snapshot: Snapshot,
    group: PodEquivalenceGroup,
    count: int | None = None,
    among: Collection[str] | None = None,
    *,
    ranking: Ranking | None = None,
) -> FillResult:
    """Place up to `count` pods of a group on nodes of these names, or of any; they are left
    assumed, to be undone with the caller's fork.
    """
    asked = group.of(group.pods[:count])
    free = free_capacity(snapshot.cluster, group)
    slots = _in_order(snapshot, among, free if ranking is None else ranking)
    if not asked.pods or group.refusal or not len(slots):
        return FillResult((), group)
    if _one_node_at_a_time(snapshot, group):
        placed = _fill_at_once(snapshot, asked, slots, free)
        return FillResult(tuple(placed), group.of(group.pods[len(placed) :]))
    placed = _fill_each(snapshot, asked, slots)
    gone = {pod.key for pod, _ in placed}
    return FillResult(tuple(placed), group.of([pod for pod in group.pods if pod.key not in gone]))


def _in_order(snapshot: Snapshot, among: Collection[str] | None, ranking: Ranking) -> SlotArray:
    """The slots of these nodes by rank, and then in an order that does not depend on how they
    came.
    """
    cluster = snapshot.cluster
    by_name = cluster.slots.by_name
    if among is None:
        slots = np.flatnonzero(cluster.alive)
    else:
        slots = np.array([by_name[name] for name in among if name in by_name], dtype=np.intp)
    return slots[np.lexsort((cluster.ties[slots], ranking[slots]))]


def _fill_at_once(
    snapshot: Snapshot, group: PodEquivalenceGroup, slots: SlotArray, free: IntArray
) -> list[PodPlacement]:
    answer = snapshot.evaluation(group.pods[0])
    if not isinstance(answer, Evaluation):
        return []
    placed: list[PodPlacement] = []
    contested = snapshot.nominated_pods_check(group.pods[0]).nominated.by_slot
    for slot in slots[passing(answer, slots)].tolist():
        if slot in contested:
            here = group.of(group.pods[len(placed) :])
            placed += _fill_each(snapshot, here, np.array([slot], dtype=np.intp))
            continue
        node = snapshot.cluster.slots.names[slot]
        pods = group.pods[len(placed) : len(placed) + int(free[slot])]
        place_all_on(snapshot, group, pods, node)
        placed.extend((pod, node) for pod in pods)
        if len(placed) == len(group):
            break
    return placed


def _fill_each(
    snapshot: Snapshot, group: PodEquivalenceGroup, slots: SlotArray
) -> list[PodPlacement]:
    """Place pods one by one; equal ones are not tried once one has failed."""
    placed: list[PodPlacement] = []
    for pod in group.pods:
        node = _first_passing(snapshot, pod, slots)
        if node is not None:
            place_on(snapshot, pod, node)
            placed.append((pod, node))
        elif not group.is_interdependent:
            break
    return placed


def _first_passing(snapshot: Snapshot, pod: Pod, slots: SlotArray) -> str | None:
    answer = snapshot.evaluation(pod)
    if not isinstance(answer, Evaluation):
        return None
    slots = slots[passing(answer, slots)]
    kept = snapshot.nominated_pods_check(pod).refusals_with_nominated(slots.tolist())
    found = next((slot for slot in slots.tolist() if slot not in kept), None)
    return None if found is None else snapshot.cluster.slots.names[found]


def _one_node_at_a_time(snapshot: Snapshot, group: PodEquivalenceGroup) -> bool:
    """Whether a node's answer about a pod rests on what is on that node alone, and one pod more
    takes as much as any other.
    """
    return not compares_nodes(group, frozenset()) and not _some_attached(snapshot, group)


def _some_attached(snapshot: Snapshot, group: PodEquivalenceGroup) -> bool:
    """Whether volumes of the group are attached somewhere, where they take no second attach
    slot.
    """
    cluster = snapshot.cluster
    if not group.own_volumes or not cluster.volume_attachments.by_name:
        return False
    claims = (
        cluster.storage.claim_of(pod, volume)[1]
        for pod in group.pods
        for volume in pod.spec.volumes
    )
    return any(
        claim is not None and cluster.volume_attachments.of_volume(claim.spec.volume_name)
        for claim in claims
    )
