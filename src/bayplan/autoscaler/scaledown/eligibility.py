"""Which nodes are looked at at all: in a group, not on their way out, and used little enough."""

from __future__ import annotations

from datetime import datetime

from bayplan.autoscaler.groups import GroupView
from bayplan.autoscaler.scaledown.drain.pods import PREFIX
from bayplan.autoscaler.scaledown.readiness import is_ready
from bayplan.autoscaler.scaledown.reasons import UnremovableReason
from bayplan.autoscaler.scaledown.taints import is_being_deleted
from bayplan.autoscaler.scaledown.utilization import Utilization
from bayplan.autoscaler.world import World
from bayplan.kube.nodes import Node
from bayplan.kube.resources import GPU_RESOURCES
from bayplan.nodegroups import GroupOptions

SCALE_DOWN_DISABLED = f"{PREFIX}scale-down-disabled"


def ineligible_itself(node: Node, now: datetime) -> UnremovableReason | None:
    """Why a node says that it stays, or is going already."""
    if is_being_deleted(node, now):
        return UnremovableReason.CURRENTLY_BEING_DELETED
    if is_disabled(node):
        return UnremovableReason.SCALE_DOWN_DISABLED_ANNOTATION
    return None


def is_disabled(node: Node) -> bool:
    """Whether a node says that it must not be given back."""
    return node.metadata.annotations.get(SCALE_DOWN_DISABLED) == "true"


def ineligible(
    node: Node,
    group: GroupView | None,
    used: Utilization | None,
    world: World,
    gpu_label: str = "",
) -> UnremovableReason | None:
    """Why a node is not looked at; None if it is."""
    reason = ineligible_itself(node, world.now)
    if reason is not None:
        return reason
    if group is None:
        return UnremovableReason.NOT_AUTOSCALED
    if used is None:
        return UnremovableReason.UNEXPECTED_ERROR
    options = world.options
    if not options.scale_down_unready_enabled and not is_ready(node, options, gpu_label):
        return UnremovableReason.SCALE_DOWN_UNREADY_DISABLED
    if used.value > threshold(used, group.options):
        return UnremovableReason.NOT_UNDERUTILIZED
    return None


def threshold(used: Utilization, options: GroupOptions) -> float:
    """How much of a node of this kind may be used at most."""
    if used.resource in GPU_RESOURCES:
        return options.scale_down_gpu_utilization_threshold
    return options.scale_down_utilization_threshold
