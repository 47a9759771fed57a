"""TaintToleration: a node's NoSchedule and NoExecute taints must all be tolerated."""

from __future__ import annotations

from bayplan.fit.filters.base import Filter, NodeSetFilter, Question
from bayplan.fit.filters.waiting import Hints, newly
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import NodeSet
from bayplan.kube.nodes import Node
from bayplan.kube.tolerations import find_untolerated

NAME = "TaintToleration"
REASON = "node(s) had untolerated taint(s)"
REPELLING = frozenset({"NoSchedule", "NoExecute"})


def compile_filter(question: Question) -> Filter | None:
    """The filter."""
    return NodeSetFilter(NAME, tolerated_nodes(question.shape, question.cluster), REASON)


def tolerated_nodes(shape: PodSignature, cluster: Cluster) -> NodeSet:
    """The nodes whose taints a shape tolerates."""
    return cluster.node_sets.where(
        (NAME, shape.tolerations_key),
        lambda node: is_tolerated(shape, node),
    )


def is_tolerated(shape: PodSignature, node: Node) -> bool:
    """Whether a shape tolerates all taints of a node that repel."""
    taints = node.spec.taints
    return not taints or find_untolerated(taints, shape.tolerations, REPELLING) is None


HINTS: Hints = {
    Node: lambda waiting, event: newly(event, lambda node: is_tolerated(waiting.shape, node)),
}
"""A node that lost its taints."""
