"""NodeName: a pod that names its node goes there or nowhere."""

from __future__ import annotations

from bayplan.fit.plugins.base import EvaluationRequest, Filter, NodeSetFilter
from bayplan.fit.plugins.hints import Hints
from bayplan.fit.plugins.plugin import Cause, SchedulerPlugin
from bayplan.kube.nodes import Node

NAME = "NodeName"
REASON = "node(s) didn't match the requested node name"


def compile_filter(request: EvaluationRequest) -> Filter | None:
    """Compile the filter, if the pod names a node."""
    wanted = request.node_name
    if not wanted:
        return None
    nodes = request.cluster.node_sets.where((NAME, wanted), lambda node: node.name == wanted)
    return NodeSetFilter(NAME, nodes, REASON)


_HINTS: Hints = {
    Node: lambda pending, event: event.before is None and event.key == pending.pod.spec.node_name,
}
"""The node itself."""


PLUGIN = SchedulerPlugin(
    name=NAME,
    points=("filter",),
    node_fields=("metadata.name",),
    cause=Cause.AFFINITY,
    filters=(compile_filter,),
    hints=_HINTS,
)
