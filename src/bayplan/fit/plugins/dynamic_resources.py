"""DynamicResources: a pod goes only where the devices are that it claims.

Claims that are allocated name their nodes. What would have to be allocated first is not judged: no
node is reported to fit, and none to lack anything. Unlike other plugins it cannot be disabled,
since a pod without its devices never starts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayplan.fit.decision import UNJUDGED, UNRESOLVABLE, Refusal
from bayplan.fit.plugins.base import EvaluationRequest, Filter, NodeFilter, PreFilterInput
from bayplan.fit.plugins.hints import Hints, any_change, is_new_or_relabelled
from bayplan.fit.plugins.plugin import FILTERING, Cause, PostFilter, SchedulerPlugin
from bayplan.fit.requirements.devices import NO_DEVICES
from bayplan.fit.requirements.pods import PodRequirements
from bayplan.fit.state.columns import BoolArray, NodeSet, Rows
from bayplan.fit.state.resources import allocatable
from bayplan.kube.devices import DeviceClass, ResourceClaim
from bayplan.kube.nodes import Node

NAME = "DynamicResources"
NOT_HERE = "resourceclaim not available on the node"
CANNOT_JUDGE = "cannot be judged: dynamic resources"
NO_CLAIMS = "no new claims to deallocate"
"""Reported of a pod that has no claims."""
STILL_UNSCHEDULABLE = "still not schedulable"
"""Reported of a pod whose claims could not be deallocated."""
NO_STATE = "not found"
"""Reported where the plugin was not asked before."""


class DynamicResources(NodeFilter):
    """Devices that are allocated, and devices that are not allocated yet."""

    name = NAME

    def __init__(self, request: EvaluationRequest) -> None:
        devices, cluster = request.requirements.devices, request.cluster
        self._cluster = cluster
        self._where: list[NodeSet] = [
            cluster.node_sets.where((NAME, reach), reach.includes) for reach in devices.reaches
        ]
        self._to_allocate = devices.to_allocate
        self._itself: list[NodeSet] = [
            cluster.node_sets.where((NAME, name), _has(name)) for name in devices.extended
        ]
        """The nodes that have an extended resource themselves, and need no device for it."""

    @property
    def restricts_nodes(self) -> bool:
        """True: nodes that do not reach the devices are restricted."""
        return True

    def passes(self, rows: Rows) -> BoolArray:
        """Return the nodes where all claimed devices are."""
        if self._to_allocate:
            return np.zeros_like(self._cluster.alive[rows])
        passes = self._cluster.alive[rows].copy()
        for nodes in (*self._where, *self._itself):
            passes &= nodes.mask()[rows]
        return passes

    def refusal(self, slot: int) -> Refusal:
        """Return that devices are elsewhere, or that this cannot be judged."""
        if any(slot not in nodes for nodes in self._where):
            return Refusal(UNRESOLVABLE, NAME, (NOT_HERE,), out_of_reach=True)
        return Refusal(UNJUDGED, NAME, (CANNOT_JUDGE,))


def _has(resource: str) -> Callable[[Node], bool]:
    return lambda node: allocatable(node.status.allocatable, resource) > 0


def compile_filter(request: EvaluationRequest) -> Filter | None:
    """Compile the filter, if the pod claims devices."""
    return None if request.requirements.devices == NO_DEVICES else DynamicResources(request)


def refusal_before_all(arrival: PreFilterInput) -> Refusal | None:
    """Refuse a missing claim, or another pod's: kube-scheduler does not even queue the pod."""
    missing = arrival.devices.missing
    return Refusal.unresolvable(NAME, missing) if missing else None


def refusal_before_nodes(arrival: PreFilterInput) -> Refusal | None:
    """Refuse a missing device class."""
    unserved = arrival.devices.unserved
    return Refusal.unresolvable(NAME, unserved) if unserved else None


def _post_filter_message(requirements: PodRequirements) -> str:
    devices = requirements.devices
    return STILL_UNSCHEDULABLE if devices != NO_DEVICES and devices.ready else NO_CLAIMS


_POST_FILTER = PostFilter(message=_post_filter_message, message_without_state=NO_STATE)
"""It looks for claims to deallocate before other pods are preempted."""
_HINTS: Hints = {
    Node: is_new_or_relabelled,
    ResourceClaim: any_change,
    DeviceClass: any_change,
}


PLUGIN = SchedulerPlugin(
    name=NAME,
    points=FILTERING,
    node_fields=("metadata.name", "metadata.labels", "status.allocatable"),
    cause=Cause.DEVICES,
    optional=False,
    post_filter=_POST_FILTER,
    can_judge_all=False,
    pre_enqueue=refusal_before_all,
    pre_filter=refusal_before_nodes,
    filters=(compile_filter,),
    has_other_rules=lambda request: request.requirements.devices != NO_DEVICES,
    hints=_HINTS,
)
