"""Scores: how good each node that passes the filters is, 0 to 100 times the plugin's weight.

`PROFILE` names them; what each weighs is the plugin set's to say. A score that has nothing to say
of a pod is not there for it: its compile function gives None.
"""

from __future__ import annotations

from bayplan.fit.filters.base import Question
from bayplan.fit.plugins import MOST_WEIGHT
from bayplan.fit.scores import (
    image_locality,
    inter_pod_affinity,
    node_affinity,
    node_resources,
    pod_topology_spread,
    taint_toleration,
)
from bayplan.fit.scores.base import LocalScore, RelativeScore, Score

__all__ = ["PROFILE", "LocalScore", "RelativeScore", "Score", "compile_scores"]

PROFILE = (
    ("TaintToleration", taint_toleration.compile_score),
    ("NodeAffinity", node_affinity.compile_score),
    ("PodTopologySpread", pod_topology_spread.compile_score),
    ("InterPodAffinity", inter_pod_affinity.compile_score),
    ("NodeResourcesFit", node_resources.compile_fit),
    ("NodeResourcesBalancedAllocation", node_resources.compile_balanced),
    ("ImageLocality", image_locality.compile_score),
)


def compile_scores(question: Question) -> tuple[Score, ...]:
    """The scores that have something to say of a pod."""
    weights = dict(question.plugins.scores)
    found = []
    for name, compile_score in PROFILE:
        score = compile_score(question) if weights.get(name) else None
        if score is not None:
            score.weight = min(weights[name], MOST_WEIGHT)
            found.append(score)
    return tuple(found)
