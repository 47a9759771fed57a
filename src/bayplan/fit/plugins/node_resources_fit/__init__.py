"""NodeResourcesFit: what a pod requests must be free; emptier nodes are better."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayplan.fit.plugins.capacity import Capacity, EquivalenceClass, NodeCapacity, PodUsage
from bayplan.fit.plugins.node_resources_fit.arguments import ARGUMENTS, ResourceFitSettings
from bayplan.fit.plugins.node_resources_fit.explanation import EXPLAINER
from bayplan.fit.plugins.node_resources_fit.filter import HINTS, NAME, compile_filter
from bayplan.fit.plugins.node_resources_fit.score import compile_score
from bayplan.fit.plugins.plugin import FILTERING, SCORING, Cause, SchedulerPlugin
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import IntArray


def _free_capacity(cluster: ClusterState, pods: EquivalenceClass) -> IntArray:
    """By slot, as many as the scarcest resource allows."""
    resources = cluster.resources
    need = resources.need(pods.signature.requests)
    asked = np.flatnonzero(need > 0)
    free_capacity: IntArray = (resources.free[:, asked] // need[asked]).min(axis=1)
    return free_capacity


def _measure(cluster: ClusterState, node: str, groups: Sequence[EquivalenceClass]) -> NodeCapacity:
    """An axis for every column; the first counts pods."""
    resources = cluster.resources
    for pods in groups:
        resources.need(pods.signature.requests)  # so that all have a column
    columns = resources.columns

    def usage(pods: EquivalenceClass) -> PodUsage:
        requests = pods.signature.requests.items()
        return PodUsage({0: 1, **{columns[name]: amount for name, amount in requests}})

    return NodeCapacity(resources.free[cluster.slots.by_name[node]].tolist(), usage)


CAPACITY = Capacity(free_capacity=_free_capacity, measure=_measure)


PLUGIN = SchedulerPlugin(
    name=NAME,
    points=(*FILTERING, *SCORING),
    node_fields=("status.allocatable",),
    cause=Cause.RESOURCES,
    refuses_for_good=True,
    filters=(compile_filter,),
    score=compile_score,
    hints=HINTS,
    capacity=CAPACITY,
    arguments=ARGUMENTS,
    has_other_rules=lambda request: request.plugins.args_of(ResourceFitSettings).ignores,
    explainer=EXPLAINER,
)
