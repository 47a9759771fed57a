"""Scale-down: which nodes are not needed, where their pods would go, and which go now.

`Planner` decides, in pure functions over the view of one loop. The words for why a node stays, the
rules about pods and their order are Cluster Autoscaler's (`reasons`, `drain`). `actuation` carries
a plan out.
"""

from bayplan.autoscaler.scaledown.planner import Planner, ScaleDownContext, ScaleDownPlan
from bayplan.autoscaler.scaledown.reasons import (
    BlockingPod,
    BlockingReason,
    Unremovable,
    UnremovableReason,
)
from bayplan.autoscaler.scaledown.release import Deletions
from bayplan.autoscaler.scaledown.simulator import Removable

__all__ = [
    "BlockingPod",
    "BlockingReason",
    "Deletions",
    "Planner",
    "Removable",
    "ScaleDownContext",
    "ScaleDownPlan",
    "Unremovable",
    "UnremovableReason",
]
