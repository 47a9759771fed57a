"""What is counted of nodes that are given back, by Cluster Autoscaler's names."""

from __future__ import annotations

from collections import Counter as Tally

from prometheus_client import CollectorRegistry, Counter, Gauge

from bayplan.autoscaler.scaledown.planner import ScaleDownPlan

PREFIX = "cluster_autoscaler_"


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

    def show(self, plan: ScaleDownPlan, *, cooldown: bool) -> None:
        """How nodes stand after a loop."""
        self.unneeded.set(len(plan.unneeded))
        self.unremovable.clear()
        for reason, count in Tally(one.reason.value for one in plan.stays).items():
            self.unremovable.labels(reason).set(count)
        self.cooldown.set(1 if cooldown else 0)
