"""Required affinity that names its nodes: others are not even asked.

kube-scheduler narrows the nodes before it filters them; such nodes carry no reason of their own.
"""

from __future__ import annotations

from bayplan.fit.plugins.base import Filter, NodeSetFilter, Question
from bayplan.fit.plugins.node_affinity.filter import NAME as NODE_AFFINITY
from bayplan.fit.refusal import UNRESOLVABLE, Refusal

NAME = "PreFilterResult"
SUMMARY_REASON = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
"""What kube-scheduler's summary line says of nodes that were not asked."""


class NamedNodes(NodeSetFilter):
    """Nodes that required affinity names."""

    @property
    def plugin(self) -> str:
        """The plugin that names them."""
        return NODE_AFFINITY

    def refusal(self, slot: int) -> Refusal:  # noqa: ARG002 - the same for every node
        """Not asked, and so without a reason."""
        return Refusal(UNRESOLVABLE, NAME, (), out_of_reach=True, summarised=(SUMMARY_REASON,))


def can_be_pinned(question: Question) -> bool:
    """Whether a pod of this question that names one node besides is refused, and taken there, for
    the same reasons.
    """
    return question.plugins.asks(NODE_AFFINITY) and not question.default_spread.hard


def compile_filter(question: Question) -> Filter | None:
    """The filter, if every required term names nodes."""
    names = question.signature.node_names
    if not names:
        return None
    nodes = question.cluster.node_sets.where((NAME, names), lambda node: node.name in names)
    return NamedNodes(NAME, nodes, SUMMARY_REASON)
