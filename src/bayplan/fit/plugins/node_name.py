"""NodeName: a pod that names its node goes there or nowhere."""

from __future__ import annotations

from bayplan.fit.plugins.base import Filter, NodeSetFilter, Question
from bayplan.fit.plugins.hints import Hints
from bayplan.fit.plugins.plugin import Cause, Plugin
from bayplan.kube.nodes import Node

NAME = "NodeName"
REASON = "node(s) didn't match the requested node name"


def compile_filter(question: Question) -> Filter | None:
    """The filter, if the pod names a node."""
    wanted = question.node_name
    if not wanted:
        return None
    nodes = question.cluster.node_sets.where((NAME, wanted), lambda node: node.name == wanted)
    return NodeSetFilter(NAME, nodes, REASON)


_HINTS: Hints = {
    Node: lambda waiting, event: event.before is None and event.key == waiting.pod.spec.node_name,
}
"""The node itself."""


PLUGIN = Plugin(
    name=NAME,
    points=("filter",),
    node_fields=("metadata.name",),
    cause=Cause.AFFINITY,
    filters=(compile_filter,),
    hints=_HINTS,
)
