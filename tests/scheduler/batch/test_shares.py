"""Nodes shared by weight: who has its share leaves what is there to others, to nobody in vain."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bayplan.client import Client, Untyped, deletion, merge
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import Queue
from bayplan.lab import VirtualLab, run_virtually
from bayplan.scheduler.config import QueueSettings, default_settings
from tests.scheduler.batch.node_provisioner import cluster_autoscaler_buys
from tests.scheduler.batch.objects import install_kinds, pod, queue
from tests.scheduler.batch.test_faults import UNGATES
from tests.scheduler.faults.clusters import Replica
from tests.scheduler.faults.wire import Fault, How
from tests.scheduler.running_scheduler import NAME, RunningScheduler, node, scheduling

NOBODY = parse_cluster(b"seed: 1\n", "empty", Path())
BY_WEIGHT = replace(default_settings([NAME]), queues=QueueSettings("proportion"))
GATED = st.sets(st.sampled_from(("light", "heavy")))
QUEUES = (queue("light", weight=1), queue("heavy", weight=3))


@asynccontextmanager
async def shared(*objects: Untyped) -> AsyncIterator[tuple[VirtualLab, RunningScheduler]]:
    """A cluster with two queues and these objects, and then a scheduler."""
    async with VirtualLab(NOBODY) as lab:
        client = lab.client()
        await install_kinds(client)
        for one in (*QUEUES, *objects):
            await client.create(one)
        async with scheduling(client, BY_WEIGHT) as it:
            yield lab, it


def pods(arrivals: Iterable[str], *, gated: Iterable[str]) -> list[Untyped]:
    """Pods of these queues, one after the other; those of some have the gate."""
    return [
        pod("default", f"{name}-{number}", queue=name, gated=name in gated)
        for number, name in enumerate(arrivals)
    ]


async def running(client: Client) -> dict[str, int]:
    """By queue how many have a node."""
    found = (await client.list(Pod)).items
    return dict(Counter(one.name.split("-")[0] for one in found if one.spec.node_name))


@given(st.permutations(["light"] * 8 + ["heavy"] * 8), GATED, st.booleans())
@settings(max_examples=12, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_each_queue_has_its_share_however_pods_come(
    arrivals: list[str], gated: set[str], split: bool
) -> None:
    nodes = [node(f"n{number}", "4") for number in range(2)] if split else [node("n", "8")]

    async def check() -> None:
        async with shared(*nodes, *pods(arrivals, gated=gated)) as (lab, it):
            await lab.forward(30)
            assert await running(it.client) == {"light": 2, "heavy": 6}

    run_virtually(check())


@pytest.mark.virtual
async def test_what_no_share_is_whole_enough_for_is_not_left_idle() -> None:
    arrivals = ["light"] * 4 + ["heavy"] * 4
    large = [pod("default", f"{name}-{n}", "3", queue=name) for n, name in enumerate(arrivals)]
    async with shared(node("n", "9"), *large) as (lab, it):
        await lab.forward(30)  # light deserves 2.25 cpus, heavy 6.75
        assert await running(it.client) == {"light": 1, "heavy": 2}


@pytest.mark.virtual
async def test_who_has_its_share_still_has_nodes_bought_for_it() -> None:
    made = pods(["light"] * 4 + ["heavy"] * 8, gated={"light", "heavy"})
    async with shared(node("n", "8"), *made) as (lab, it):
        await lab.forward(30)
        waiting = [one for one in it.live.cached(Pod).values() if not one.spec.node_name]
        assert len(waiting) == 4
        assert all(cluster_autoscaler_buys(one) for one in waiting)


@asynccontextmanager
async def stuck() -> AsyncIterator[tuple[VirtualLab, Client]]:
    """Light has its share, and heavy's pods do not get rid of their gates."""
    async with VirtualLab(NOBODY) as lab:
        client = lab.client()
        await install_kinds(client)
        made = pods(["light"] * 8 + ["heavy"] * 8, gated={"heavy"})
        for one in (*QUEUES, node("n", "8"), *made):
            await client.create(one)
        replica = Replica(lab, [Fault(How.REFUSED, UNGATES, code=500)], 1, lab.clock)
        replica.start(BY_WEIGHT)
        await lab.forward(60)
        assert await running(client) == {"light": 2}
        yield lab, client
        await replica.stop()


@pytest.mark.virtual
@pytest.mark.parametrize(("fewer", "more"), [(4, 4), (6, 6), (8, 8)])
async def test_a_held_pod_is_let_in_when_demand_of_others_goes(fewer: int, more: int) -> None:
    async with stuck() as (lab, client):
        for number in range(8, 8 + fewer):
            await client.delete(Pod, "default", f"heavy-{number}", options=deletion(grace=0))
        await lab.forward(10)
        assert await running(client) == {"light": more}


@pytest.mark.virtual
async def test_a_held_pod_is_let_in_when_its_queue_weighs_more() -> None:
    async with stuck() as (lab, client):
        await client.patch(Queue, "light", change=merge({"spec": {"weight": 9}}))
        await lab.forward(10)
        assert await running(client) == {"light": 6}
