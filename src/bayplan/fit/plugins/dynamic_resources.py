"""DynamicResources: a pod goes only where the devices are that it claims.

Claims that are allocated say where. What would have to be allocated first is not judged: no node is
taken for one that fits, and none is said to lack anything. Unlike other plugins it cannot be
switched off, since a pod without its devices never starts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayplan.fit.plugins.base import Arrival, Filter, NodeFilter, Question
from bayplan.fit.plugins.hints import Hints, any_change, arrival_or_labels
from bayplan.fit.plugins.plugin import FILTERING, Cause, Plugin
from bayplan.fit.refusal import UNJUDGED, UNRESOLVABLE, Refusal
from bayplan.fit.requirements.devices import NO_DEVICES
from bayplan.fit.state.columns import BoolArray, NodeSet, Rows
from bayplan.fit.state.resources import allocatable
from bayplan.kube.devices import DeviceClass, ResourceClaim
from bayplan.kube.nodes import Node

NAME = "DynamicResources"
NOT_HERE = "resourceclaim not available on the node"
CANNOT_JUDGE = "cannot be judged: dynamic resources"


class DynamicResources(NodeFilter):
    """Devices that are where they are, and devices that nobody has allocated yet."""

    name = NAME

    def __init__(self, question: Question) -> None:
        devices, cluster = question.requirements.devices, question.cluster
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
    def chooses(self) -> bool:
        """Of nodes that do not reach what is there already."""
        return True

    def passes(self, rows: Rows) -> BoolArray:
        """Nodes where everything is that the pod claims."""
        if self._to_allocate:
            return np.zeros_like(self._cluster.alive[rows])
        passes = self._cluster.alive[rows].copy()
        for nodes in (*self._where, *self._itself):
            passes &= nodes.mask()[rows]
        return passes

    def refusal(self, slot: int) -> Refusal:
        """What is elsewhere; or that this cannot be judged."""
        if any(slot not in nodes for nodes in self._where):
            return Refusal(UNRESOLVABLE, NAME, (NOT_HERE,), out_of_reach=True)
        return Refusal(UNJUDGED, NAME, (CANNOT_JUDGE,))


def _has(resource: str) -> Callable[[Node], bool]:
    return lambda node: allocatable(node.status.allocatable, resource) > 0


def compile_filter(question: Question) -> Filter | None:
    """The filter, if the pod claims devices."""
    return None if question.requirements.devices == NO_DEVICES else DynamicResources(question)


def refusal_before_all(arrival: Arrival) -> Refusal | None:
    """A claim that is not there, or is another's: kube-scheduler does not even queue the pod."""
    missing = arrival.devices.missing
    return Refusal.unresolvable(NAME, missing) if missing else None


def refusal_before_nodes(arrival: Arrival) -> Refusal | None:
    """A class of devices that is not there."""
    unserved = arrival.devices.unserved
    return Refusal.unresolvable(NAME, unserved) if unserved else None


_HINTS: Hints = {
    Node: arrival_or_labels,
    ResourceClaim: any_change,
    DeviceClass: any_change,
}


PLUGIN = Plugin(
    name=NAME,
    points=FILTERING,
    node_fields=("metadata.name", "metadata.labels", "status.allocatable"),
    cause=Cause.DEVICES,
    optional=False,
    deallocates_claims=True,
    judges_all=False,
    pre_enqueue=refusal_before_all,
    pre_filter=refusal_before_nodes,
    filters=(compile_filter,),
    hints=_HINTS,
)
