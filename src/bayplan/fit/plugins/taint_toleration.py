"""TaintToleration: a node's NoSchedule and NoExecute taints must all be tolerated; of nodes with
PreferNoSchedule taints, those are better that have fewer which the pod does not tolerate.
"""

from __future__ import annotations

from bayplan.fit.plugins.base import Filter, NodeSetFilter, Question
from bayplan.fit.plugins.hints import Hints, newly
from bayplan.fit.plugins.plugin import SCORING, Cause, Plugin
from bayplan.fit.plugins.scores import MAX_SCORE, CountedScore, Score
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import NodeSet
from bayplan.kube.nodes import Node
from bayplan.kube.tolerations import find_untolerated, tolerates

NAME = "TaintToleration"
REASON = "node(s) had untolerated taint(s)"
DISCOURAGING = "PreferNoSchedule"
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


class TaintTolerationScore(CountedScore):
    """Taints that the pod would rather not meet."""

    name = NAME
    flat_points = MAX_SCORE
    more_is_better = False


def compile_score(question: Question) -> Score | None:
    """The score."""
    tolerations = [t for t in question.shape.tolerations if t.effect in ("", DISCOURAGING)]

    def intolerable(node: Node) -> int:
        if not node.spec.taints:
            return 0
        return sum(
            taint.effect == DISCOURAGING and not any(tolerates(t, taint) for t in tolerations)
            for taint in node.spec.taints
        )

    key = (NAME, "score", question.shape.tolerations_key)
    return TaintTolerationScore(question.cluster.node_sets.tally(key, intolerable))


_HINTS: Hints = {
    Node: lambda waiting, event: newly(event, lambda node: is_tolerated(waiting.shape, node)),
}
"""A node that lost its taints."""


PLUGIN = Plugin(
    name=NAME,
    points=("filter", *SCORING),
    cause=Cause.TAINTS,
    filters=(compile_filter,),
    score=compile_score,
    weight=3,
    hints=_HINTS,
)
