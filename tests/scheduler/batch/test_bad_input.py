"""Queues, groups and pods that make no sense: a condition and an event say so, the others go on."""

from __future__ import annotations

import pytest

from bayplan.client import Untyped, merge
from bayplan.client.resources import EVENTS
from bayplan.kube.volcano import PodGroup, Queue
from tests.client.conftest import meta
from tests.scheduler.batch.objects import group, pod, queue
from tests.scheduler.batch.queue_stories import gated, scale_up_pods
from tests.scheduler.batch.test_status import served
from tests.scheduler.running_scheduler import RunningScheduler, node

pytestmark = pytest.mark.virtual
GOOD = (node("n", "8"), queue("good"))


async def events(it: RunningScheduler, name: str) -> str:
    """What events say of an object, by its name."""
    found = (await it.client.list(EVENTS)).items
    return " ".join(f"{one.reason}: {one.note}" for one in found if one.regarding.name == name)


async def only_the_good_one_runs(it: RunningScheduler) -> None:
    await it.placed("default", "good")
    assert it.node_of("default", "bad") == ""
    assert scale_up_pods(it, "default") == set()


BAD_QUEUES: dict[str, tuple[tuple[Untyped, ...], str]] = {
    "an unknown queue": ((), "queue bad does not exist"),
    "an inner queue": ((queue("bad"), queue("below", parent="bad")), "has queues below it"),
    "a cycle": ((queue("bad", parent="other"), queue("other", parent="bad")), "lead back to it"),
    "an unknown parent": ((queue("bad", parent="nobody"),), "nobody"),
    "a negative amount": ((queue("bad", {"cpu": "-3"}),), "is negative"),
    "an absurd amount": ((queue("bad", {"cpu": "9" * 60}),), "beyond 64 bits"),
}


@pytest.mark.parametrize("what", BAD_QUEUES)
async def test_a_pod_of_such_a_queue_waits_and_says_why(what: str) -> None:
    queues, text = BAD_QUEUES[what]
    async with served(*GOOD, *queues) as (lab, it):
        await it.client.create(pod("default", "bad", queue="bad"))
        await it.client.create(pod("default", "good", queue="good"))
        await only_the_good_one_runs(it)
        await lab.forward(5)
        assert gated(it, "default") == {"bad"}
        assert text in it.condition_message("default", "bad")
        assert text in await events(it, "bad")
        groups = (await it.client.list(PodGroup)).items
        said = [one.message for made in groups for one in made.status.conditions]
        assert any(text in message for message in said)


async def test_a_closed_queue_takes_no_work_until_it_is_open() -> None:
    async with served(*GOOD, queue("bad")) as (_, it):
        await _set_state(it, "Closed")
        await it.client.create(pod("default", "bad", queue="bad"))
        await it.client.create(pod("default", "good", queue="good"))
        await only_the_good_one_runs(it)
        assert "queue bad is not open" in it.condition_message("default", "bad")
        await _set_state(it, "Open")
        await it.placed("default", "bad")


async def test_contradictory_quota_is_told_and_reckoned_with() -> None:
    bad = queue("bad", {"cpu": "2"}, deserved={"cpu": "4"}, guarantee={"resource": {"cpu": "3"}})
    async with served(*GOOD, bad) as (lab, it):
        await it.client.create(pod("default", "small", "2", queue="bad"))
        await it.placed("default", "small")
        await lab.forward(5)
        said = await events(it, "bad")
        assert "deserved of cpu is above capability" in said


async def test_a_group_that_needs_more_pods_than_there_are_says_so() -> None:
    async with served(*GOOD, group("default", "bad", "good", 3)) as (lab, it):
        await it.client.create(pod("default", "bad", group="bad"))
        await it.client.create(pod("default", "good", queue="good"))
        await only_the_good_one_runs(it)
        await lab.forward(5)
        found = await it.client.get(PodGroup, "default", "bad")
        (condition,) = found.status.conditions
        assert (condition.type, condition.reason) == ("Unschedulable", "NotEnoughTasks")
        assert "it has 1 pods, and needs 3 to start" in await events(it, "bad")


async def test_a_group_that_does_not_exist_is_waited_for() -> None:
    async with served(*GOOD) as (_, it):
        await it.client.create(pod("default", "bad", group="nobody"))
        await it.client.create(pod("default", "good", queue="good"))
        await only_the_good_one_runs(it)
        assert "PodGroup default/nobody does not exist" in it.condition_message("default", "bad")
        await it.client.create(group("default", "nobody", "good"))
        await it.placed("default", "bad")


@pytest.mark.parametrize("said", ["many", "-1", "0", "9" * 30, "1.5", ""])
async def test_a_malformed_annotation_is_told(said: str) -> None:
    async with served(*GOOD) as (lab, it):
        bad = pod("default", "bad", queue="good")
        annotations = meta(bad)["annotations"]
        assert isinstance(annotations, dict)
        annotations["scheduling.volcano.sh/group-min-member"] = said
        await it.client.create(bad)
        await it.client.create(pod("default", "good", queue="good"))
        await only_the_good_one_runs(it)
        assert "is no number of pods" in it.condition_message("default", "bad")
        await lab.forward(5)
        assert "is no number of pods" in await events(it, "bad")


async def test_a_pod_with_the_gate_of_others_is_left_alone() -> None:
    async with served(*GOOD) as (lab, it):
        bad = pod("default", "bad", queue="good")
        spec = bad["spec"]
        assert isinstance(spec, dict)
        spec["schedulingGates"] = [*spec["schedulingGates"], {"name": "example.com/other"}]
        await it.client.create(bad)
        await it.client.create(pod("default", "good", queue="good"))
        await only_the_good_one_runs(it)
        await lab.forward(60)
        found = it.pod("default", "bad")
        assert found is not None
        assert len(found.spec.scheduling_gates) == 2


async def _set_state(it: RunningScheduler, state: str) -> None:
    change = merge({"status": {"state": state}})
    await it.client.patch(Queue, "bad", change=change, subresource="status")
