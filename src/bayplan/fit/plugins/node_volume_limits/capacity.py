"""How many volumes of each driver a node can still attach, and how many pods use.

A volume that pods share takes one attach slot on a node, however many of them use it there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from bayplan.fit.plugins.capacity import (
    UNLIMITED,
    Capacity,
    EquivalenceClass,
    NodeCapacity,
    PodUsage,
)
from bayplan.fit.plugins.node_volume_limits.filter import nodes_with_csinode
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import BoolArray, IntArray
from bayplan.fit.volumes.identity import VolumeId, VolumeIdentity


def _free_capacity(cluster: ClusterState, pods: EquivalenceClass) -> IntArray | None:
    """Return by slot how many pods fit by the driver that is nearest to its limit."""
    if not pods.own_volumes and not pods.shared_volumes:
        return None
    places = _places(cluster, pods)
    return np.minimum.reduce(places) if places else None


def _places(cluster: ClusterState, pods: EquivalenceClass) -> list[IntArray]:
    """Return for each driver of the pods' volumes how many pods fit, by slot."""
    each: dict[str, IntArray] = defaultdict(lambda: _nothing(cluster))
    once: dict[str, IntArray] = defaultdict(lambda: _nothing(cluster))
    for one, count in pods.own_volumes:
        for driver, where in _counted(cluster, one):
            each[driver] += where * count
    for one in pods.shared_volumes:
        for driver, where in _counted(cluster, one):
            once[driver] += where & ~_in_use(cluster, one, driver)
    return [_of_driver(cluster, driver, each[driver], once[driver]) for driver in {**each, **once}]


def _of_driver(cluster: ClusterState, driver: str, each: IntArray, once: IntArray) -> IntArray:
    columns = cluster.attached_volumes.columns(driver)
    left = columns.limit - columns.used - once
    by_pod = left // np.maximum(each, 1)
    by_first = np.where((once > 0) & (left < 0), 0, UNLIMITED)
    return np.where(each > 0, by_pod, by_first)


def _counted(cluster: ClusterState, one: VolumeIdentity) -> list[tuple[str, BoolArray]]:
    """The names that a volume counts under, and the slots where it does."""
    if one.plugin is None:
        return [(one.driver, cluster.alive)]
    with_csinode = nodes_with_csinode(cluster).mask()
    return [(one.driver, with_csinode), (one.plugin.name, ~with_csinode)]


def _in_use(cluster: ClusterState, one: VolumeIdentity, driver: str) -> BoolArray:
    used = np.zeros(cluster.slots.capacity, dtype=np.bool_)
    volume = one.on_node(has_csinode=driver == one.driver)
    used[cluster.attached_volumes.holders(volume, cluster.rules)] = True
    return used


def _nothing(cluster: ClusterState) -> IntArray:
    return np.zeros(cluster.slots.capacity, dtype=np.int64)


# -- a new node ----------------------------------------------------------------------------------


def _measure(cluster: ClusterState, node: str, groups: Sequence[EquivalenceClass]) -> NodeCapacity:
    """An axis for every driver (or in-tree plugin) that volumes count for on the node."""
    has_csinode, slot = node in cluster.csinodes, cluster.slots.by_name[node]

    def there(one: VolumeIdentity) -> VolumeId:
        return one.on_node(has_csinode=has_csinode)

    used = [there(one) for pods in groups for one in _volumes(pods)]
    axes = {driver: axis for axis, driver in enumerate(sorted({one.driver for one in used}))}

    def usage(pods: EquivalenceClass) -> PodUsage:
        amounts: dict[int, int] = defaultdict(int)
        for one, count in pods.own_volumes:
            amounts[axes[there(one).driver]] += count
        shared = [there(one) for one in pods.shared_volumes]
        return PodUsage(amounts, {_named(one): axes[one.driver] for one in shared})

    places = [cluster.attached_volumes.columns(driver) for driver in axes]
    shared = {there(one) for pods in groups for one in pods.shared_volumes}
    holders = cluster.attached_volumes.holders
    present = (_named(one) for one in shared if slot in holders(one, cluster.rules))
    free = [int(one.limit[slot] - one.used[slot]) for one in places]
    return NodeCapacity(free, usage, frozenset(present))


def _volumes(pods: EquivalenceClass) -> list[VolumeIdentity]:
    return [*(one for one, _ in pods.own_volumes), *pods.shared_volumes]


def _named(one: VolumeId) -> str:
    return f"{one.driver}/{one.handle}"


CAPACITY = Capacity(free_capacity=_free_capacity, measure=_measure)
