"""A node's status tells which images are there, so that the scheduler can go by it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from bayplan.base.clock import WallClock
from bayplan.base.flowcontrol import ExponentialBackoff
from bayplan.client.client import Client, connect
from bayplan.client.errors import UnreachableError
from bayplan.client.verbs.writes import merge
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.images.agent.node import NodeImageOptions, serve_node
from bayplan.images.agent.node_status import MAX_NAMES, NO_LIMIT, NodeImagesReporter, status_images
from bayplan.images.image_gc import DiskUsage
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import Image, ImageRuntime, ImageSpec
from bayplan.kube.nodes import ContainerImage, Node
from bayplan.kube.pods import Pod
from tests.builders import make_node
from tests.cli.commands import command
from tests.clocks import VirtualClock
from tests.images.in_memory_runtime import InMemoryRuntime
from tests.images.parts.registry import Registry
from tests.images.peers.fixtures import push_for_all
from tests.patience import PATIENCE
from tests.scheduler.running_scheduler import pod

GIB = 1024**3


def image(number: int, size: int, handler: str = "", name: str = "") -> Image:
    name = name or f"r.example/app-{number}"
    digest = f"{name}@sha256:{number:064x}"
    return Image(f"sha256:{number:064x}", (f"{name}:1",), (digest,), size, handler)


def test_the_largest_come_first_and_no_more_than_may() -> None:
    images = [image(number, size=number) for number in range(1, 61)]
    told = status_images(images)
    assert [one.size_bytes for one in told] == list(range(60, 10, -1))
    assert len(status_images(images, NO_LIMIT)) == 60
    assert status_images(images, 0) == []


def test_an_image_is_told_by_its_tags_then_its_digests() -> None:
    tags = tuple(f"r.example/app:{n}" for n in (3, 1, 2))
    digests = tuple(f"r.example/app@sha256:{n}" for n in "cab")
    (told,) = status_images([Image("sha256:1", tags, digests, 7)])
    assert told.names == [*sorted(tags), *sorted(digests)[:2]]


def test_an_image_without_a_name_is_left_out() -> None:
    assert status_images([Image("sha256:1", (), (), 7)]) == []


def test_a_plain_name_is_the_default_handlers_and_others_say_their_handler() -> None:
    name = "r.example/both"
    plain, other = image(1, 100, name=name), image(2, 900, "wcow-2019", name=name)
    first, second = status_images([plain, other])
    digest = other.digests[0]
    assert first.names == [digest, f"{name}:1,wcow-2019", f"{digest},wcow-2019"]
    assert second.names == [f"{name}:1", plain.digests[0]]


def test_without_the_default_handler_the_smallest_variant_has_the_plain_name() -> None:
    name = "r.example/both"
    large, small = image(1, 900, "wcow-2019", name), image(2, 100, "wcow-2022", name)
    told = status_images([large, small])
    assert sizes(told)[f"{name}:1"] == 100
    assert sizes(told)[f"{name}:1,wcow-2019"] == 900


def sizes(told: Sequence[ContainerImage]) -> dict[str, int]:
    """What a reader of the status makes of it: the last entry of a name counts."""
    return {name: one.size_bytes for one in told for name in one.names}


images_of_a_node = st.lists(
    st.builds(
        image,
        number=st.integers(0, 5),
        size=st.integers(1, 50),
        handler=st.sampled_from(["", "kata", "wcow"]),
        name=st.sampled_from(["", "r.example/same", "r.example/other"]),
    ),
    max_size=12,
    unique_by=lambda one: one.key,
)


@given(images_of_a_node, st.integers(-1, 15))
def test_every_name_is_told_once_and_every_list_is_bounded(images: list[Image], limit: int) -> None:
    told = status_images(images, limit)
    assert len(told) == (len(images) if limit == NO_LIMIT else min(limit, len(images)))
    assert all(len(one.names) <= MAX_NAMES for one in told)
    names = [name for one in told for name in one.names if "," not in name]
    assert len(names) == len(set(names))
    assert told == status_images(list(reversed(images)), limit)


@dataclass
class FakeNodeStatus:
    """A node's status in memory, and how often it was written."""

    told: list[ContainerImage] = field(default_factory=list)
    writes: int = 0
    broken: bool = False

    async def images(self) -> list[ContainerImage]:
        self._break()
        return self.told

    async def update(self, images: Sequence[ContainerImage]) -> None:
        self._break()
        self.told = list(images)
        self.writes += 1

    def _break(self) -> None:
        if self.broken:
            raise UnreachableError("nobody is there")


class StatusFixture:
    """A reporter of a node's images with everything around it in memory."""

    def __init__(self) -> None:
        self.memory_runtime = InMemoryRuntime.of([image(1, 5)])
        self.status = FakeNodeStatus()
        self.clock = VirtualClock()
        backoff = ExponentialBackoff(Random(1), 10, 300)
        self.reporter = NodeImagesReporter(self.memory_runtime, self.status, self.clock, backoff)


