"""Explanations: per node the plugin and reasons, what preemption would do, and the nearest fixes.

Deciding needs none of this, so it is computed only on request.
"""

from bayplan.fit.explanation.explain import explain
from bayplan.fit.explanation.result import (
    Explanation,
    FixSearchResult,
    NearestNode,
    NodeVerdict,
    PodState,
)
from bayplan.fit.explanation.search import nearest_fixes
from bayplan.fit.fixes import Fix, FixKind, Risk, Step, Target

__all__ = [
    "Explanation",
    "Fix",
    "FixKind",
    "FixSearchResult",
    "NearestNode",
    "NodeVerdict",
    "PodState",
    "Risk",
    "Step",
    "Target",
    "explain",
    "nearest_fixes",
]
