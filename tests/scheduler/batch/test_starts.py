"""Groups that can start do start: which pods of a group are admitted, tried and placed, live and in
one cycle (`queues --next`).
"""

from __future__ import annotations

import pytest

from bayplan.client import Client, Untyped
from bayplan.kube.meta import KubeObject, ObjectMeta
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import PodGroup
from bayplan.kube.workloads import PriorityClass
from bayplan.lab import VirtualLab
from bayplan.queues.queue_snapshot import priorities_in, queue_snapshot
from tests.scheduler.batch import objects
from tests.scheduler.batch.test_agreement import everything, plan_of
from tests.scheduler.batch.test_random_queues import NOBODY
from tests.scheduler.running_scheduler import node, scheduling

pytestmark = pytest.mark.virtual
NS = "default"
QUIET = 30.0
"""Seconds in which all that can be decided is decided."""


async def shown(*made: Untyped) -> tuple[dict[str, str], dict[str, str], list[KubeObject]]:
    """Make these objects, let a scheduler run, and say the node of each pod, the phase of each
    group, and how it all was before.
    """
    async with VirtualLab(NOBODY) as lab:
        client = lab.client()
        await objects.install_kinds(client)
        for one in made:
            await client.create(one)
        before = await everything(client)
        async with scheduling(client):
            await lab.forward(QUIET)
        return await nodes_of(client), await phases_of(client), before


async def nodes_of(client: Client) -> dict[str, str]:
    return {one.name: one.spec.node_name for one in (await client.list(Pod)).items}


async def phases_of(client: Client) -> dict[str, str]:
    return {one.name: one.status.phase for one in (await client.list(PodGroup)).items}


def placed(nodes: dict[str, str]) -> set[str]:
    return {name for name, where in nodes.items() if where}


def planned(found: list[KubeObject]) -> set[str]:
    """The pods that a cycle would place."""
    return {one.pod.partition("/")[2] for one in plan_of(found).placed}


async def test_a_group_without_pods_is_admitted_where_its_queue_has_room() -> None:
    _, phases, before = await shown(
        objects.queue("q", {"cpu": "3"}),
        objects.group(NS, "first", "q", 2, minResources={"cpu": "2"}),
        objects.group(NS, "second", "q", 2, minResources={"cpu": "2"}),
        objects.group(NS, "small", "q", 1, minResources={"cpu": "1"}),
    )
    assert phases == {"first": "Inqueue", "second": "Pending", "small": "Inqueue"}
    assert set(plan_of(before).admitted) == {f"{NS}/first", f"{NS}/small"}


async def test_a_group_with_too_few_pods_is_admitted_and_does_not_start() -> None:
    nodes, phases, _ = await shown(
        node("n", "8"),
        objects.queue("q", {"cpu": "3"}),
        objects.group(NS, "few", "q", 2, minResources={"cpu": "2"}),
        objects.pod(NS, "few-0", "1", group="few", gated=False),
    )
    assert phases == {"few": "Inqueue"}
    assert placed(nodes) == set()


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("strategy", ["traverse", "fifo"])
async def test_pods_over_quota_do_not_block_smaller_ones_of_their_group(
    gated: bool, strategy: str
) -> None:
    nodes, _, before = await shown(
        node("n", "8"),
        objects.queue("q", {"cpu": "3"}, dequeueStrategy=strategy),
        objects.group(NS, "g", "q"),
        objects.pod(NS, "g-x-0", "2", group="g", gated=gated),
        objects.pod(NS, "g-x-1", "2", group="g", gated=gated),
        objects.pod(NS, "g-x-2", "1", group="g", gated=gated),
    )
    assert placed(nodes) == {"g-x-0", "g-x-2"} == planned(before)


@pytest.mark.parametrize("gated", [False, True])
async def test_a_gang_starts_with_the_pods_that_quota_has_room_for(gated: bool) -> None:
    nodes, _, before = await shown(
        node("n", "8"),
        objects.queue("q", {"cpu": "3"}),
        objects.group(NS, "g", "q", 2),
        objects.pod(NS, "g-x-0", "2", group="g", gated=gated),
        objects.pod(NS, "g-x-1", "2", group="g", gated=gated),
        objects.pod(NS, "g-x-2", "1", group="g", gated=gated),
    )
    assert placed(nodes) == {"g-x-0", "g-x-2"} == planned(before)


async def test_groups_that_ask_for_the_same_pods_are_admitted_by_what_each_needs() -> None:
    nodes, phases, before = await shown(
        node("n", "8"),
        objects.queue("q", {"cpu": "3"}),
        objects.group(NS, "a", "q", 1, minResources={"cpu": "4"}),
        objects.pod(NS, "a-0", "1", group="a", gated=False),
        objects.group(NS, "b", "q", 1, minResources={"cpu": "1"}),
        objects.pod(NS, "b-0", "1", group="b", gated=False),
    )
    assert phases["a"] == "Pending"
    assert placed(nodes) == {"b-0"} == planned(before)


@pytest.mark.parametrize("gated", [False, True])
async def test_a_gang_starts_with_the_pods_that_nodes_take(gated: bool) -> None:
    nodes, _, before = await shown(
        node("n", "4"),
        objects.queue("q"),
        objects.group(NS, "g", "q", 2),
        objects.pod(NS, "g-x-0", "6", group="g", gated=gated),
        objects.pod(NS, "g-x-1", "2", group="g", gated=gated),
        objects.pod(NS, "g-x-2", "2", group="g", gated=gated),
    )
    assert placed(nodes) == {"g-x-1", "g-x-2"} == planned(before)


@pytest.mark.parametrize("gated", [False, True])
async def test_members_are_tried_again_beside_those_that_were_placed_since(gated: bool) -> None:
    nodes, _, before = await shown(
        node("n-a", "8", zone="a"),
        node("n-b", "8", zone="b"),
        objects.queue("q"),
        objects.group(NS, "g", "q", 3),
        *(spread_pod(name, zone, gated=gated) for name, zone in PODS),
    )
    assert placed(nodes) == {name for name, _ in PODS} == planned(before)


PODS = (("g-x-0", "a"), ("g-x-1", "a"), ("g-x-2", "b"))


def spread_pod(name: str, zone: str, *, gated: bool) -> Untyped:
    """A pod of one zone that is spread over all of them with the others of its gang."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "g"}},
        "nodeAffinityPolicy": "Ignore",
    }
    made = objects.pod(
        NS,
        name,
        "1",
        group="g",
        gated=gated,
        nodeSelector={"zone": zone},
        topologySpreadConstraints=[spread],
    )
    meta = made["metadata"]
    assert isinstance(meta, dict)
    meta["labels"] = {"app": "g"}
    return made


def test_of_two_default_classes_the_lower_value_counts_for_all() -> None:
    low, high = (
        PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=True)
        for name, value in (("low", 10), ("high", 20))
    )
    assert priorities_in([low, high])("") == priorities_in([high, low])("") == 10
    assert priorities_in([low, high])("high") == 20
    assert queue_snapshot([low, high]).queues
