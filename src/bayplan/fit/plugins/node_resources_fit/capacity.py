"""What is free of a node's resources, and what pods request of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayplan.fit.plugins.capacity import AlikePods, Capacity, NodeCapacity, Take
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import IntArray


def _room(cluster: Cluster, pods: AlikePods) -> IntArray:
    """By slot, as many as the scarcest resource allows."""
    resources = cluster.resources
    need = resources.need(pods.signature.requests)
    asked = np.flatnonzero(need > 0)
    room: IntArray = (resources.free[:, asked] // need[asked]).min(axis=1)
    return room


def _measure(cluster: Cluster, node: str, groups: Sequence[AlikePods]) -> NodeCapacity:
    """An axis for every column; the first counts pods."""
    resources = cluster.resources
    for pods in groups:
        resources.need(pods.signature.requests)  # so that all have a column
    columns = resources.columns

    def take(pods: AlikePods) -> Take:
        requests = pods.signature.requests.items()
        return Take({0: 1, **{columns[name]: amount for name, amount in requests}})

    return NodeCapacity(resources.free[cluster.slots.by_name[node]].tolist(), take)


CAPACITY = Capacity(room=_room, measure=_measure)
