"""Metrics have kube-scheduler's names, so that its dashboards work."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from bayplan.scheduler.metrics import SchedulerMetrics


def test_metrics_go_by_kube_schedulers_names() -> None:
    registry = CollectorRegistry()
    metrics = SchedulerMetrics(registry)
    waiting = {"active": 1.0, "gated": 2.0}
    metrics.read(
        pending=lambda: waiting,
        unschedulable=lambda: {"NodePorts": 3.0},
        cached=lambda: {"nodes": 4.0},
        set_aside=lambda: {"Pod": 5.0},
    )
    metrics.attempt("bayplan", "scheduled", 0.01)
    metrics.decided(0.001)
    metrics.bound(3, 2.0)
    metrics.bound(40, 2.0)
    metrics.preempted(2)
    metrics.incoming("active", "PodAdd")
    metrics.refused("bayplan", ["NodePorts", "NodeVolumeLimits"], ["ebs.csi.aws.com"])
    metrics.skew(True)
    waiting["active"] = 7.0

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, labels)

    done = {"result": "scheduled", "profile": "bayplan"}
    assert value("scheduler_schedule_attempts_total", **done) == 1
    assert value("scheduler_scheduling_attempt_duration_seconds_count", **done) == 1
    assert value("scheduler_scheduling_algorithm_duration_seconds_count") == 1
    assert value("scheduler_pod_scheduling_sli_duration_seconds_count", attempts="3") == 1
    assert value("scheduler_pod_scheduling_sli_duration_seconds_count", attempts="15+") == 1
    assert value("scheduler_pod_scheduling_attempts_count") == 2
    assert value("scheduler_preemption_attempts_total") == 1
    assert value("scheduler_preemption_victims_sum") == 2
    assert value("scheduler_queue_incoming_pods_total", queue="active", event="PodAdd") == 1
    assert value("scheduler_pending_pods", queue="active") == 7
    assert value("scheduler_unschedulable_pods", plugin="NodePorts") == 3
    assert value("scheduler_cache_size", type="nodes") == 4
    assert value("bayplan_scheduler_set_aside_objects", kind="Pod") == 5
    refusals = "bayplan_scheduler_refusals_total"
    assert value(refusals, plugin="NodePorts", driver="", profile="bayplan") == 1
    ebs = {"plugin": "NodeVolumeLimits", "driver": "ebs.csi.aws.com", "profile": "bayplan"}
    assert value(refusals, **ebs) == 1
    assert value("bayplan_scheduler_volume_limit_scaling_skew") == 1
