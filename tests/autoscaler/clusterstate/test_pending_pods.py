"""Which pods count: those that a scheduler found no node for, and few others."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bayplan.autoscaler.clusterstate.pending_pods import (
    DELAY,
    PendingPods,
    PendingState,
    pending_state,
    unschedulable_pods,
)
from bayplan.autoscaler.options import ScaleUpOptions
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.pods import Pod
from bayplan.kube.times import timestamp
from tests.autoscaler.cluster_views import NOW
from tests.builders import PodBuilder, make_pod


def refused(name: str = "p") -> PodBuilder:
    """A pod that a scheduler found no node for."""
    return make_pod(name).uid(name).condition("PodScheduled", "False", "Unschedulable")


QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"
CASES = [
    (refused(), PendingState.UNSCHEDULABLE),
    (make_pod(), PendingState.UNPROCESSED),
    # It takes room that would look free to the rest of its gang.
    (make_pod().condition("PodScheduled", "False", "Schedulable"), PendingState.UNSCHEDULABLE),
    (make_pod().condition("PodScheduled", "False", "SchedulerError"), PendingState.UNPROCESSED),
    (refused().nominated("n"), PendingState.NOMINATED),
    (make_pod().gate("example.com/wait"), PendingState.GATED),
    (make_pod().gate(QUEUE_GATE).condition("PodScheduled", "False", "SchedulingGated"),
     PendingState.QUEUED),
    (refused().node("n"), None),
    (refused().terminating(), None),
    (refused().phase("Failed"), None),
]  # fmt: skip


@pytest.mark.parametrize(("pod", "how"), CASES)
def test_how_a_pod_waits(pod: PodBuilder, how: PendingState | None) -> None:
    assert pending_state(pod.obj()) is how


def observe_pods(*pods: PodBuilder) -> PendingPods:
    waiting = PendingPods()
    for pod in pods:
        waiting.on_event(ClusterEvent.of(None, pod.obj()))
    return waiting


def counted(waiting: PendingPods, **options: object) -> tuple[list[str], dict[str, int]]:
    def priority(pod: Pod) -> int:
        return pod.spec.priority or 0

    found = unschedulable_pods(waiting, ScaleUpOptions(**options), NOW, priority)  # type: ignore[arg-type]
    return [pod.name for pod in found.pods], dict(found.ignored)


def test_a_pod_is_followed_from_its_beginning_to_its_node() -> None:
    waiting = observe_pods(make_pod("p"))
    assert counted(waiting) == ([], {"scheduler_unprocessed": 1})
    waiting.on_event(ClusterEvent.of(make_pod("p").obj(), refused("p").obj()))
    assert counted(waiting) == (["p"], {})
    waiting.on_event(ClusterEvent.of(refused("p").obj(), refused("p").node("n").obj()))
    assert counted(waiting) == ([], {})
    waiting.on_event(ClusterEvent.of(refused("p").node("n").obj(), None))


def test_pods_of_schedulers_that_are_bypassed_count_at_once() -> None:
    waiting = observe_pods(make_pod("a").scheduler("fast"), make_pod("b"), refused("c"))
    assert counted(waiting, bypassed_scheduler_names=("fast",))[0] == ["a", "c"]
    assert counted(waiting)[0] == ["c"]


def test_gated_and_nominated_pods_never_count() -> None:
    waiting = observe_pods(
        refused("a").gate(QUEUE_GATE), refused("b").gate("x"), refused("c").nominated("n")
    )
    found = counted(waiting, bypassed_scheduler_names=("default-scheduler",))
    assert found == ([], {"queue": 1, "scheduling_gated": 1, "nominated": 1})


def test_daemons_and_expendable_pods_do_not_count() -> None:
    daemon = refused("d").owner("DaemonSet", "d")
    marked = refused("m").annotation("cluster-autoscaler.kubernetes.io/daemonset-pod", "true")
    cheap, dear = refused("e").priority(-11), refused("f").priority(-10)
    found = counted(observe_pods(daemon, marked, cheap, dear))
    assert found == (["f"], {"daemonset": 2, "expendable": 1})


def test_young_pods_wait_as_long_as_they_or_the_option_say() -> None:
    def born(seconds: float) -> str:
        return timestamp(NOW - timedelta(seconds=seconds))

    old, young = refused("old").created(born(60)), refused("young").created(born(59))
    patient = refused("patient").created(born(60)).annotation(DELAY, "2m")
    hasty = refused("hasty").created(born(1)).annotation(DELAY, "1s")
    odd = refused("odd").created(born(60)).annotation(DELAY, "soon")
    found = counted(observe_pods(old, young, patient, hasty, odd), new_pod_scale_up_delay=60.0)
    assert found == (["old", "odd"], {"too young": 3})


def test_only_pods_of_allowed_schedulers_count_if_there_are_some() -> None:
    waiting = observe_pods(refused("a").scheduler("batch"), refused("b"))
    assert counted(waiting, allowed_scheduler_names=("batch",)) == (["a"], {"other scheduler": 1})
