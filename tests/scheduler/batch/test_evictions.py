"""Groups that cannot start make others leave: lesser ones of their queue, and pods of queues that
have more than they deserve."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from bayplan.client import Untyped, deletion, merge
from bayplan.kube.pods import Pod
from tests.scheduler.batch.objects import group, pod, queue
from tests.scheduler.batch.queue_stories import gated
from tests.scheduler.batch.test_status import served
from tests.scheduler.running_scheduler import RunningScheduler, node

pytestmark = pytest.mark.virtual
HIGH: Untyped = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 100,
}


def budget(name: str) -> Untyped:
    """A budget that lets none go of the pods that are labelled `kept`."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"kept": "yes"}}},
    }


async def protect(it: RunningScheduler, names: Iterable[str]) -> None:
    """Have a budget see pods."""
    change = merge({"metadata": {"labels": {"kept": "yes"}}})
    for name in names:
        await it.client.patch(Pod, "default", name, change=change)


async def run(it: RunningScheduler, names: Iterable[str]) -> None:
    """Have pods run, as kubelets do."""
    await it.placed("default", *names)
    for name in names:
        change = merge({"status": {"phase": "Running"}})
        await it.client.patch(Pod, "default", name, change=change, subresource="status")


def leaving(it: RunningScheduler) -> set[str]:
    pods = it.live.cached(Pod).values()
    return {one.name for one in pods if one.is_terminating}


async def let_go(it: RunningScheduler) -> None:
    """End pods that are being deleted, as kubelets do."""
    for name in leaving(it):
        await it.client.delete(Pod, "default", name, options=deletion(grace=0))


async def make(it: RunningScheduler, name: str, queue: str, pods: int, **spec: object) -> list[str]:
    """A group of pods of one cpu each, that needs only the first to start unless it says else."""
    least = int(str(spec.pop("least", 1)))
    await it.client.create(group("default", name, queue, least, **spec))
    names = [f"{name}-{number}" for number in range(pods)]
    for one in names:
        await it.client.create(pod("default", one, "1", group=name))
    return names


async def test_a_group_over_quota_makes_lesser_ones_of_its_queue_leave() -> None:
    async with served(HIGH, queue("team", {"cpu": "3"}), node("n", "8")) as (lab, it):
        await run(it, await make(it, "low", "team", 3))
        high = await make(it, "high", "team", 2, least=2, priorityClassName="high")
        await lab.forward(5)
        # The first of the lesser group stays: without it that could not go on.
        assert len(leaving(it)) == 2
        assert gated(it, "default") == set(high)
        conditions = [
            one.reason for found in it.live.cached(Pod).values() if found.is_terminating
            for one in found.status.conditions if one.type == "DisruptionTarget"
        ]  # fmt: skip
        assert conditions == ["PreemptionByScheduler"] * 2
        await let_go(it)
        await it.placed("default", *high)


async def test_nobody_leaves_in_vain_or_twice() -> None:
    async with served(HIGH, queue("team", {"cpu": "3"}), node("n", "8")) as (lab, it):
        await run(it, await make(it, "low", "team", 3))
        await make(it, "huge", "team", 4, least=4, priorityClassName="high")
        await lab.forward(60)
        assert leaving(it) == set()
        high = await make(it, "high", "team", 1, priorityClassName="high")
        await lab.forward(60)
        assert len(leaving(it)) == 1
        await let_go(it)
        await it.placed("default", *high)
        await lab.forward(60)
        assert leaving(it) == set()


async def test_a_group_of_equal_rank_waits() -> None:
    async with served(queue("team", {"cpu": "2"}), node("n", "8")) as (lab, it):
        await run(it, await make(it, "first", "team", 2))
        second = await make(it, "second", "team", 1)
        await lab.forward(60)
        assert (leaving(it), gated(it, "default")) == (set(), set(second))


async def test_a_queue_takes_back_what_it_deserves() -> None:
    queues = (queue("rich", deserved={"cpu": "2"}), queue("poor", deserved={"cpu": "2"}))
    async with served(*queues, node("n", "4")) as (lab, it):
        await run(it, await make(it, "many", "rich", 4))
        few = await make(it, "few", "poor", 2, least=2)
        await lab.forward(20)
        assert len(leaving(it)) == 2
        await let_go(it)
        await it.placed("default", *few)
        more = await make(it, "more", "poor", 1)
        await lab.forward(60)
        assert leaving(it) == set()
        assert it.node_of("default", more[0]) == ""


async def test_queues_that_are_not_reclaimable_are_spared() -> None:
    rich = queue("rich", deserved={"cpu": "1"}, reclaimable=False)
    async with served(rich, queue("poor", deserved={"cpu": "2"}), node("n", "3")) as (lab, it):
        await run(it, await make(it, "many", "rich", 3))
        await make(it, "few", "poor", 1)
        await lab.forward(60)
        assert leaving(it) == set()


async def test_who_comes_in_place_of_a_victim_waits_behind_whom_it_left_for() -> None:
    async with served(HIGH, queue("team", {"cpu": "2"}), node("n", "8")) as (lab, it):
        low = await make(it, "low", "team", 2)
        await run(it, low)
        high = await make(it, "high", "team", 1, priorityClassName="high")
        await lab.forward(5)
        victim = next(iter(leaving(it)))
        await it.client.delete(Pod, "default", victim, options=deletion(grace=0))
        await it.client.create(pod("default", victim, "1", group="low"))  # its controller's next
        await it.placed("default", *high)
        assert gated(it, "default") == {victim}


@pytest.mark.parametrize("kept", [(0, 1), (1, 2), (2, 3), (0, 3)])
async def test_pods_whom_a_budget_protects_leave_last(kept: tuple[int, int]) -> None:
    queues = (HIGH, queue("team", {"cpu": "4"}), budget("b"))
    async with served(*queues, node("n", "8")) as (lab, it):
        low = await make(it, "low", "team", 4)
        await run(it, low)
        protected = {low[number] for number in kept}
        await protect(it, protected)
        await make(it, "high", "team", 2, least=2, priorityClassName="high")
        await lab.forward(5)
        assert leaving(it) == set(low) - protected


async def test_a_node_where_no_budget_is_broken_is_taken_first() -> None:
    queues = (queue("rich", deserved={"cpu": "1"}), queue("poor", deserved={"cpu": "2"}))
    async with served(*queues, budget("b"), node("n1", "2")) as (lab, it):
        first = await make(it, "many", "rich", 3)
        await it.until(lambda: sum(bool(it.node_of("default", one)) for one in first) == 2)
        there = [one for one in first if it.node_of("default", one)]
        await it.client.create(node("n2", "1"))
        await run(it, first)
        await protect(it, there)
        await make(it, "few", "poor", 1)
        await lab.forward(20)
        assert leaving(it) == set(first) - set(there)


async def test_a_budget_does_not_stand_in_the_way() -> None:
    queues = (HIGH, queue("team", {"cpu": "2"}), budget("b"))
    async with served(*queues, node("n", "8")) as (lab, it):
        low = await make(it, "low", "team", 2)
        await run(it, low)
        await protect(it, low)
        await make(it, "high", "team", 1, priorityClassName="high")
        await lab.forward(5)
        assert len(leaving(it)) == 1
