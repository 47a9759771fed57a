"""NodeVolumeLimits: a node can attach only so many volumes of a driver.

A volume that pods on the node already use is free; every other one takes an attach slot. With the
gate VolumeLimitScaling, a node on which a driver has not registered takes no pod that needs the
driver, so that a new node is not overcommitted before it reports its limit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from operator import attrgetter

import numpy as np

from bayplan.fit.decision import Refusal
from bayplan.fit.plugins.base import EvaluationRequest, Filter, UsageFilter
from bayplan.fit.plugins.hints import (
    ClusterEvent,
    Hints,
    UnschedulablePod,
    added_pod,
    any_change,
    is_own_claim,
    removed_pod,
)
from bayplan.fit.profile import MissingDriver, VolumeRules
from bayplan.fit.requirements.claims import AttachRequirement
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import BoolArray, IntArray, NodeSet, Rows, SlotArray
from bayplan.fit.state.pods import PodRecord
from bayplan.fit.volumes.identity import VolumeId, VolumeIdentity
from bayplan.fit.volumes.objects import claims_of, inline_volumes
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

NAME = "NodeVolumeLimits"
EXCEEDED = "node(s) exceed max volume count"
NOT_INSTALLED = " CSI driver is not installed on the node"
"""After the name of the driver."""


class NodeVolumeLimits(UsageFilter):
    """Attach slots by driver."""

    name = NAME

    def __init__(self, request: EvaluationRequest) -> None:
        self._cluster = request.cluster
        self._attach = request.requirements.attach
        self._rules = rules = request.plugins.volume_rules or request.cluster.rules
        self._with_csinode = nodes_with_csinode(request.cluster)
        self._required = [
            (need.driver, nodes_to_attach_on(need, request.cluster, rules))
            for need in sorted(self._attach, key=attrgetter("driver"), reverse=True)
            if need.needs_driver(rules)
        ]
        self._is_simple = all(not need.plugin and not need.shared for need in self._attach)
        self._new = _by_driver(self._attach)

    def passes(self, rows: Rows) -> BoolArray:
        """Return the nodes that have the drivers and an attach slot for every volume."""
        passes = self._cluster.alive[rows].copy()
        for _, nodes in self._required:
            passes &= nodes.mask()[rows]
        if self._is_simple:
            for driver, count in self._new.items():
                used, limit = self._places(driver)
                passes &= used[rows] + count <= limit[rows]
        else:
            for driver in self._counted_drivers():
                passes &= self._has_places(driver)[rows]
        return passes

    def refusal(self, slot: int) -> Refusal:
        """Return the driver that is missing, or the limit that is reached."""
        # Of several, kube-scheduler names any; the last by name is as good as another.
        for driver, nodes in self._required:
            if slot not in nodes:
                return Refusal.unschedulable(NAME, f"{driver}{NOT_INSTALLED}")
        return Refusal.unschedulable(NAME, EXCEEDED)

    def is_affected_by(self, record: PodRecord) -> bool:
        """Whether the pod uses volumes of the same drivers."""
        drivers = self._counted_drivers()
        return any(
            volume.driver in drivers or (volume.plugin and volume.plugin.name in drivers)
            for volume in record.volumes
        )

    @property
    def required_drivers(self) -> frozenset[str]:
        """The drivers without which a node is refused."""
        return frozenset(driver for driver, _ in self._required)

    def drivers(self, slots: SlotArray) -> frozenset[str]:
        """Return the drivers (or plugins) that some node lacks, or has no attach slots left for."""
        missing = {driver for driver, nodes in self._required if not nodes.mask()[slots].all()}
        full = (d for d in self._counted_drivers() if not self._has_places(d)[slots].all())
        return frozenset(missing.union(full))

    def refusing_drivers_at(self, slot: int) -> list[str]:
        """Return the driver that is missing, or else those that have no attach slots left."""
        missing = next((driver for driver, nodes in self._required if slot not in nodes), None)
        return self.full_drivers(slot) if missing is None else [missing]

    def full_drivers(self, slot: int) -> list[str]:
        """The drivers (or plugins) whose limit on a node is too low."""
        return [d for d in self._counted_drivers() if not self._has_places(d)[slot]]

    def missing_places(self, driver: str, slot: int) -> int:
        """Return how many attach slots of a driver a node is short of."""
        used, limit = self._places(driver)
        new = int(self._new_places(driver)[slot])
        return max(int(used[slot]) + new - int(limit[slot]), 0) if new else 0

    def _counted_drivers(self) -> tuple[str, ...]:
        names = dict.fromkeys(need.driver for need in self._attach)
        names |= dict.fromkeys(need.plugin for need in self._attach if need.plugin)
        return tuple(names)

    def _has_places(self, driver: str) -> BoolArray:
        """Return the slots with enough attach slots for the volumes that count for a driver
        there.
        """
        used, limit = self._places(driver)
        new = self._new_places(driver)
        places: BoolArray = (new == 0) | (used + new <= limit)
        return places

    def _places(self, driver: str) -> tuple[IntArray, IntArray]:
        """Return a driver's attachments in use, and the limits by the rules that hold."""
        places = self._cluster.attached_volumes
        return places.columns(driver).used, places.limits(driver, self._rules)

    def _new_places(self, driver: str) -> IntArray:
        """Return how many attach slots of a driver the pod's volumes would take, by slot."""
        new = np.zeros(self._cluster.slots.capacity, dtype=np.int64)
        for need in self._attach:
            counts = self._counts_for(need, driver)
            if counts is not None:
                new += counts & ~self._in_use(VolumeId(driver, need.shared))
        return new

    def _counts_for(self, need: AttachRequirement, driver: str) -> BoolArray | None:
        """The slots where a volume counts for a driver; None if there are none."""
        if need.driver == driver:
            return self._with_csinode.mask() if need.plugin else self._cluster.alive
        return ~self._with_csinode.mask() if need.plugin == driver else None

    def _in_use(self, volume: VolumeId) -> BoolArray:
        mask = np.zeros(self._cluster.slots.capacity, dtype=np.bool_)
        if volume.handle:
            mask[self._cluster.attached_volumes.holders(volume, self._rules)] = True
        return mask


