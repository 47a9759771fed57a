"""Quota that is held for pods without a node: how long, for whom, and what becomes of it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from bayplan.client import Untyped, deletion, merge
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import Queue
from tests.scheduler.batch.objects import group, pod, queue
from tests.scheduler.batch.queue_stories import gated, scale_up_pods
from tests.scheduler.batch.test_status import served
from tests.scheduler.running_scheduler import RunningScheduler, node

pytestmark = pytest.mark.virtual
TIMEOUT, REST = 600.0, 60.0


def held(it: RunningScheduler, name: str) -> float:
    """How much cpu of a queue's quota is held for pods without a node."""
    return it.scheduler.batch.ledger.usage(name).reserved["cpu"]


def reason(it: RunningScheduler, name: str) -> str:
    found = it.pod("default", name)
    conditions = found.status.conditions if found is not None else []
    return next((one.reason for one in conditions if one.type == "PodScheduled"), "")


async def test_a_cluster_without_nodes_and_a_pod_larger_than_it_are_bought_for() -> None:
    async with served(queue("team", {"cpu": "8"})) as (lab, it):
        await it.client.create(pod("default", "first", "2", queue="team"))
        await lab.forward(5)
        assert scale_up_pods(it, "default") == {"first"}
        await it.client.create(node("small", "2"))
        await it.placed("default", "first")
        await it.client.create(pod("default", "huge", "6", queue="team"))
        await lab.forward(5)
        assert scale_up_pods(it, "default") == {"huge"}


async def test_a_group_that_one_pod_can_start_is_bought_for_as_far_as_its_quota_goes() -> None:
    async with served(queue("team", {"cpu": "3"}), group("default", "job", "team")) as (lab, it):
        for number in range(4):
            await it.client.create(pod("default", f"job-{number}", "1", group="job"))
        await lab.forward(5)
        assert len(scale_up_pods(it, "default")) == 3
        assert len(gated(it, "default")) == 1


async def test_a_pod_that_requests_nothing_loses_its_gate_too() -> None:
    async with served(queue("team", {"cpu": "0"}), node("n")) as (_, it):
        await it.client.create(pod("default", "light", "0", queue="team"))
        await it.placed("default", "light")


async def test_quota_is_given_back_after_a_time_and_nothing_is_bought_any_more() -> None:
    async with served(queue("team", {"cpu": "2"}), node("n", "1")) as (lab, it):
        await it.client.create(pod("default", "large", "2", queue="team"))
        await lab.forward(5)
        await it.client.create(pod("default", "small", "1", queue="team"))
        await lab.forward(TIMEOUT - 20)
        assert (held(it, "team"), scale_up_pods(it, "default")) == (2000, {"large"})
        assert gated(it, "default") == {"small"}
        await lab.forward(30)
        assert (reason(it, "large"), held(it, "team")) == ("ReservationTimedOut", 0)
        assert scale_up_pods(it, "default") == set()
        await it.placed("default", "small")
        assert "its quota in queue" in it.condition_message("default", "large")


