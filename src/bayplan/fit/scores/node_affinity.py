"""NodeAffinity: the weights of the preferred terms that a node matches."""

from __future__ import annotations

from bayplan.fit.filters.base import Question
from bayplan.fit.scores.base import Score
from bayplan.fit.scores.static import CountedScore
from bayplan.kube.nodes import Node


class NodeAffinity(CountedScore):
    """Nodes that the pod would rather have."""

    name = "NodeAffinity"
    more_is_better = True


def compile_score(question: Question) -> Score | None:
    """The score, if the pod prefers some nodes, or the profile does."""
    preferred = (*question.plugins.added_affinity.preferred, *question.shape.preferred_nodes)
    if not preferred:
        return None

    def liking(node: Node) -> int:
        return sum(weight for weight, term in preferred if term.matches(node))

    return NodeAffinity(question.cluster.node_sets.tally(("NodeAffinity", preferred), liking))
