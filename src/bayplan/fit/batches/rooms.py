"""How many more pods of a group each node has room for, asked of all nodes at once.

Only what one node has matters here: resources, host ports, disks, and places for volumes. What
compares nodes (spreading, affinity) is no question of room.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from bayplan.fit.batches.exclusions import excludes_itself
from bayplan.fit.batches.groups import Group
from bayplan.fit.plugins.node_volume_limits.filter import nodes_with_csinode
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import BoolArray, IntArray
from bayplan.fit.volumes.identity import VolumeIdentity

PLENTY = 1 << 40
"""Room for any number."""


def rooms(cluster: Cluster, group: Group) -> IntArray:
    """By slot, how many more pods of the group would find what they need; never below zero."""
    resources = cluster.resources
    need = resources.need(group.signature.requests)
    asked = np.flatnonzero(need > 0)
    room: IntArray = (resources.free[:, asked] // need[asked]).min(axis=1)
    if group.own_volumes or group.shared_volumes:
        for places in _places(cluster, group):
            np.minimum(room, places, out=room)
    most = 1 if excludes_itself(group) else PLENTY
    return np.clip(room, 0, most)


def _places(cluster: Cluster, group: Group) -> list[IntArray]:
    """For each driver that counts volumes of the group: how many pods have a place, by slot."""
    each: dict[str, IntArray] = defaultdict(lambda: _nothing(cluster))
    once: dict[str, IntArray] = defaultdict(lambda: _nothing(cluster))
    for one, count in group.own_volumes:
        for driver, where in _counted(cluster, one):
            each[driver] += where * count
    for one in group.shared_volumes:
        for driver, where in _counted(cluster, one):
            once[driver] += where & ~_in_use(cluster, one, driver)
    return [_room(cluster, driver, each[driver], once[driver]) for driver in {**each, **once}]


def _room(cluster: Cluster, driver: str, each: IntArray, once: IntArray) -> IntArray:
    columns = cluster.attached_volumes.columns(driver)
    left = columns.limit - columns.used - once
    by_pod = left // np.maximum(each, 1)
    by_first = np.where((once > 0) & (left < 0), 0, PLENTY)
    return np.where(each > 0, by_pod, by_first)


def _counted(cluster: Cluster, one: VolumeIdentity) -> list[tuple[str, BoolArray]]:
    """The names that a volume counts under, and the slots where it does."""
    if one.plugin is None:
        return [(one.driver, cluster.alive)]
    with_csinode = nodes_with_csinode(cluster).mask()
    return [(one.driver, with_csinode), (one.plugin.name, ~with_csinode)]


def _in_use(cluster: Cluster, one: VolumeIdentity, driver: str) -> BoolArray:
    used = np.zeros(cluster.slots.capacity, dtype=np.bool_)
    volume = one.on_node(has_csinode=driver == one.driver)
    used[list(cluster.attached_volumes.users(volume))] = True
    return used


def _nothing(cluster: Cluster) -> IntArray:
    return np.zeros(cluster.slots.capacity, dtype=np.int64)
