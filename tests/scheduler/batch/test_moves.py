"""Quota that is held, while queues, groups and pods change under it."""

from __future__ import annotations

import pytest

from bayplan.client import merge
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.queues import Ledger
from bayplan.queues.observed_queues import ObservedQueues
from tests.builders import PodBuilder, make_pod
from tests.scheduler.batch.objects import group, pod, queue
from tests.scheduler.batch.queue_stories import scale_up_pods
from tests.scheduler.batch.test_reservations import held, reason
from tests.scheduler.batch.test_status import served
from tests.scheduler.running_scheduler import node

pytestmark = pytest.mark.virtual
LARGE, SMALL = queue("large", {"cpu": "4"}), queue("small", {"cpu": "1"})


async def test_a_group_that_moves_to_another_queue_needs_the_quota_of_that_one() -> None:
    async with served(LARGE, SMALL, group("default", "g", "large")) as (lab, it):
        await it.client.create(pod("default", "p", "2", group="g"))
        await lab.forward(5)
        assert scale_up_pods(it, "default") == {"p"}
        await it.client.patch(PodGroup, "default", "g", change=merge({"spec": {"queue": "small"}}))
        await lab.forward(5)
        assert (held(it, "large"), held(it, "small")) == (0, 0)
        assert reason(it, "p") == "NotAdmitted"
        await it.client.create(node("n"))
        await lab.forward(60)
        assert it.node_of("default", "p") == ""


async def test_a_pod_that_moves_to_another_group_needs_the_quota_of_that_one() -> None:
    groups = (group("default", "a", "large"), group("default", "b", "small"))
    async with served(LARGE, SMALL, *groups) as (lab, it):
        await it.client.create(pod("default", "p", "2", group="a"))
        await lab.forward(5)
        assert scale_up_pods(it, "default") == {"p"}
        moved = {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "b"}}}
        await it.client.patch(Pod, "default", "p", change=merge(moved))
        await it.client.create(node("n"))
        await lab.forward(60)
        assert (held(it, "large"), held(it, "small")) == (0, 0)
        assert (it.node_of("default", "p"), reason(it, "p")) == ("", "NotAdmitted")


async def test_quota_that_is_lowered_is_held_by_the_first_as_far_as_it_goes() -> None:
    async with served(queue("team", {"cpu": "4"})) as (lab, it):
        for name in ("first", "second"):
            await it.client.create(pod("default", name, "2", queue="team"))
            await lab.forward(5)
        assert scale_up_pods(it, "default") == {"first", "second"}
        await it.client.patch(Queue, "team", change=merge({"spec": {"capability": {"cpu": "2"}}}))
        await lab.forward(5)
        assert (held(it, "team"), scale_up_pods(it, "default")) == (2000, {"first"})
        await it.client.create(node("n"))
        await it.placed("default", "first")
        await lab.forward(60)
        assert it.node_of("default", "second") == ""
        await it.client.patch(Queue, "team", change=merge({"spec": {"capability": {"cpu": "4"}}}))
        await it.placed("default", "second")


def running() -> PodBuilder:
    """A pod of a queue, on a node."""
    pod = make_pod("p").uid("p").cpu("1").node("n").phase("Running")
    return pod.annotation("scheduling.volcano.sh/queue-name", "default")


@pytest.mark.parametrize(
    ("resized", "cpu"), [(running().sidecar(cpu="3"), 4000), (running().pod_level(cpu="5"), 5000)]
)
def test_a_pod_that_is_resized_counts_as_what_it_is_now(resized: PodBuilder, cpu: int) -> None:
    observed = ObservedQueues(Ledger(), lambda _: True)
    observed.observe_pod(running().obj())
    observed.observe_pod(resized.obj())
    assert observed.ledger.usage("default").allocated["cpu"] == cpu


def test_a_label_may_spare_a_pod_at_any_time() -> None:
    observed = ObservedQueues(Ledger(), lambda _: True)
    observed.observe_pod(running().obj())
    observed.observe_pod(running().label("volcano.sh/preemptable", "false").obj())
    assert not observed.ledger.members["default/p"].preemptable
