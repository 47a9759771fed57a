"""Giving nodes back: which are not needed, where their pods would go, and getting there safely.

`Planner` decides, in pure functions over the world of one loop. The words for why a node stays, the
rules about pods and their order are Cluster Autoscaler's (`reasons`, `drain`). `actuation` carries
a plan out; `giving_back` is both as the loop sees them.
"""

from bayplan.autoscaler.scaledown.planner import Circumstances, Planner, ScaleDownPlan
from bayplan.autoscaler.scaledown.progress import Deletions
from bayplan.autoscaler.scaledown.reasons import (
    BlockingPod,
    BlockingReason,
    Unremovable,
    UnremovableReason,
)
from bayplan.autoscaler.scaledown.removal import Removable

__all__ = [
    "BlockingPod",
    "BlockingReason",
    "Circumstances",
    "Deletions",
    "Planner",
    "Removable",
    "ScaleDownPlan",
    "Unremovable",
    "UnremovableReason",
]
