"""Nodes with wrong values in their status, and ours at work: passed over, told, never unlimited.

API servers refuse what is negative, and take fractions; dumps can have both.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bayplan.client import Client
from bayplan.kube.events import Event
from bayplan.kube.nodes import Node
from tests.autoscaler.running_autoscaler import story, virtual_running_cluster
from tests.node.running_agent import overwrite, seen
from tests.scheduler.running_scheduler import node, scheduling
from tests.scheduler.scheduler_stories import DRIVER, claim, csinode, with_volume

NAME = "bayplan-wrong"
KEY = f"attachable-volumes-csi-{DRIVER}"


@pytest.mark.wall
@pytest.mark.virtual
async def test_a_wrong_value(any_client: Client, any_namespace: str) -> None:
    """No pod comes by it; once it is set right, pods come up to the limit."""
    client, namespace = any_client, any_namespace
    size = {"cpu": "4", "memory": "32Gi", "pods": "110", KEY: "1500m"}
    await client.create({**node(NAME), "status": {"capacity": size, "allocatable": size}})
    await client.create(csinode(NAME, limit=None))
    for name in ("a", "b"):
        await claim(client, namespace, name)
    async with scheduling(client) as it:
        await client.create(with_volume(namespace, "a"))
        await it.until(lambda: "exceed max volume count" in it.condition_message(namespace, "a"))
        told = await seen(client, Event, _about("UnreadableAttachLimit"))
        assert told.note == f"{KEY}: '1500m' is not a valid attach limit, and is ignored"
        await overwrite(client, NAME, KEY, "1")
        assert await it.placed(namespace, "a") == [NAME]
        await client.create(with_volume(namespace, "b"))
        await it.until(lambda: "exceed max volume count" in it.condition_message(namespace, "b"))
        await overwrite(client, NAME, KEY, "0")
        over = await seen(client, Event, _about("VolumeLimitExceeded"))
        assert over.note.startswith(f"1 volumes of {DRIVER} are attached, over the limit 0")
        assert it.node_of(namespace, "a") == NAME


def _about(reason: str) -> Callable[[Event], bool]:
    return lambda one: (one.reason, one.regarding.name) == (reason, NAME)


@pytest.mark.virtual
async def test_nothing_is_bought_in_the_belief_that_a_wrong_value_is_no_limit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    spec = story(
        "6-old-limits-by-node-type",
        ("attachLimits:\n  prefix: both\n", ""),
        ("max: 10", "max: 1"),
    )
    async with virtual_running_cluster(spec) as cluster:
        while len(await cluster.nodes()) < 3:
            await cluster.lab.forward(1)
        for name in ("small-1", "large-1"):
            await overwrite(cluster.client, name, "attachable-volumes-azure-disk", "500m")
        await cluster.lab.forward(120)
        # Of Azure disks at least the old fallback is known: sixteen.
        on = [one.spec.node_name for one in await cluster.pods() if one.spec.node_name]
        assert 0 < on.count("small-1") <= 16
        assert on.count("large-1") <= 16
        assert (await cluster.client.get(Node, "small-1")).status.allocatable[
            "attachable-volumes-azure-disk"
        ] == "500m"
    said = [r.message for r in caplog.records if r.name == "bayplan.autoscaler.daemon"]
    wrong = "attachable-volumes-azure-disk: '500m' is not a valid attach limit, and is ignored"
    assert sorted(one for one in said if wrong in one) == [
        f"node large-1: {wrong}",
        f"node small-1: {wrong}",
    ]
