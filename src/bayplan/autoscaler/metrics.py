"""Metrics of the autoscaler: Cluster Autoscaler's names and labels, and some of Bayplan's own.

Cluster Autoscaler does not have the causes of unschedulable pods (two more labels of its gauge),
attachments by group, and nodes that wait for CSI drivers.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from bayplan.base.clock import Clock
from bayplan.fit.plugins.plugin import Cause

PREFIX = "cluster_autoscaler_"
_SECONDS = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class AutoscalerMetrics:
    """The metrics of one autoscaler."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(PREFIX + name, text, labels, registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(PREFIX + name, text, labels, registry=registry)

        self.safe = gauge(
            "cluster_safe_to_autoscale", "1 if the cluster is healthy enough for autoscaling."
        )
        self.nodes = gauge("nodes_count", "Nodes in the cluster, by state.", "state")
        self.groups = gauge("node_groups_count", "Node groups.", "node_group_type")
        self.pods = gauge(
            "unschedulable_pods_count",
            "Unschedulable pods, by cause and, for volumes, CSI driver.",
            "type", "cause", "driver",
        )  # fmt: skip
        self.min = gauge("node_group_min_count", "Minimum size of a node group.", "node_group")
        self.max = gauge("node_group_max_count", "Maximum size of a node group.", "node_group")
        self.target = gauge("node_group_target_count", "Target size of a node group.", "node_group")
        self.health = gauge("node_group_healthiness", "1 if a node group is healthy.", "node_group")
        self.backoff = gauge(
            "node_group_backoff_status",
            "1 if a node group is in backoff, by reason.",
            "node_group",
            "reason",
        )
        self.last = gauge("last_activity", "Last time a part of the loop was executed.", "activity")
        self.durations = Histogram(
            PREFIX + "function_duration_seconds",
            "Duration of the parts of a loop.",
            ["function"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.errors = counter("errors", "Loops that failed, by error type.", "type")
        self.scaled_up = counter("scaled_up_nodes", "Nodes added by scale-up.")
        self.failed = counter("failed_scale_ups", "Scale-ups that failed, by reason.", "reason")
        # It only grows, but a Counter's name would end in _total, and this one's does not.
        self.skipped = gauge(
            "skipped_scale_events_count",
            "Scale-ups and scale-downs that were skipped, by reason.",
            "direction",
            "reason",
        )
        self.volumes = gauge(
            "node_group_volumes_count",
            "Attach slots of a group's nodes, in use and limit.",
            "node_group", "driver", "state",
        )  # fmt: skip
        self.awaiting = gauge(
            "nodes_waiting_for_csi_drivers",
            "Nodes on which a required CSI driver has not registered.",
            "node_group", "driver", "state",
        )  # fmt: skip
        self.outliers = gauge(
            "csi_driver_outliers",
            "Nodes whose CSI driver or attach limit differs from that of most nodes of the group.",
            "node_group", "driver",
        )  # fmt: skip

    @contextmanager
    def timed(self, function: str, clock: Clock) -> Iterator[None]:
        """Measure the duration of a part of a loop."""
        began = clock.monotonic()
        try:
            yield
        finally:
            self.durations.labels(function).observe(clock.monotonic() - began)

    def active(self, activity: str, now: datetime) -> None:
        """Note the time of an activity."""
        self.last.labels(activity).set(now.timestamp())

    def waiting(self, causes: Mapping[tuple[Cause, str], int], others: Mapping[str, int]) -> None:
        """Set the counts of pending pods by cause."""
        self.pods.clear()
        for (cause, driver), count in causes.items():
            self.pods.labels("unschedulable", cause.value, driver).set(count)
        for kind, count in others.items():
            self.pods.labels(kind, kind, "").set(count)

    def set_node_counts(self, counts: Mapping[str, int]) -> None:
        """Set the counts of nodes by state."""
        self.nodes.clear()
        for state, count in counts.items():
            self.nodes.labels(state).set(count)

    def drivers(self, missing: Iterable[tuple[str, str, str]]) -> None:
        """Count missing drivers: for each node and driver, its group, driver and state."""
        self.awaiting.clear()
        for group, driver, state in missing:
            self.awaiting.labels(group, driver, state).inc()


class ScaleDownMetrics:
    """The metrics of scale-down."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(PREFIX + name, text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(PREFIX + name, text, labels, registry=registry)

        self.removed = counter("scaled_down_nodes", "Nodes removed by scale-down.", "reason")
        self.evicted = counter("evicted_pods", "Pods evicted for scale-down.", "eviction_result")
        self.failed = counter("failed_scale_downs", "Node removals that failed.")
        self.unneeded = gauge("unneeded_nodes_count", "Unneeded nodes.")
        self.unremovable = gauge(
            "unremovable_nodes_count", "Unremovable nodes, by reason.", "reason"
        )
        self.cooldown = gauge("scale_down_in_cooldown", "1 if scale-down is in cooldown.")

    def show(self, unneeded: int, unremovable: Iterable[str], *, cooldown: bool) -> None:
        """Set the gauges: unneeded nodes, reasons of unremovable nodes, cooldown."""
        self.unneeded.set(unneeded)
        self.unremovable.clear()
        for reason, count in Tally(unremovable).items():
            self.unremovable.labels(reason).set(count)
        self.cooldown.set(1 if cooldown else 0)
