"""NodeAffinity: the pod's nodeSelector and its required node affinity."""

from __future__ import annotations

from bayplan.fit.filters.base import Arrival, Filter, NodeSetFilter, Question
from bayplan.fit.refusal import Refusal
from bayplan.fit.shapes.shape import Shape
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.nodesets import NodeSet

NAME = "NodeAffinity"
REASON = "node(s) didn't match Pod's node affinity/selector"
CONFLICT = "pod affinity terms conflict"


def compile_filter(question: Question) -> Filter | None:
    """The filter, if the pod says anything of nodes."""
    if question.shape.required_nodes.says_nothing:
        return None
    return NodeSetFilter(NAME, required_nodes(question.shape, question.cluster), REASON)


def refusal_before_nodes(arrival: Arrival) -> Refusal | None:
    """Required terms that name nodes, and no node that all of one term's fields name."""
    names = arrival.shape.node_names
    return Refusal.unresolvable(NAME, CONFLICT) if names is not None and not names else None


def required_nodes(shape: Shape, cluster: Cluster) -> NodeSet:
    """The nodes that a shape's selector and required affinity allow."""
    required = shape.required_nodes
    return cluster.node_sets.where((NAME, required), required.matches)
