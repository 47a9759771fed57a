"""Scale-down: which nodes are unneeded, where their pods would be moved, and which are removed.

`Planner` decides, in pure functions over the view of one loop. The reasons of unremovable nodes,
the drain rules and their order are Cluster Autoscaler's (`reasons`, `drain`). `actuation` executes
a plan.
"""

from bayplan.autoscaler.scaledown.planner import Planner, ScaleDownContext, ScaleDownPlan
from bayplan.autoscaler.scaledown.reasons import (
    BlockingPod,
    BlockingReason,
    UnremovableNode,
    UnremovableReason,
)
from bayplan.autoscaler.scaledown.removable import Deletions
from bayplan.autoscaler.scaledown.simulator import NodeToBeRemoved

__all__ = [
    "BlockingPod",
    "BlockingReason",
    "Deletions",
    "NodeToBeRemoved",
    "Planner",
    "ScaleDownContext",
    "ScaleDownPlan",
    "UnremovableNode",
    "UnremovableReason",
]
