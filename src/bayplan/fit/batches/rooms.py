"""How many more pods of a group each node has room for, asked of all nodes at once.

Only what one node has matters here, as the plugins count it. What compares nodes (spreading,
affinity) is no question of room.
"""

from __future__ import annotations

import numpy as np

from bayplan.fit.batches.groups import Group
from bayplan.fit.plugins.capacity import PLENTY
from bayplan.fit.plugins.registry import CAPACITIES
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import IntArray


def rooms(cluster: Cluster, group: Group) -> IntArray:
    """By slot, how many more pods of the group would find what they need; never below zero."""
    room: IntArray = np.full(cluster.slots.capacity, PLENTY, dtype=np.int64)
    for capacity in CAPACITIES:
        some = capacity.room(cluster, group) if capacity.room is not None else None
        if some is not None:
            np.minimum(room, some, out=room)
    return np.maximum(room, 0)
