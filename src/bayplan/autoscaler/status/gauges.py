"""Gauges of nodes, node groups, attach slots, and drivers that have not registered."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from bayplan.autoscaler.cloudstate.reader import CloudState
from bayplan.autoscaler.clusterstate.nodes import NodeStates
from bayplan.autoscaler.clusterstate.readiness import NodeReadiness
from bayplan.autoscaler.metrics import AutoscalerMetrics
from bayplan.autoscaler.status.configmap import ClusterStatus
from bayplan.fit import Snapshot
from bayplan.fit.state.columns import SlotArray

NO_LIMIT = 1 << 40
"""The value of an unlimited driver."""
NOWHERE: SlotArray = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class Gauges:
    """Sets the gauges from the nodes' states and the snapshot."""

    metrics: AutoscalerMetrics
    node_states: NodeStates
    snapshot: Snapshot
    _slots: dict[str, tuple[tuple[int, int], SlotArray]] = field(default_factory=dict)
    """The slots of each group's nodes, cached."""
    _shown: dict[str, object] = field(default_factory=dict)
    """The current values of gauges with many labels: they are set only when they change."""

    def show(self, cloud: CloudState, status: ClusterStatus) -> None:
        """Set all gauges."""
        metrics, states = self.metrics, [one.state for one in status.groups]
        metrics.safe.set(1 if status.healthy else 0)
        metrics.groups.labels("autoscaled").set(len(cloud.groups))
        node_states = self.node_states
        unready = sum(
            map(
                len,
                map(node_states.in_state, (NodeReadiness.UNREADY, NodeReadiness.MISSING_DRIVERS)),
            )
        )
        starting = sum(
            map(
                len,
                map(
                    node_states.in_state,
                    (NodeReadiness.NOT_STARTED, NodeReadiness.AWAITING_DRIVERS),
                ),
            )
        )
        counts = {
            "ready": len(node_states.members) - unready - starting,
            "unready": unready,
            "notStarted": starting,
            "unregistered": sum(len(one.unregistered) for one in states),
            "longUnregistered": sum(len(one.long_unregistered) for one in states),
        }
        if self._has_changed("nodes", counts):
            metrics.set_node_counts(counts)
        missing = self._missing()
        if self._has_changed("drivers", missing):
            metrics.drivers(missing)
        self._count_groups(status)
        self._count_outliers(status)
        self._count_volumes(status)

    def _missing(self) -> list[tuple[str, str, str]]:
        node_states = self.node_states
        waiting = [
            *node_states.in_state(NodeReadiness.AWAITING_DRIVERS),
            *node_states.in_state(NodeReadiness.MISSING_DRIVERS),
        ]
        found = ((node_states.members[name], node_states.members[name].missing) for name in waiting)
        return [
            (one.group, driver, one.readiness.value) for one, names in found for driver in names
        ]

    def _has_changed(self, what: str, value: object) -> bool:
        """Whether a value differs from the one shown."""
        if what in self._shown and self._shown[what] == value:
            return False
        self._shown[what] = value
        return True

    def _count_groups(self, status: ClusterStatus) -> None:
        metrics = self.metrics
        value = [
            (one.group, one.state.target, one.healthy, one.backoff and one.backoff.code)
            for one in status.groups
        ]
        if not self._has_changed("groups", value):
            return
        for gauge in (metrics.min, metrics.max, metrics.target, metrics.health, metrics.backoff):
            gauge.clear()
        for one in status.groups:
            name = one.group.id
            metrics.min.labels(name).set(one.group.min_size)
            metrics.max.labels(name).set(one.group.max_size)
            metrics.target.labels(name).set(one.state.target)
            metrics.health.labels(name).set(1 if one.healthy else 0)
            metrics.backoff.labels(name, one.backoff.code if one.backoff else "").set(
                bool(one.backoff)
            )

    def _count_outliers(self, status: ClusterStatus) -> None:
        found = Counter((one.group.id, odd.driver) for one in status.groups for odd in one.outliers)
        if self._has_changed("outliers", found):
            self.metrics.outliers.clear()
            for labels, count in found.items():
                self.metrics.outliers.labels(*labels).set(count)

    def _count_volumes(self, status: ClusterStatus) -> None:
        volumes = self.snapshot.cluster.attached_volumes
        found: dict[tuple[str, str, str], int] = {}
        for gone in self._slots.keys() - {one.group.id for one in status.groups}:
            del self._slots[gone]
        for one in status.groups:
            name = one.group.id
            slots = self._slots_of(name)
            for driver in sorted({*volumes.drivers(), *one.drivers}):
                columns = volumes.columns(driver)
                limits = columns.limit[slots]
                counted = limits[limits < NO_LIMIT]
                if len(counted):
                    found[name, driver, "used"] = int(columns.used[slots].sum())
                    found[name, driver, "limit"] = int(counted.sum())
        if self._has_changed("volumes", found):
            self.metrics.volumes.clear()
            for labels, count in found.items():
                self.metrics.volumes.labels(*labels).set(count)

    def _slots_of(self, group: str) -> SlotArray:
        version = self.node_states.versions[group], self.node_states.registrations
        known, slots = self._slots.get(group, ((-1, -1), NOWHERE))
        if known != version:
            by_name = self.snapshot.cluster.slots.by_name
            names = self.node_states.by_group.get(group, ())
            slots = np.array([by_name[name] for name in names if name in by_name], dtype=np.intp)
            self._slots[group] = (version, slots)
        return slots