async def test_it_is_told_when_something_has_changed_and_only_then() -> None:
    it = StatusFixture()
    await it.reporter.round()
    await it.reporter.round()
    assert it.status.writes == 1
    it.memory_runtime.images |= {one.key: one for one in [image(2, 7)]}
    await it.reporter.round()
    assert it.status.writes == 2
    assert [one.size_bytes for one in it.status.told] == [7, 5]


async def test_what_the_server_knows_already_is_not_told_again() -> None:
    it = StatusFixture()
    it.status.told = status_images([image(1, 5)])
    await it.reporter.round()
    assert it.status.writes == 0


async def test_what_somebody_else_wrote_is_put_right_after_a_while() -> None:
    it = StatusFixture()
    await it.reporter.round()
    it.status.told = []
    await it.reporter.round()
    assert it.status.writes == 1
    await it.clock.advance(301)
    await it.reporter.round()
    assert it.status.writes == 2


async def test_a_runtime_that_does_not_answer_takes_no_image_away() -> None:
    it = StatusFixture()
    await it.reporter.round()
    it.memory_runtime.broken = "ListImages"
    assert await it.reporter.round()
    assert len(it.status.told) == 1


async def test_a_server_that_does_not_answer_is_asked_again_later_and_later() -> None:
    it = StatusFixture()
    it.status.broken = True
    assert not await it.reporter.round()
    it.status.broken = False
    assert await it.reporter.round()
    assert it.status.writes == 1


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Client]:
    kubeconfig = tmp_path / "kubeconfig"
    async with ApiServer(ServerConfig(kubeconfig=kubeconfig)), connect(kubeconfig) as client:
        for name in ("n1", "n2"):
            await client.create(
                make_node(name).capacity(cpu="4", pull_manager="8Gi", pods="9").obj()
            )
        yield client


@asynccontextmanager
async def agent(
    client: Client, runtime: ImageRuntime, folder: Path, node: str
) -> AsyncIterator[None]:
    options = NodeImageOptions(node, folder / "state", probe=lambda _: DiskUsage(100, 50))
    serving = serve_node(client, runtime, options, WallClock(), CollectorRegistry())
    task = asyncio.ensure_future(serving)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def wait_for_image(client: Client, node: str, name: str) -> Node:
    """Wait until a node's status tells of an image."""
    async with asyncio.timeout(PATIENCE), client.watch(Node) as stream:
        async for event in stream:
            found = event.object
            if found and found.name == node and name in sizes(found.status.images):
                return found
    raise AssertionError(f"the watch ended; {node} does not tell of {name}")


async def test_a_real_runtimes_images_are_told_over_https_and_nothing_else_is_touched(
    cluster: Client, bayplan_socket: str, registry: Registry, tmp_path: Path
) -> None:
    name = push_for_all(registry, "told:1")
    await cluster.patch(
        Node,
        "n1",
        change=merge({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        subresource="status",
    )
    before = await cluster.get(Node, "n1")
    async with CriRuntime(bayplan_socket, timeout=PATIENCE) as runtime:
        for handler in ("", "wcow-2019"):
            await runtime.pull_image(ImageSpec(name, handler), None, None)
        async with agent(cluster, runtime, tmp_path, "n1"):
            after = await wait_for_image(cluster, "n1", name)
        listed = {one.handler: one for one in await runtime.list_images() if name in one.tags}
    told = sizes(after.status.images)
    assert told[name] == listed[""].size
    assert told[f"{name},wcow-2019"] == listed["wcow-2019"].size
    assert after.status.allocatable == before.status.allocatable
    assert after.status.conditions == before.status.conditions
    assert (await cluster.get(Node, "n2")).status.images == []


async def test_the_scheduler_puts_a_pod_where_its_image_is(cluster: Client, tmp_path: Path) -> None:
    name = "registry.example/model:1"
    held = image(1, 2 * GIB, name="registry.example/model")
    memory_runtime = InMemoryRuntime.of([held], capacity=100 * GIB)
    async with agent(cluster, memory_runtime, tmp_path, "n2"):
        await wait_for_image(cluster, "n2", name)
        async with command(tmp_path, "scheduler"):
            for number in range(3):
                container = {"name": "c", "image": name}
                await cluster.create(pod("default", f"model-{number}", containers=[container]))
                assert await node_of(cluster, f"model-{number}") == "n2"


async def node_of(client: Client, name: str) -> str:
    async with asyncio.timeout(PATIENCE), client.watch(Pod) as stream:
        async for event in stream:
            if event.object and event.object.name == name and event.object.spec.node_name:
                return event.object.spec.node_name
    raise AssertionError("the watch ended before the pod had a node")
