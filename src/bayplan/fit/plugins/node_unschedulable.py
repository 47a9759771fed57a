"""NodeUnschedulable: a cordoned node takes only pods that tolerate its being so."""

from __future__ import annotations

from bayplan.fit.plugins.base import Filter, NodeSetFilter, Question
from bayplan.fit.plugins.hints import Hints, newly
from bayplan.fit.plugins.plugin import Cause, Plugin
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.tolerations import tolerates

NAME = "NodeUnschedulable"
REASON = "node(s) were unschedulable"
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def compile_filter(question: Question) -> Filter | None:
    """The filter, unless the pod tolerates a cordon."""
    if any(tolerates(toleration, CORDON) for toleration in question.shape.tolerations):
        return None
    nodes = question.cluster.node_sets.where(NAME, lambda node: not node.spec.unschedulable)
    return NodeSetFilter(NAME, nodes, REASON)


_HINTS: Hints = {
    Node: lambda _, event: newly(event, lambda node: not node.spec.unschedulable),
}
"""A node that takes pods again."""


PLUGIN = Plugin(
    name=NAME,
    points=("filter",),
    cause=Cause.TAINTS,
    filters=(compile_filter,),
    hints=_HINTS,
)
