"""The example clusters of the stories, in virtual time, with pods placed by the scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bayplan.client import merge
from bayplan.embedded.simulation.clusterfile import read_cluster
from bayplan.embedded.simulation.report import summarize
from bayplan.kube.volcano import Queue
from bayplan.lab import VirtualLab
from bayplan.lab.daemons import LabDaemons, prepare_daemons
from tests.embedded.simulation.virtual_clusters import VirtualCluster

pytestmark = [pytest.mark.whole, pytest.mark.virtual]
CREW = LabDaemons(frozenset({"scheduler", "queues"}))
STORIES = Path(__file__).parents[2] / "examples" / "stories"


@asynccontextmanager
async def story(number: int, minutes: float) -> AsyncIterator[VirtualCluster]:
    """A story's cluster after some minutes."""
    (path,) = STORIES.glob(f"{number}-*.yaml")
    aboard = prepare_daemons(CREW, read_cluster(path), lambda: run.simulation.provider)
    run = VirtualLab(aboard.spec, aboard.daemons, webhooks=aboard.webhooks)
    async with run:
        w = VirtualCluster(run)
        await w.forward(minutes * 60)
        yield w
        assert run.simulation.engine.failures == 0


async def test_1_the_attach_limit_keeps_twenty_pods_waiting_until_three_nodes_are_bought() -> None:
    async with story(1, 15) as w:
        assert w.phases() == {"Running": 16, "Pending": 20}
        reasons = {
            one.message.partition(" preemption")[0] for one in summarize(w.simulation).unbound_pods
        }
        assert reasons == {"0/2 nodes are available: 2 node(s) exceed max volume count."}
        w.simulation.cloud.increase("workers", 3)
        await w.forward(300)
        assert w.phases() == {"Running": 36}


async def test_2_a_node_without_the_driver_is_used_only_for_pods_without_volumes() -> None:
    async with story(2, 15) as w:
        assert w.phases() == {"Running": 26}
        on_bare = {key.name.partition("-")[0] for key, _ in w.view.pods_on("bare-1")}
        assert on_bare == {"web"}


async def test_3_from_zero_three_nodes_are_enough() -> None:
    async with story(3, 5) as w:
        assert w.phases() == {"Pending": 20}
        w.simulation.cloud.increase("workers", 3)
        await w.forward(300)
        assert w.phases() == {"Running": 20}


async def test_4_a_node_whose_driver_never_comes_gets_no_pod_with_a_volume() -> None:
    async with story(4, 19) as w:
        assert w.phases() == {"Pending": 20}
        w.simulation.cloud.increase("workers", 1)
        await w.forward(180)
        assert w.phases() == {"Running": 8, "Pending": 12}


async def test_5_a_gang_over_quota_stays_gated_until_there_is_quota() -> None:
    async with story(5, 15) as w:
        assert w.phases() == {"Pending": 12}
        assert {one.message for one in summarize(w.simulation).unbound_pods} == {
            "Scheduling is blocked due to non-empty scheduling gates"
        }
        more = merge({"spec": {"capability": {"cpu": "36"}}})
        await w.run.client().patch(Queue, "research", change=more)
        await w.forward(30)
        said = {
            one.message.partition(" preemption")[0] for one in summarize(w.simulation).unbound_pods
        }
        assert "0/1 nodes are available: 1 Insufficient cpu." in said
        assert w.phases() == {"Pending": 12}
        w.simulation.cloud.increase("workers", 11)
        await w.forward(300)
        assert w.phases() == {"Running": 12}


async def test_6_limits_that_nodes_publish_are_kept() -> None:
    async with story(6, 15) as w:
        assert w.phases() == {"Running": 20, "Pending": 10}
        attached = Counter(one.spec.node_name for one in w.view.attachments.values())
        assert attached == {"small-1": 4, "large-1": 16}
        assert not w.events("FailedAttachVolume")


async def test_7_two_runtime_classes_share_a_node() -> None:
    async with story(7, 5) as w:
        assert w.phases() == {"Running": 2}
        assert len(w.view.pods_on("workers-1")) == 2


async def test_8_the_cluster_of_all_stories_fills_up_as_its_drivers_come() -> None:
    async with story(8, 5) as w:
        assert w.phases() == {"Running": 8, "Pending": 12}
        await w.forward(600)
        assert w.phases() == {"Running": 16, "Pending": 4}
