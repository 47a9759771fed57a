"""NodeAffinity: the weights of the preferred terms that a node matches."""

from __future__ import annotations

from bayplan.fit.plugins.base import Question
from bayplan.fit.plugins.node_affinity.filter import NAME
from bayplan.fit.plugins.scores import CountedScore, Score
from bayplan.kube.nodes import Node


class NodeAffinityScore(CountedScore):
    """Nodes that the pod would rather have."""

    name = NAME
    more_is_better = True


def compile_score(question: Question) -> Score | None:
    """The score, if the pod prefers some nodes, or the profile does."""
    preferred = (*question.plugins.added_affinity.preferred, *question.signature.preferred_nodes)
    if not preferred:
        return None

    def liking(node: Node) -> int:
        return sum(weight for weight, term in preferred if term.matches(node))

    return NodeAffinityScore(question.cluster.node_sets.tally((NAME, "score", preferred), liking))
