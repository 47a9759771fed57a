"""Explanations: per node the plugin and reasons, what preemption would do, and the nearest fixes.

Deciding needs none of this, so it is computed only when somebody asks.
"""

from bayplan.fit.explanation.answer import Explanation, NodeAnswer, Standing
from bayplan.fit.explanation.explain import explain
from bayplan.fit.explanation.search import nearest_fixes
from bayplan.fit.explanation.sought import Miss, Sought
from bayplan.fit.fixes import Fix, FixKind, Risk, Step, Target

__all__ = [
    "Explanation",
    "Fix",
    "FixKind",
    "Miss",
    "NodeAnswer",
    "Risk",
    "Sought",
    "Standing",
    "Step",
    "Target",
    "explain",
    "nearest_fixes",
]
