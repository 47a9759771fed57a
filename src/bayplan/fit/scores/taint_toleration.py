"""TaintToleration: fewer PreferNoSchedule taints that the pod does not tolerate is better."""

from __future__ import annotations

from bayplan.fit.filters.base import Question
from bayplan.fit.scores.base import MAX_SCORE, Score
from bayplan.fit.scores.static import CountedScore
from bayplan.kube.nodes import Node
from bayplan.kube.tolerations import tolerates

DISCOURAGING = "PreferNoSchedule"


class TaintToleration(CountedScore):
    """Taints that the pod would rather not meet."""

    name = "TaintToleration"
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

    key = ("TaintToleration", question.shape.tolerations_key)
    return TaintToleration(question.cluster.node_sets.tally(key, intolerable))
