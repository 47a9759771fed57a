"""How many pods of a group the nodes that are there take, and which: filters only.

Nodes are put in an order, and each pod goes to the first that takes it. Unless told otherwise,
nodes with the least room for the group come first, so that what has much room keeps it for what
needs it. Where only one node at a time matters, rooms are worked out once for all nodes; where
placing one pod changes what other nodes say (spreading, affinity, claims in common), nodes are
asked again after every pod, and so are nodes that pods of no lower priority are nominated for.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from bayplan.fit.batches.comparing import compares_nodes
from bayplan.fit.batches.groups import Group
from bayplan.fit.batches.placing import passing, place_all_on, place_on
from bayplan.fit.batches.rooms import rooms
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.columns import FloatArray, IntArray, SlotArray
from bayplan.kube.pods import Pod

Placed = tuple[Pod, str]
"""A pod, and the name of its node."""
Ranking = IntArray | FloatArray
"""By slot, the nodes to be tried first have the least."""


@dataclass(frozen=True, slots=True)
class Filled:
    """Who found a place, and where."""

    placed: tuple[Placed, ...]
    left: Group
    """The group without them."""


def fill(
    snapshot: Snapshot,
    group: Group,
    count: int | None = None,
    among: Collection[str] | None = None,
    *,
    ranking: Ranking | None = None,
) -> Filled:
    """Place up to `count` pods of a group on nodes of these names, or of any; they are left
    assumed, to be taken back with the caller's fork.
    """
    asked = group.of(group.pods[:count])
    room = rooms(snapshot.cluster, group)
    slots = _in_order(snapshot, among, room if ranking is None else ranking)
    if not asked.pods or group.refusal or not len(slots):
        return Filled((), group)
    if _one_node_at_a_time(snapshot, group):
        placed = _fill_at_once(snapshot, asked, slots, room)
        return Filled(tuple(placed), group.of(group.pods[len(placed) :]))
    placed = _fill_each(snapshot, asked, slots)
    gone = {pod.key for pod, _ in placed}
    return Filled(tuple(placed), group.of([pod for pod in group.pods if pod.key not in gone]))


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
    snapshot: Snapshot, group: Group, slots: SlotArray, room: IntArray
) -> list[Placed]:
    answer = snapshot.evaluation(group.pods[0])
    if not isinstance(answer, Evaluation):
        return []
    placed: list[Placed] = []
    contested = snapshot.nominated_pods_check(group.pods[0]).nominated.by_slot
    for slot in slots[passing(answer, slots)].tolist():
        if slot in contested:
            here = group.of(group.pods[len(placed) :])
            placed += _fill_each(snapshot, here, np.array([slot], dtype=np.intp))
            continue
        node = snapshot.cluster.slots.names[slot]
        pods = group.pods[len(placed) : len(placed) + int(room[slot])]
        place_all_on(snapshot, group, pods, node)
        placed.extend((pod, node) for pod in pods)
        if len(placed) == len(group):
            break
    return placed


def _fill_each(snapshot: Snapshot, group: Group, slots: SlotArray) -> list[Placed]:
    """Place pods one by one; equal ones are not tried once one has failed."""
    placed: list[Placed] = []
    for pod in group.pods:
        node = _first_passing(snapshot, pod, slots)
        if node is not None:
            place_on(snapshot, pod, node)
            placed.append((pod, node))
        elif not group.hinges:
            break
    return placed


def _first_passing(snapshot: Snapshot, pod: Pod, slots: SlotArray) -> str | None:
    answer = snapshot.evaluation(pod)
    if not isinstance(answer, Evaluation):
        return None
    slots = slots[passing(answer, slots)]
    kept = snapshot.nominated_pods_check(pod).refusals_beside(slots.tolist())
    found = next((slot for slot in slots.tolist() if slot not in kept), None)
    return None if found is None else snapshot.cluster.slots.names[found]


def _one_node_at_a_time(snapshot: Snapshot, group: Group) -> bool:
    """Whether what a node says of a pod rests on what is on that node alone, and one pod more
    takes as much as any other.
    """
    return not compares_nodes(group, frozenset()) and not _some_attached(snapshot, group)


def _some_attached(snapshot: Snapshot, group: Group) -> bool:
    """Whether volumes of the group are attached somewhere, where they take no place again."""
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
