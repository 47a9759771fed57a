"""What the autoscaler counts: Cluster Autoscaler's names and labels, and what only Bayplan can say.

Why pods wait, how many volumes each group can attach and has attached, and which nodes wait for
drivers are no part of Cluster Autoscaler's; the first is told by two more labels of its own gauge.
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

        self.safe = gauge("cluster_safe_to_autoscale", "1 if the cluster is healthy enough.")
        self.nodes = gauge("nodes_count", "Nodes in the cluster, by how they stand.", "state")
        self.groups = gauge("node_groups_count", "Node groups.", "node_group_type")
        self.pods = gauge(
            "unschedulable_pods_count",
            "Pods that wait, by why: what was missing and, for volumes, of which CSI driver.",
            "type", "cause", "driver",
        )  # fmt: skip
        self.min = gauge("node_group_min_count", "Least nodes of a group.", "node_group")
        self.max = gauge("node_group_max_count", "Most nodes of a group.", "node_group")
        self.target = gauge("node_group_target_count", "Nodes that are wanted.", "node_group")
        self.health = gauge("node_group_healthiness", "1 if a group is healthy.", "node_group")
        self.backoff = gauge(
            "node_group_backoff_status", "1 if a group rests, by why.", "node_group", "reason"
        )
        self.last = gauge("last_activity", "When something was last done.", "activity")
        self.durations = Histogram(
            PREFIX + "function_duration_seconds",
            "How long parts of a loop take.",
            ["function"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.errors = counter("errors", "Loops that failed, by why.", "type")
        self.bought = counter("scaled_up_nodes", "Nodes that were bought.")
        self.failed = counter("failed_scale_ups", "Purchases that failed, by why.", "reason")
        # It only grows, but a Counter's name would end in _total, and this one's does not.
        self.skipped = gauge(
            "skipped_scale_events_count", "What was not done, by why.", "direction", "reason"
        )
        self.volumes = gauge(
            "node_group_volumes_count",
            "Places for volumes on a group's nodes, in use and in all.",
            "node_group", "driver", "state",
        )  # fmt: skip
        self.awaiting = gauge(
            "nodes_waiting_for_csi_drivers",
            "Nodes that have not reported a CSI driver that was promised.",
            "node_group", "driver", "state",
        )  # fmt: skip

    @contextmanager
    def timed(self, function: str, clock: Clock) -> Iterator[None]:
        """Measure a part of a loop."""
        began = clock.monotonic()
        try:
            yield
        finally:
            self.durations.labels(function).observe(clock.monotonic() - began)

    def active(self, activity: str, now: datetime) -> None:
        """Something was done."""
        self.last.labels(activity).set(now.timestamp())

    def waiting(self, causes: Mapping[tuple[Cause, str], int], others: Mapping[str, int]) -> None:
        """Why pods wait."""
        self.pods.clear()
        for (cause, driver), count in causes.items():
            self.pods.labels("unschedulable", cause.value, driver).set(count)
        for kind, count in others.items():
            self.pods.labels(kind, kind, "").set(count)

    def standing(self, counts: Mapping[str, int]) -> None:
        """How nodes stand."""
        self.nodes.clear()
        for state, count in counts.items():
            self.nodes.labels(state).set(count)

    def drivers(self, missing: Iterable[tuple[str, str, str]]) -> None:
        """For each node and driver that it lacks: its group, the driver, and how it stands."""
        self.awaiting.clear()
        for group, driver, state in missing:
            self.awaiting.labels(group, driver, state).inc()


class ScaleDownMetrics:
    """Counters and gauges in the registry that is handed in."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(PREFIX + name, text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(PREFIX + name, text, labels, registry=registry)

        self.removed = counter("scaled_down_nodes", "Nodes that were given back.", "reason")
        self.evicted = counter(
            "evicted_pods", "Pods that were evicted from nodes.", "eviction_result"
        )
        self.failed = counter("failed_scale_downs", "Nodes that could not be given back.")
        self.unneeded = gauge("unneeded_nodes_count", "Nodes that are not needed.")
        self.unremovable = gauge(
            "unremovable_nodes_count", "Nodes that are not given back, by why.", "reason"
        )
        self.cooldown = gauge("scale_down_in_cooldown", "1 if nothing is given back for a while.")

    def show(self, unneeded: int, unremovable: Iterable[str], *, cooldown: bool) -> None:
        """Set the gauges: unneeded nodes, reasons of unremovable nodes, cooldown."""
        self.unneeded.set(unneeded)
        self.unremovable.clear()
        for reason, count in Tally(unremovable).items():
            self.unremovable.labels(reason).set(count)
        self.cooldown.set(1 if cooldown else 0)
