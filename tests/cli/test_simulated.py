"""What `bayplan up` shows, and how its pods are placed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from bayplan.cli.main import run
from bayplan.cli.simulated.activity import ActivityView
from bayplan.cli.simulated.screen import cluster_table
from bayplan.cli.simulated.tables import headline, report_table
from bayplan.client import merge
from bayplan.embedded.control.view import NODES, PODS
from bayplan.embedded.simulation.clusterfile import read_cluster
from bayplan.embedded.simulation.report import UnboundPod, summarize
from bayplan.kube.volcano import Queue
from bayplan.lab import VirtualLab
from bayplan.lab.daemons import SCHEDULER_NAMES, LabDaemons, parse_daemon_names, prepare_daemons
from bayplan.observe import follow
from bayplan.scheduler.config import default_settings
from bayplan.scheduler.daemon import SchedulerDaemon
from tests.embedded.simulation.virtual_clusters import (
    CLUSTER,
    VirtualCluster,
    claim,
    pod,
    virtual_cluster,
    workload,
)

pytestmark = [pytest.mark.whole, pytest.mark.virtual]


@asynccontextmanager
async def placed(text: str = CLUSTER) -> AsyncIterator[VirtualCluster]:
    """A cluster whose pods are placed by the scheduler."""
    daemon = SchedulerDaemon(default_settings(SCHEDULER_NAMES))
    async with virtual_cluster(text, daemons=[daemon.lead]) as w:
        yield w


async def test_the_scheduler_stops_at_the_attach_limit_and_says_why() -> None:
    async with placed() as w:
        for number in range(17):
            await w.create(claim(f"c{number}"), pod(f"p{number:02}", claims=(f"c{number}",)))
        await w.forward(120)
        assert w.phases() == {"Running": 16, "Pending": 1}
        waiting = summarize(w.simulation).unbound_pods
        assert len(waiting) == 1
        assert waiting[0].message == (
            "0/2 nodes are available: 2 node(s) exceed max volume count. preemption: 0/2 nodes "
            "are available: 2 No preemption victims found for incoming pod."
        )
        w.simulation.cloud.increase("workers", 1)
        await w.forward(120)
        assert w.phases() == {"Running": 17}


async def test_the_scheduler_leaves_gated_pods_and_those_of_other_schedulers_alone() -> None:
    async with placed() as w:
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
    async with placed() as w:
        await w.create(*(pod(f"p{number}", containers=big) for number in range(3)))
        await w.forward(30)
        assert w.phases() == {"Running": 2, "Pending": 1}
        running = next(key.name for key, one in w.view.pods.items() if one.phase == "Running")
        await w.delete(PODS, running)
        await w.forward(60)
        assert w.phases() == {"Running": 2}


async def test_the_live_table_shows_nodes_volumes_and_who_waits_for_what() -> None:
    async with placed() as w:
        await w.create(workload("Deployment", "web", replicas=2))
        await w.create(claim("c"), pod("stored", claims=("c",)), pod("huge", containers=_huge()))
        await w.forward(60)
        w.inject(kind="node-dies", node="workers-2")
        await w.forward(60)
        shown = _text(cluster_table(summarize(w.simulation), lambda one: one.message or "?"))
        assert "1/2 nodes ready" in shown
        assert "faults: node-dies" in shown
        assert "disk.csi.example.com 1/8" in shown
        assert "default/huge" in shown
        assert "Insufficient cpu" in shown


async def test_the_live_table_says_what_boots_and_when_it_is_there() -> None:
    async with virtual_cluster(settle=1) as w:
        shown = _text(cluster_table(summarize(w.simulation), _silent))
        assert "0/0 nodes ready · 2 booting" in shown
        assert re.search(r"workers \(2\) +booting, ready in \d\ds to \d\ds", shown)


async def test_the_live_table_says_what_could_not_be_bought() -> None:
    async with virtual_cluster() as w:
        w.inject(kind="stock-out")
        w.simulation.cloud.increase("workers", 1)
        await w.forward(10)
        shown = _text(cluster_table(summarize(w.simulation), _silent))
        assert "1 failed" in shown
        assert re.search(r"workers-3 +failed: no large left in zone-a", shown)


async def test_pods_that_nobody_schedules_are_told_with_what_helps() -> None:
    async with virtual_cluster() as w:
        await w.create(workload("Deployment", "web", replicas=3), pod("mine", schedulerName="own"))
        await w.forward(1)
        assert "scheduler, and none" not in _text(cluster_table(summarize(w.simulation), _silent))
        await w.forward(10)
        shown = _text(cluster_table(summarize(w.simulation), _silent))
        assert "3 pods wait for a scheduler, and none is running: use --with scheduler" in shown
        assert re.search(r"default/web-\w+ \(3\) +not tried by a scheduler", shown)
        assert re.search(r"default/mine +waits for scheduler own", shown)
        assert "--with scheduler" in _text(report_table(summarize(w.simulation), 1.0, 0, ""))


async def test_pods_that_are_stuck_on_their_node_are_told_with_the_reason() -> None:
    async with virtual_cluster() as w:
        w.inject(kind="attach-fails")
        await w.create(claim("c"), pod("p", claims=("c",)), pod("q", claims=("missing",)))
        await w.bind("p", "workers-1")
        await w.bind("q", "workers-1")
        await w.forward(30)
        shown = _text(cluster_table(summarize(w.simulation), _silent))
        assert re.search(r"default/p +workers-1 +FailedAttachVolume: ", shown)
        assert re.search(r"default/q +workers-1 +.*missing", shown)


async def test_pods_that_cannot_go_are_told_with_the_reason() -> None:
    async with placed() as w:
        await w.create(pod("p"))
        await w.bind("p", "workers-1")
        await w.forward(20)
        w.inject(kind="node-dies", node="workers-1")
        await w.delete(PODS, "p")
        await w.forward(60)
        shown = _text(cluster_table(summarize(w.simulation), _silent))
        assert re.search(
            r"default/p +workers-1 +cannot go: the kubelet of workers-1 is silent", shown
        )
        assert re.search(r"workers-1 +Unknown, no heartbeat for 1m", shown)


async def test_a_cordoned_node_is_told() -> None:
    async with virtual_cluster() as w:
        await w.edit(
            NODES, "workers-2", lambda obj: {**obj, "spec": {**obj["spec"], "unschedulable": True}}
        )
        await w.forward(1)
        shown = _text(cluster_table(summarize(w.simulation), _silent))
        assert re.search(r"workers-2 +Ready, cordoned", shown)
        assert shown.index("workers-2") < shown.index("workers-1")


async def test_whatever_happens_fits_on_one_screen() -> None:
    text = CLUSTER.replace("count: 2", "count: 30").replace("max: 5", "max: 50")
    async with virtual_cluster(text) as w:
        w.inject(kind="attach-fails")
        w.inject("other", kind="node-dies", node="workers-7")
        for number in range(12):
            await w.create(claim(f"c{number}"), pod(f"stored-{number}", claims=(f"c{number}",)))
            await w.bind(f"stored-{number}", f"workers-{number + 1}")
        await w.create(workload("Deployment", "web", replicas=30))
        await w.create(*(pod(f"pod-with-a-long-name-{number}") for number in range(20)))
        w.simulation.cloud.increase("workers", 9)
        await w.forward(20)
        screen = cluster_table(summarize(w.simulation), lambda _: "it does not fit " * 20)
        for width, height in ((80, 24), (60, 18), (100, 30), (132, 43), (200, 60)):
            lines = _screen(screen, width, height)
            assert len(lines) <= height - 3
            assert all(len(line) <= width for line in lines)
            assert any("FailedAttachVolume" in line for line in lines)
            assert any("pods wait for a scheduler" in line for line in lines)


async def test_many_nodes_and_pods_are_cut_short() -> None:
    text = CLUSTER.replace("count: 2", "count: 30").replace("max: 5", "max: 50")
    async with virtual_cluster(text) as w:
        await w.create(*(pod(f"p{number}") for number in range(20)))
        await w.forward(1)
        shown = _text(cluster_table(summarize(w.simulation), lambda _: "nobody places it"))
        assert "and 10 more" in shown
        assert "and 12 more" in shown


async def test_the_report_says_what_a_run_came_to() -> None:
    async with placed() as w:
        w.inject(kind="attach-fails")
        await w.create(claim("c"), pod("p", claims=("c",)))
        await w.forward(7200)
        shown = _text(report_table(summarize(w.simulation), 1.5, 10, "abc"))
        assert "2 ready of 2" in shown
        assert "FailedAttachVolume" in shown
        assert "sha256:abc" in shown
        assert headline(summarize(w.simulation)).startswith("2h1m")


async def test_what_came_from_the_cluster_cannot_steer_the_terminal() -> None:
    async with virtual_cluster() as w:
        key = next(iter(w.view.store.list(NODES))).key
        waiting = UnboundPod(key, "\x1b[2J")
        summary = summarize(w.simulation)
        summary.unbound_pods.append(waiting)
        assert "\x1b[2J" not in _text(cluster_table(summary, lambda one: one.message))


def _huge() -> list[dict[str, object]]:
    return [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100"}}}]


def _silent(_: UnboundPod) -> str:
    return ""


def _screen(block: object, width: int, height: int) -> list[str]:
    console = Console(
        width=width, height=height, force_terminal=True, color_system=None, legacy_windows=False
    )
    with console.capture() as captured:
        console.print(block)
    return captured.get().splitlines()


def _text(block: object) -> str:
    console = Console(width=200, force_terminal=False)
    with console.capture() as captured:
        console.print(block)
    return captured.get()


def test_nodes_are_bought_and_the_run_is_the_same_twice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    story = Path(__file__).parents[2] / "examples" / "stories" / "3-from-zero.yaml"
    said = []
    for _ in range(2):
        options = ["--virtual", "--for", "5m", "--with", "scheduler,autoscaler"]
        assert run(["up", "-f", str(story), *options]) == 0
        shown = capsys.readouterr().out.splitlines()
        said.append([line for line in shown if not line.startswith("took")])
    assert said[0] == said[1]
    assert "nodes      3 ready of 3" in said[0]
    assert "pods       20 Running" in said[0]


def test_up_shows_a_story_as_it_was_before_a_feature(capsys: pytest.CaptureFixture[str]) -> None:
    story = Path(__file__).parents[2] / "examples" / "stories" / "8-everything-off.yaml"
    options = ["--virtual", "--for", "5m", "--with", "scheduler,autoscaler"]
    assert run(["up", "-f", str(story), *options]) == 0
    assert "warnings   none" in capsys.readouterr().out
    old = [*options, "--feature-gates", "VolumeLimitScaling=false"]
    assert run(["up", "-f", str(story), *old]) == 0
    assert re.search("warnings   .* ProvisioningFailed", capsys.readouterr().out)
    assert run(["up", "-f", str(story), *options, "--feature-gates", "Nope=true"]) == 2


async def test_the_screen_shows_queues_the_autoscaler_and_the_last_events() -> None:
    spec = read_cluster(Path(__file__).parents[2] / "examples/stories/5-queue-says-not-yet.yaml")
    crew = LabDaemons(parse_daemon_names("scheduler,autoscaler,queues"))
    aboard = prepare_daemons(crew, spec, lambda: lab.simulation.provider)
    lab = VirtualLab(aboard.spec, aboard.daemons, webhooks=aboard.webhooks)
    async with lab, follow(lab.client()) as live:
        watching = ActivityView(aboard, lab.simulation, live.snapshot)

        def shown() -> RenderableType:
            return cluster_table(summarize(lab.simulation), watching.reason, watching.activity())

        def screen() -> str:
            return "\n".join(line.rstrip() for line in _text(shown()).splitlines())

        await lab.forward(60)
        assert re.search(r"^research +30 cpu +- +- +12$", screen(), re.MULTILINE)
        assert "default/training (12)  queue research has not admitted it" in screen()
        assert "autoscaler: nothing to do" in screen()
        more = merge({"spec": {"capability": {"cpu": "36"}}})
        await lab.client().patch(Queue, "research", change=more)
        await lab.forward(15)
        assert re.search(r"^research +36 cpu +- +36 cpu +12$", screen(), re.MULTILINE)
        assert "autoscaler: scaling up workers 1->12 (max: 12), " in screen()
        assert re.search(
            r"^TriggeredScaleUp +pod/training-\w+ \+\d+ +pod triggered", screen(), re.MULTILINE
        )
        await lab.forward(60)
        assert re.search(r"^research +36 cpu +36 cpu +- +0$", screen(), re.MULTILINE)
        for width, height in ((20, 8), (40, 12), (80, 24), (160, 50)):
            console = Console(width=width, height=height, force_terminal=True)
            with console.capture() as captured:
                console.print(shown())
            assert len(captured.get().splitlines()) <= height
