"""The scheduler's metrics: kube-scheduler's names and labels, and Bayplan's own.

The counters live in the registry that is handed in. Gauges of what is in the queue and the cache
are read when they are scraped, so they are never stale and cost nothing meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bayplan.fit.plugins.registry import names_drivers

Result = Literal["scheduled", "unschedulable", "error"]
_MOST_ATTEMPTS = 15


def _doubling(start: float, count: int) -> tuple[float, ...]:
    return tuple(start * 2**step for step in range(count))


class _Reading(Collector):
    """Gauges whose values are read when asked."""

    def __init__(
        self, name: str, text: str, label: str, read: Callable[[], Mapping[str, float]]
    ) -> None:
        self._name, self._text, self._label, self._read = name, text, label, read

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(self._name, self._text, labels=[self._label])
        for value, amount in sorted(self._read().items()):
            family.add_metric([value], amount)
        yield family


class SchedulerMetrics:
    """The metrics of one scheduler."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._attempts = Counter(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result.",
            ["result", "profile"],
            registry=registry,
        )
        self._attempt_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency (decision and binding).",
            ["result", "profile"],
            buckets=_doubling(0.001, 15),
            registry=registry,
        )
        self._algorithm_seconds = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency.",
            buckets=_doubling(0.001, 15),
            registry=registry,
        )
        self._sli_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "From when a pod enters the queue to when it is bound, over all its attempts.",
            ["attempts"],
            buckets=_doubling(0.01, 20),
            registry=registry,
        )
        self._pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            buckets=_doubling(1, 5),
            registry=registry,
        )
        self._preemptions = Counter(
            "scheduler_preemption_attempts", "Total preemption attempts.", registry=registry
        )
        self._victims = Histogram(
            "scheduler_preemption_victims",
            "Number of victims of a single pod's preemption.",
            buckets=_doubling(1, 7),
            registry=registry,
        )
        self._incoming = Counter(
            "scheduler_queue_incoming_pods",
            "Number of pods added to scheduling queues by event and queue type.",
            ["queue", "event"],
            registry=registry,
        )
        self._refusals = Counter(
            "bayplan_scheduler_refusals",
            "Attempts that ended in no node, by the plugin that refused and, where volumes were"
            " the reason, by CSI driver.",
            ["plugin", "driver", "profile"],
            registry=registry,
        )
        self._skew = Gauge(
            "bayplan_scheduler_volume_limit_scaling_skew",
            "1 while the gate VolumeLimitScaling is on here and not on in the autoscaler.",
            registry=registry,
        )
        self._ungatings = Counter(
            "bayplan_scheduler_gate_removals",
            "Removals of the gate of queue admission, by what became of them.",
            ["result"],
            registry=registry,
        )
        self._incoming_of = lru_cache(256)(self._incoming.labels)
        self._attempts_of = lru_cache(256)(self._attempts.labels)
        self._attempt_seconds_of = lru_cache(256)(self._attempt_seconds.labels)
        self._sli_seconds_of = lru_cache(256)(self._sli_seconds.labels)

    def read(
        self,
        *,
        pending: Callable[[], Mapping[str, float]],
        unschedulable: Callable[[], Mapping[str, float]],
        cached: Callable[[], Mapping[str, float]],
        set_aside: Callable[[], Mapping[str, float]],
    ) -> None:
        """Register the gauges with the functions that return their values."""
        for name, text, label, source in (
            ("scheduler_pending_pods", "Pending pods, by the queue they are in.", "queue", pending),
            ("scheduler_unschedulable_pods", "Pods that wait, by the plugin that refused.",
             "plugin", unschedulable),
            ("scheduler_cache_size", "Nodes, pods and assumed pods in the cache.", "type", cached),
            ("bayplan_scheduler_set_aside_objects", "Objects that cannot be used, by kind.",
             "kind", set_aside),
        ):  # fmt: skip
            self._registry.register(_Reading(name, text, label, source))

    def attempt(self, profile: str, result: Result, seconds: float) -> None:
        """Count a scheduling attempt and its duration."""
        self._attempts_of(result, profile).inc()
        self._attempt_seconds_of(result, profile).observe(seconds)

    def decided(self, seconds: float) -> None:
        """Record the duration of a decision."""
        self._algorithm_seconds.observe(seconds)

    def bound(self, attempts: int, seconds: float) -> None:
        """Record a bound pod: its attempts, and the seconds since it was queued."""
        label = str(attempts) if attempts < _MOST_ATTEMPTS else f"{_MOST_ATTEMPTS}+"
        self._sli_seconds_of(label).observe(seconds)
        self._pod_attempts.observe(attempts)

    def preempted(self, victims: int) -> None:
        """Count a preemption attempt and its victims."""
        self._preemptions.inc()
        if victims:
            self._victims.observe(victims)

    def incoming(self, queue: str, event: str) -> None:
        """Count a pod that was added to a queue."""
        self._incoming_of(queue, event).inc()

    def refused(self, profile: str, plugins: Iterable[str], drivers: Iterable[str] = ()) -> None:
        """Count the plugins that refused a pod, with the CSI drivers of its volumes."""
        held_by = sorted(drivers)
        for plugin in plugins:
            named = held_by if names_drivers(plugin) and held_by else [""]
            for driver in named:
                self._refusals.labels(plugin, driver, profile).inc()

    def ungated(self, result: str) -> None:
        """Count the removal of a gate by its result."""
        self._ungatings.labels(result).inc()

    def skew(self, seen: bool) -> None:
        """Whether the autoscaler does not know what we hold pods back for."""
        self._skew.set(1 if seen else 0)
