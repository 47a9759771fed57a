"""PodGroups are made for those that need one; groups and queues say how they stand, when it
changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bayplan.client import Untyped, deletion, merge
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.lab import VirtualLab
from tests.client.conftest import meta as meta_of
from tests.scheduler.batch.objects import group, install_kinds, pod, queue
from tests.scheduler.running_scheduler import RunningScheduler, node, scheduling

pytestmark = pytest.mark.virtual
NOBODY = parse_cluster(b"seed: 1\n", "empty", Path())


@asynccontextmanager
async def served(*objects: Untyped) -> AsyncIterator[tuple[VirtualLab, RunningScheduler]]:
    """A cluster with queues, these objects and a scheduler."""
    async with VirtualLab(NOBODY) as lab:
        client = lab.client()
        await install_kinds(client)
        for one in objects:
            await client.create(one)
        async with scheduling(client) as it:
            yield lab, it


async def the_group(it: RunningScheduler) -> PodGroup:
    (found,) = (await it.client.list(PodGroup)).items
    return found


async def test_a_bare_pod_gets_a_group_of_its_own() -> None:
    async with served(queue("team"), node("n")) as (lab, it):
        await it.client.create(pod("default", "p", queue="team"))
        await lab.forward(5)
        made, owner = await the_group(it), await it.client.get(Pod, "default", "p")
        assert made.name == f"podgroup-{owner.metadata.uid}"
        assert (made.spec.queue, made.spec.min_member) == ("team", 1)
        assert [one.uid for one in made.metadata.owner_references] == [owner.metadata.uid]


async def test_pods_of_one_controller_share_a_group_that_needs_as_many_as_they_say() -> None:
    async with served(queue("team"), node("n")) as (lab, it):
        kind = {"apiVersion": "v1", "kind": "ConfigMap"}
        place = {"namespace": "default", "name": "owner"}
        owner = await it.client.create({**kind, "metadata": place})
        uid = meta_of(owner)["uid"]
        reference = {**kind, "name": "owner", "uid": uid}
        for number in range(2):
            made = pod("default", f"p{number}", queue="team")
            meta = meta_of(made)
            meta["ownerReferences"] = [{**reference, "controller": True}]
            annotations = meta["annotations"]
            assert isinstance(annotations, dict)
            annotations["scheduling.volcano.sh/group-min-member"] = "2"
            await it.client.create(made)
            await lab.forward(5)
            assert bool(it.node_of("default", "p0")) == (number == 1)
        found = await the_group(it)
        assert (found.name, found.spec.min_member) == (f"podgroup-{uid}", 2)
        assert found.metadata.owner_references[0].kind == "ConfigMap"


async def test_a_pod_that_uses_no_queue_needs_no_group() -> None:
    async with served(node("n")) as (lab, it):
        await it.client.create(pod("default", "p", gated=False))
        await lab.forward(5)
        assert (it.node_of("default", "p"), (await it.client.list(PodGroup)).items) == ("n", [])


async def test_a_group_goes_through_its_phases_and_its_queue_counts_it() -> None:
    objects = (queue("team", {"cpu": "1"}), node("n"), group("default", "g", "team", 2))
    async with served(*objects) as (lab, it):

        async def stands() -> tuple[str, int, dict[str, object]]:
            await lab.forward(5)
            found = await it.client.get(PodGroup, "default", "g")
            state = await it.client.get(Queue, "team")
            return found.status.phase, found.status.running, dict(state.status.allocated)

        for name in ("a", "b"):
            await it.client.create(pod("default", name, "1", group="g"))
        assert await stands() == ("Inqueue", 0, {})
        found = await it.client.get(PodGroup, "default", "g")
        (condition,) = found.status.conditions
        assert (condition.type, condition.reason) == ("Unschedulable", "NotEnoughResources")
        assert "queue team has no quota left: cpu" in condition.message
        await it.client.patch(Queue, "team", change=merge({"spec": {"capability": {"cpu": "2"}}}))
        assert await stands() == ("Running", 0, {"cpu": "2", "pods": "2"})
        for name in ("a", "b"):
            change = merge({"status": {"phase": "Running"}})
            await it.client.patch(Pod, "default", name, change=change, subresource="status")
        assert await stands() == ("Running", 2, {"cpu": "2", "pods": "2"})
        state = await it.client.get(Queue, "team")
        assert (state.status.state, state.status.running, state.status.inqueue) == ("Open", 1, 0)
        for name in ("a", "b"):
            change = merge({"status": {"phase": "Succeeded"}})
            await it.client.patch(Pod, "default", name, change=change, subresource="status")
        assert await stands() == ("Completed", 0, {})


async def test_what_is_allocated_rolls_up_to_every_queue_above() -> None:
    tree = (queue("root"), queue("upper"), queue("leaf", parent="upper"))
    async with served(*tree, node("n")) as (lab, it):
        await it.client.create(pod("default", "p", "2", queue="leaf"))
        await lab.forward(5)
        for name in ("leaf", "upper", "root"):
            found = await it.client.get(Queue, name)
            assert found.status.allocated["cpu"] == "2", name


async def test_nothing_is_written_while_nothing_changes() -> None:
    async with served(queue("team", {"cpu": "1"}), node("n")) as (lab, it):
        for name in ("runs", "waits"):
            await it.client.create(pod("default", name, "1", queue="team"))
        await lab.forward(10)
        written: list[WatchCacheEvent] = []
        lab.plane.store.listeners.append(written.append)
        await lab.forward(200)
        assert [str(one.entry.key) for one in written] == []


async def test_groups_of_pods_that_are_gone_are_forgotten() -> None:
    async with served(queue("team"), node("n")) as (lab, it):
        await it.client.create(pod("default", "p", queue="team"))
        await lab.forward(5)
        await it.client.delete(Pod, "default", "p", options=deletion(grace=0))
        await lab.forward(5)
        ledger = it.scheduler.batch.ledger
        made = (await it.client.list(PodGroup)).items
        assert (ledger.members, len(ledger.groups)) == ({}, len(made))