def nodes_with_csinode(cluster: ClusterState) -> NodeSet:
    """The nodes that have a CSINode."""
    return cluster.node_sets.where((NAME, "csinode"), lambda node: node.name in cluster.csinodes)


def nodes_with_driver(driver: str, cluster: ClusterState) -> NodeSet:
    """The nodes on which a CSI driver has registered."""

    def has_driver(node: Node) -> bool:
        csinode = cluster.csinodes.get(node.name)
        return csinode is not None and any(d.name == driver for d in csinode.spec.drivers)

    return cluster.node_sets.where((NAME, driver), has_driver)


def nodes_to_attach_on(
    need: AttachRequirement, cluster: ClusterState, rules: VolumeRules
) -> NodeSet:
    """The nodes on which nothing is missing that a volume needs.

    kube-scheduler knows what an in-tree plugin serves by its CSI driver only where there is a
    CSINode, and so allows it on nodes that have none.
    """
    registered = nodes_with_driver(need.driver, cluster)
    if not need.plugin or rules.missing_driver is MissingDriver.HOLD_BACK:
        return registered

    def allows(node: Node) -> bool:
        return node.name not in cluster.csinodes or cluster.slots.by_name[node.name] in registered

    return cluster.node_sets.where((NAME, need.driver, need.plugin), allows)


def _by_driver(attach: tuple[AttachRequirement, ...]) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for need in attach:
        counts[need.driver] += 1
    return dict(counts)


def compile_filter(request: EvaluationRequest) -> Filter | None:
    """Compile the filter, if a volume must be attached."""
    return NodeVolumeLimits(request) if request.requirements.attach else None


def _pod_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:
    """Whether a pod with volumes was removed, or one was added that shares a volume."""
    left, came = removed_pod(event), added_pod(event)
    if left is not None and left.spec.volumes:
        return True
    if came is None or not came.spec.volumes:
        return False
    cluster = pending.cluster
    return not _volumes(pending.pod, cluster).isdisjoint(_volumes(came, cluster))


def _volumes(pod: Pod, cluster: ClusterState) -> frozenset[VolumeIdentity]:
    return frozenset(cluster.storage.identities(claims_of(pod), inline_volumes(pod)))


def _node_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:  # noqa: ARG001 - for every pod
    """Whether a node was added, or its labels or published limits changed."""
    before, after = event.before, event.after
    if not isinstance(after, Node):
        return False
    return not isinstance(before, Node) or (
        before.metadata.labels != after.metadata.labels
        or before.status.allocatable != after.status.allocatable
    )


def _claim_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:
    """Whether a claim of the pod was added or updated; or a running pod's, which may now count
    elsewhere."""
    if is_own_claim(pending, event):
        return True
    return event.before is not None and bool(pending.cluster.pods.by_claim.of(event.key))


def claims_of_coming(event: ClusterEvent) -> Collection[str]:
    """Return the claims of an added pod: volumes that it shares take no second attach slot."""
    return claims_of(event.after) if isinstance(event.after, Pod) else ()


def _has_gone(pending: UnschedulablePod, event: ClusterEvent) -> bool:  # noqa: ARG001 - for every pod
    return event.before is not None


HINTS: Hints = {
    Node: _node_may_help,
    Pod: _pod_may_help,
    PersistentVolumeClaim: _claim_may_help,
    VolumeAttachment: _has_gone,
    PersistentVolume: any_change,
    StorageClass: any_change,
    CSINode: any_change,
    CSIDriver: any_change,
}
"""An attach slot may be free; a driver was registered, or is no longer waited for."""