async def test_after_its_rest_a_group_may_hold_quota_again_and_rests_longer_each_time() -> None:
    async with served(queue("team", {"cpu": "2"})) as (lab, it):
        await it.client.create(pod("default", "p", "2", queue="team"))
        begun = []
        bought = False
        for _ in range(int(3 * TIMEOUT + 300) // 10):
            await lab.forward(10)
            now = bool(scale_up_pods(it, "default"))
            if now and not bought:
                begun.append(it.client.clock.monotonic())
            bought = now
        is_resting = [later - earlier - TIMEOUT for earlier, later in pairwise(begun)]
        assert [round(one / REST) for one in is_resting] == [1, 2]


async def test_while_it_rests_a_pod_is_placed_if_a_node_turns_up() -> None:
    async with served(queue("team", {"cpu": "2"})) as (lab, it):
        await it.client.create(pod("default", "p", "2", queue="team"))
        await lab.forward(TIMEOUT + 10)
        assert reason(it, "p") == "ReservationTimedOut"
        await it.client.create(node("n", "2"))
        await lab.forward(20)
        assert it.node_of("default", "p") == "n"


async def test_who_never_asked_for_the_gate_holds_nothing_while_no_node_fits() -> None:
    async with served(queue("team", {"cpu": "2"}), node("n", "1")) as (lab, it):
        await it.client.create(pod("default", "large", "2", queue="team", gated=False))
        await it.client.create(pod("default", "small", "1", queue="team", gated=False))
        await it.placed("default", "small")
        await lab.forward(5)
        assert (held(it, "team"), scale_up_pods(it, "default")) == (0, {"large"})


async def test_reservations_count_in_every_queue_above() -> None:
    tree = (queue("upper", {"cpu": "3"}), queue("a", parent="upper"), queue("b", parent="upper"))
    async with served(*tree) as (lab, it):
        await it.client.create(pod("default", "first", "2", queue="a"))
        await lab.forward(5)
        await it.client.create(pod("default", "second", "2", queue="b"))
        await lab.forward(5)
        assert (scale_up_pods(it, "default"), gated(it, "default")) == ({"first"}, {"second"})
        await it.client.delete(Pod, "default", "first", options=deletion(grace=0))
        await lab.forward(5)
        assert scale_up_pods(it, "default") == {"second"}


async def test_a_pod_that_is_being_deleted_holds_its_quota_until_it_is_gone() -> None:
    async with served(queue("team", {"cpu": "1"}), node("n")) as (lab, it):
        await it.client.create(pod("default", "old", "1", queue="team"))
        await it.placed("default", "old")
        await it.client.create(pod("default", "new", "1", queue="team"))
        await it.client.delete(Pod, "default", "old")
        await lab.forward(20)
        assert gated(it, "default") == {"new"}
        await it.client.delete(Pod, "default", "old", options=deletion(grace=0))
        await it.placed("default", "new")


async def test_quota_that_is_lowered_takes_nothing_from_who_has_it() -> None:
    async with served(queue("team", {"cpu": "2"}), node("n")) as (lab, it):
        await it.client.create(pod("default", "old", "2", queue="team"))
        await it.placed("default", "old")
        await it.client.patch(Queue, "team", change=merge({"spec": {"capability": {"cpu": "1"}}}))
        await it.client.create(pod("default", "new", "1", queue="team"))
        await lab.forward(20)
        assert (it.node_of("default", "old"), gated(it, "default")) == ("n", {"new"})


def small(number: int) -> Untyped:
    return pod("default", f"small-{number}", "1", queue="team")


async def test_a_large_gang_is_overtaken_for_ten_minutes_and_then_has_its_turn() -> None:
    async with served(queue("team", {"cpu": "2"}), node("n")) as (lab, it):
        await it.client.create(small(0))
        await it.client.create(small(1))
        await it.placed("default", "small-0", "small-1")
        await it.client.create(group("default", "gang", "team", 2))
        for number in range(2):
            await it.client.create(pod("default", f"gang-{number}", "1", group="gang"))
        number, since = 2, it.client.clock.monotonic()
        while not it.node_of("default", "gang-0"):
            await it.client.create(small(number))
            await lab.forward(20)
            await it.client.delete(Pod, "default", f"small-{number - 2}", options=deletion(grace=0))
            await lab.forward(20)
            number += 1
            assert it.client.clock.monotonic() - since < 900
        assert it.client.clock.monotonic() - since > 600
        assert it.node_of("default", "gang-1")


async def test_in_a_strict_queue_nobody_overtakes() -> None:
    strict = queue("team", {"cpu": "2"}, dequeueStrategy="fifo")
    async with served(strict, node("n")) as (lab, it):
        await it.client.create(small(0))
        await it.placed("default", "small-0")
        await it.client.create(pod("default", "large", "2", queue="team"))
        await lab.forward(2)
        await it.client.create(small(1))
        await lab.forward(30)
        assert gated(it, "default") == {"large", "small-1"}
        await it.client.delete(Pod, "default", "small-0", options=deletion(grace=0))
        await it.placed("default", "large")
        assert gated(it, "default") == {"small-1"}
