"""NodeAffinity: the pod's nodeSelector and its required node affinity."""

from __future__ import annotations

from bayplan.fit.events import Event
from bayplan.fit.plugins.base import Arrival, Filter, NodeSetFilter, Question
from bayplan.fit.plugins.hints import Hints, Waiting, arrival_or_labels
from bayplan.fit.refusal import Refusal
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import NodeSet
from bayplan.kube.nodes import Node

NAME = "NodeAffinity"
REASON = "node(s) didn't match Pod's node affinity/selector"
ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
CONFLICT = "pod affinity terms conflict"


def compile_filter(question: Question) -> Filter | None:
    """The filter, if the pod says anything of nodes."""
    if question.signature.required_nodes.says_nothing:
        return None
    return NodeSetFilter(NAME, required_nodes(question.signature, question.cluster), REASON)


def compile_added(question: Question) -> Filter | None:
    """The filter of what the profile asks of nodes for every pod."""
    required = question.plugins.added_affinity.required
    if required is None:
        return None
    nodes = question.cluster.node_sets.where((NAME, "added", required), required.matches)
    return NodeSetFilter(NAME, nodes, ENFORCED)


def refusal_before_nodes(arrival: Arrival) -> Refusal | None:
    """Required terms that name nodes, and no node that all of one term's fields name."""
    names = arrival.signature.node_names
    return Refusal.unresolvable(NAME, CONFLICT) if names is not None and not names else None


def required_nodes(signature: PodSignature, cluster: Cluster) -> NodeSet:
    """The nodes that a signature's selector and required affinity allow."""
    required = signature.required_nodes
    return cluster.node_sets.where((NAME, required), required.matches)


def _node_may_help(waiting: Waiting, event: Event) -> bool:
    """A node that matches came, or has other labels."""
    node = event.after
    matches = isinstance(node, Node) and waiting.signature.required_nodes.matches(node)
    return matches and arrival_or_labels(waiting, event)


HINTS: Hints = {Node: _node_may_help}
