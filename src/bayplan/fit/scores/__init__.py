"""Scores: how good each node that passes the filters is, 0 to 100 times the plugin's weight.

`PROFILE` names them with kube-scheduler's weights. A score that has nothing to say of a pod is not
there for it: its compile function gives None.
"""

from __future__ import annotations

from bayplan.fit.filters.base import Question
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
    taint_toleration.compile_score,
    node_affinity.compile_score,
    pod_topology_spread.compile_score,
    inter_pod_affinity.compile_score,
    node_resources.compile_least_allocated,
    node_resources.compile_balanced,
    image_locality.compile_score,
)


def compile_scores(question: Question) -> tuple[Score, ...]:
    """The scores that have something to say of a pod."""
    compiled = (compile_score(question) for compile_score in PROFILE)
    return tuple(one for one in compiled if one is not None)
