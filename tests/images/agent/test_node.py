"""A node's agent outlives its runtime: late, restarted, or with records that cannot be written."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from bayplan.client.informers import Change
from bayplan.images.agent.node import AgentDependencies, NodeImageAgent, NodeImageOptions
from bayplan.images.manager.manager import ImageWaiting
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import Image, ImageKey
from tests.clocks import VirtualClock
from tests.images.in_memory_runtime import InMemoryRuntime
from tests.images.manager_fixture import FakeCluster, ManagerFixture, pod_of
from tests.images.parts.registry import Registry
from tests.images.peers.fixtures import Push
from tests.images.peers.service import running_bayplan_cri
from tests.patience import PATIENCE

APP = Image("sha256:app", ("app:1",), size=5)


def node_images(
    memory_runtime: InMemoryRuntime, folder: Path, *, gate: bool = True
) -> NodeImageAgent:
    cluster, clock = FakeCluster(), VirtualClock()
    options = NodeImageOptions("n1", folder, use_handlers=gate, probe=memory_runtime.disk)
    around = AgentDependencies(memory_runtime, cluster, cluster, clock, CollectorRegistry())
    return NodeImageAgent(options, around)


@pytest.fixture
def memory_runtime() -> InMemoryRuntime:
    return InMemoryRuntime(offers={("app:1", ""): APP})


async def test_a_runtime_that_comes_late_is_waited_for(
    memory_runtime: InMemoryRuntime, tmp_path: Path
) -> None:
    memory_runtime.broken = "ListImages"
    node = node_images(memory_runtime, tmp_path)
    clock = node.manager.clock
    assert isinstance(clock, VirtualClock)
    starting = asyncio.ensure_future(node.start())
    await clock.advance(60)
    assert not starting.done()
    memory_runtime.broken = ""
    await clock.advance(5)
    await starting


async def test_a_pod_that_is_replaced_under_its_name_is_served_anew(
    memory_runtime: InMemoryRuntime, tmp_path: Path
) -> None:
    node = node_images(memory_runtime, tmp_path)
    old, new = pod_of("app:1"), pod_of("app:1")
    new.metadata.uid = "another"
    node.pod_changed(Change("added", new=old))
    node.pod_changed(Change("updated", old=old, new=new))
    await node.pods.settled()
    assert await node.pods.in_use() == {APP.key}
    node.pod_changed(Change("deleted", old=new))
    assert await node.pods.in_use() == set()


async def test_records_that_cannot_be_written_are_told_of_and_tried_again(
    memory_runtime: InMemoryRuntime, tmp_path: Path
) -> None:
    node = node_images(memory_runtime, tmp_path)
    clock = node.manager.clock
    assert isinstance(clock, VirtualClock)
    pulling = tmp_path / "image_manager" / "pulling"
    pulling.rmdir()
    pulling.write_text("in the way")
    node.pod_changed(Change("added", new=pod_of("app:1")))
    await clock.until_sleeping()
    assert await node.pods.in_use() == set()
    pulling.unlink()
    pulling.mkdir()
    await clock.run(node.pods.settled())
    assert await node.pods.in_use() == {APP.key}


async def test_a_broken_ledger_does_not_end_the_rounds(
    memory_runtime: InMemoryRuntime, tmp_path: Path
) -> None:
    node = node_images(memory_runtime, tmp_path)
    node.gate_file.path.write_text("{")
    assert not await node.gc_loop.round()
    node.gate_file.path.unlink()
    assert await node.gc_loop.round()


async def test_a_switched_gate_is_noted_at_the_start(
    memory_runtime: InMemoryRuntime, tmp_path: Path
) -> None:
    memory_runtime.images[ImageKey("sha256:app", "kata")] = APP
    await node_images(memory_runtime, tmp_path, gate=True).start()
    node = node_images(memory_runtime, tmp_path, gate=False)
    await node.start()
    await node.gc_loop.round()
    assert node.gate_file.needs_clean_up
    assert isinstance(node.manager.cluster, FakeCluster)
    assert node.manager.cluster.reasons() == ["ImageCleanUpOwed"]


async def test_a_restarted_runtime_still_has_its_images_and_is_found_again(
    registry: Registry, push: Push, tmp_path: Path
) -> None:
    image = push(registry, "restarted:1")
    home = tmp_path / "home"
    home.mkdir()
    socket = tmp_path / "cri.sock"
    async with CriRuntime(str(socket), timeout=PATIENCE) as runtime:
        fixture = ManagerFixture(runtime, tmp_path / "state")
        with running_bayplan_cri(home, socket):
            assert (await fixture.ready(pod_of(image.name))).pulled
        gone = await fixture.waiting(pod_of(image.name, "unlucky"))
        assert gone.reason == "ImageInspectError"
        assert "UNAVAILABLE" in gone.message
        with running_bayplan_cri(home, socket):
            async with asyncio.timeout(PATIENCE):
                while isinstance(await fixture.ensure(pod_of(image.name, "lucky")), ImageWaiting):
                    pass  # gRPC needs a moment to find the socket again
            assert not (await fixture.ready(pod_of(image.name, "lucky"))).pulled
