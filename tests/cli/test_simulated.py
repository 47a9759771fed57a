"""What `bayplan up` shows, and the model as its placer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from rich.console import Console

from bayplan.cli.simulated.mirror import Mirror
from bayplan.cli.simulated.placer import Placer
from bayplan.cli.simulated.tables import cluster_table, headline, report_table
from bayplan.embedded.control.storages import NODES, PODS
from bayplan.embedded.simulation.report import Waiting, summarize
from bayplan.kube.nodes import Node
from tests.simulation.worlds import CLUSTER, World, claim, pod, workload, world

pytestmark = pytest.mark.virtual


@asynccontextmanager
async def placed(text: str = CLUSTER) -> AsyncIterator[tuple[World, Mirror]]:
    """A cluster whose pods are placed by the model."""
    async with world(text) as w:
        mirror = Mirror(w.run.plane.store)
        placer = Placer(w.simulation.stage, mirror)
        w.simulation.engine.add(placer)
        yield w, mirror


async def test_the_mirror_follows_the_store() -> None:
    async with placed() as (w, mirror):
        assert mirror.snapshot.get(Node, "workers-1") is not None
        await w.create(pod("p"))
        await w.forward(10)
        assert [one.name for one in mirror.snapshot.pods_on(w.pod("p").node)] == ["p"]
        await w.delete(PODS, "p")
        await w.forward(30)
        assert mirror.snapshot.pods_on("workers-1") == []
        assert mirror.snapshot.pods_on("workers-2") == []


async def test_the_placer_stops_at_the_attach_limit_and_says_why() -> None:
    async with placed() as (w, _):
        for number in range(17):
            await w.create(claim(f"c{number}"), pod(f"p{number:02}", claims=(f"c{number}",)))
        await w.forward(120)
        assert w.phases() == {"Running": 16, "Pending": 1}
        waiting = summarize(w.simulation).waiting
        assert len(waiting) == 1
        assert waiting[0].said == (
            "0/2 nodes are available: 2 node(s) exceed max volume count. preemption: 0/2 nodes "
            "are available: 2 No preemption victims found for incoming pod."
        )
        w.simulation.cloud.increase("workers", 1)
        await w.forward(120)
        assert w.phases() == {"Running": 17}


async def test_the_placer_leaves_gated_pods_and_those_of_other_schedulers_alone() -> None:
    async with placed() as (w, _):
        await w.create(
            pod("gated", schedulingGates=[{"name": "example.com/wait"}]),
            pod("foreign", schedulerName="another"),
            pod("ours"),
        )
        await w.forward(30)
        assert w.phases() == {"Pending": 2, "Running": 1}
        assert w.pod("ours").phase == "Running"


async def test_pods_that_waited_are_placed_when_room_is_made() -> None:
    big = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "6"}}}]
    async with placed() as (w, _):
        await w.create(*(pod(f"p{number}", containers=big) for number in range(3)))
        await w.forward(30)
        assert w.phases() == {"Running": 2, "Pending": 1}
        running = next(key.name for key, one in w.view.pods.items() if one.phase == "Running")
        await w.delete(PODS, running)
        await w.forward(60)
        assert w.phases() == {"Running": 2}


async def test_the_live_table_shows_nodes_volumes_and_who_waits_for_what() -> None:
    async with placed() as (w, _):
        await w.create(workload("Deployment", "web", replicas=2))
        await w.create(claim("c"), pod("stored", claims=("c",)), pod("huge", containers=_huge()))
        await w.forward(60)
        w.inject(kind="node-dies", node="workers-2")
        await w.forward(60)
        shown = _text(cluster_table(summarize(w.simulation), lambda one: one.said or "?"))
        assert "1/2 nodes ready" in shown
        assert "faults: node-dies" in shown
        assert "disk.csi.example.com 1/8" in shown
        assert "default/huge" in shown
        assert "Insufficient cpu" in shown


async def test_many_nodes_and_pods_are_cut_short() -> None:
    text = CLUSTER.replace("count: 2", "count: 30").replace("max: 5", "max: 50")
    async with world(text) as w:
        await w.create(*(pod(f"p{number}") for number in range(20)))
        await w.forward(1)
        shown = _text(cluster_table(summarize(w.simulation), lambda _: "nobody places it"))
        assert "and 10 more" in shown
        assert "and 12 more" in shown


async def test_the_report_says_what_a_run_came_to() -> None:
    async with placed() as (w, _):
        w.inject(kind="attach-fails")
        await w.create(claim("c"), pod("p", claims=("c",)))
        await w.forward(7200)
        shown = _text(report_table(summarize(w.simulation), 1.5, 10, "abc"))
        assert "2 ready of 2" in shown
        assert "FailedAttachVolume" in shown
        assert "sha256:abc" in shown
        assert headline(summarize(w.simulation)).startswith("2h1m")


async def test_what_came_from_the_cluster_cannot_steer_the_terminal() -> None:
    async with world() as w:
        key = next(iter(w.view.store.list(NODES))).key
        waiting = Waiting(key, "\x1b[2J")
        summary = summarize(w.simulation)
        summary.waiting.append(waiting)
        assert "\x1b[2J" not in _text(cluster_table(summary, lambda one: one.said))


def _huge() -> list[dict[str, object]]:
    return [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100"}}}]


def _text(block: object) -> str:
    console = Console(width=200, force_terminal=False)
    with console.capture() as captured:
        console.print(block)
    return captured.get()
