"""One image, two runtime classes, end to end: a registry, an API server, a CRI service, an agent.

Two pods of one node name the same image and different runtime classes; each gets the manifest for
its class's handler, and collecting the image of one leaves the other's.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from bayplan.client.client import Client, connect
from bayplan.client.verbs.writes import deletion
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.images.agent.live import SECRETS, LiveNodePods
from bayplan.images.agent.node import NodeImageOptions, serve_node
from bayplan.images.image_gc import ImageGCPolicy
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import Image, ImageSpec
from bayplan.kube.events import Event
from bayplan.kube.meta import ObjectMeta
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import RuntimeClass
from tests.builders import make_node
from tests.clocks import VirtualClock
from tests.images.manager_fixture import FakeCluster, pod_of
from tests.images.parts.registry import PASSWORD, USER, Registry
from tests.images.peers.fixtures import Push, push_for_all
from tests.images.peers.process import running
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


NODE = "n1"
HANDLERS = {"ws2019": "wcow-2019", "ws2022": "wcow-2022"}
EVERYTHING_GOES = ImageGCPolicy(high_percent=0, low_percent=0)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Client]:
    """An API server with one node and two runtime classes."""
    kubeconfig = tmp_path / "kubeconfig"
    config = ServerConfig(kubeconfig=kubeconfig)
    async with ApiServer(config), connect(kubeconfig) as client:
        await client.create(make_node(NODE).obj())
        for name, handler in HANDLERS.items():
            await client.create(RuntimeClass(metadata=ObjectMeta(name=name), handler=handler))
        yield client


@pytest.fixture
async def runtime(bayplan_socket: str) -> AsyncIterator[CriRuntime]:
    async with CriRuntime(bayplan_socket, timeout=PATIENCE) as connected:
        yield connected


async def create_pod(client: Client, image: str, name: str, runtime_class: str | None) -> Pod:
    pod = pod_of(image, name, runtime_class=runtime_class)
    pod.spec.node_name = NODE
    pod.metadata.uid = ""
    return await client.create(pod)


async def wait_for_event(client: Client, reason: str, *pods: str) -> dict[str, Event]:
    """Wait until every one of the pods has such an event."""
    told: dict[str, Event] = {}
    async with asyncio.timeout(PATIENCE), client.watch(Event) as stream:
        async for event in stream:
            if event.object and event.object.reason == reason:
                told[event.object.regarding.name] = event.object
            if set(pods) <= set(told):
                return told
    raise AssertionError(f"the watch ended; told so far: {sorted(told)}")


@asynccontextmanager
async def agent(
    client: Client, runtime: CriRuntime, folder: Path, clock: VirtualClock
) -> AsyncIterator[CollectorRegistry]:
    metrics = CollectorRegistry()
    # The rounds of the status would be woken with those that the tests wait for.
    options = NodeImageOptions(
        NODE, folder / "state", collection=EVERYTHING_GOES, status_images=None
    )
    task = asyncio.ensure_future(serve_node(client, runtime, options, clock, metrics))
    try:
        yield metrics
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def images_named(runtime: CriRuntime, name: str) -> dict[str, Image]:
    listed = await runtime.list_images()
    return {image.handler: image for image in listed if name in image.tags}


async def test_two_pods_two_manifests_one_node_and_collecting_one_leaves_the_other(
    cluster: Client, runtime: CriRuntime, registry: Registry, tmp_path: Path
) -> None:
    name = push_for_all(registry, "both:1")
    clock = VirtualClock()
    async with agent(cluster, runtime, tmp_path, clock) as metrics:
        old = await create_pod(cluster, name, "on-2019", "ws2019")
        await create_pod(cluster, name, "on-2022", "ws2022")
        told = await wait_for_event(cluster, "Pulled", "on-2019", "on-2022")
        assert told["on-2019"].reporting_controller == "bayplan-node-agent"
        images = await images_named(runtime, name)
        assert set(images) == {"wcow-2019", "wcow-2022"}
        assert len({image.id for image in images.values()}) == 2
        for handler, build in (("wcow-2019", "17763"), ("wcow-2022", "20348")):
            assert build in await config_of(runtime, images[handler])

        await clock.until_sleeping()
        await clock.advance(300)
        await clock.until_sleeping()
        assert 'bayplan_node_images{runtime_handler="wcow-2019"} 1.0' in counted(metrics)
        assert set(await images_named(runtime, name)) == {"wcow-2019", "wcow-2022"}

        await cluster.delete(Pod, old.namespace, old.name, options=deletion(grace=0))
        async with asyncio.timeout(PATIENCE):
            while 'bayplan_node_images{runtime_handler="wcow-2019"}' in counted(metrics):
                await clock.until_sleeping()  # the round before is over
                await clock.advance(300)
        assert set(await images_named(runtime, name)) == {"wcow-2022"}
        assert 'bayplan_node_images{runtime_handler="wcow-2022"} 1.0' in counted(metrics)
        assert 'kubelet_image_garbage_collected_total{reason="space"}' in counted(metrics)


def counted(metrics: CollectorRegistry) -> str:
    return generate_latest(metrics).decode()


async def config_of(runtime: CriRuntime, image: Image) -> str:
    details = await runtime.image_details(ImageSpec(image.id, image.handler))
    assert details is not None
    return details.info["info"]


async def test_a_pod_without_a_class_gets_the_default_handlers_image(
    cluster: Client, runtime: CriRuntime, registry: Registry, push: Push, tmp_path: Path
) -> None:
    image = push(registry, "plain:1")
    async with agent(cluster, runtime, tmp_path, VirtualClock()):
        await create_pod(cluster, image.name, "plain", None)
        await wait_for_event(cluster, "Pulled", "plain")
        assert {h: i.id for h, i in (await images_named(runtime, image.name)).items()} == {
            "": image.id
        }


async def test_a_handler_that_the_index_has_nothing_for_is_told_of(
    cluster: Client, runtime: CriRuntime, registry: Registry, push: Push, tmp_path: Path
) -> None:
    image = push(registry, "linux-only:1")
    async with agent(cluster, runtime, tmp_path, VirtualClock()):
        await create_pod(cluster, image.name, "windows", "ws2019")
        told = await wait_for_event(cluster, "Failed", "windows")
        note = told["windows"].note
        assert "wcow-2019" in note
        assert "linux" in note


async def test_pull_secrets_are_read_from_the_api(
    cluster: Client, runtime: CriRuntime, guarded_registry: Registry, push: Push, tmp_path: Path
) -> None:
    image = push(guarded_registry, "private-story:1")
    paper = FakeCluster()
    paper.add_secret("good", guarded_registry.host, USER, PASSWORD)
    secret = paper.secrets["default/good"]
    secret.metadata.uid = ""
    await cluster.create(secret, SECRETS)
    pod = pod_of(image.name, "owner", secrets=("good",))
    pod.spec.node_name, pod.metadata.uid = NODE, ""
    async with agent(cluster, runtime, tmp_path, VirtualClock()):
        await cluster.create(pod)
        await wait_for_event(cluster, "Pulled", "owner")
        await create_pod(cluster, image.name, "stranger", None)
        await wait_for_event(cluster, "Failed", "stranger")


async def test_the_command_serves_a_node_and_ends_when_told(
    cluster: Client, runtime: CriRuntime, registry: Registry, tmp_path: Path
) -> None:
    name = push_for_all(registry, "command:1")
    command = [sys.executable, "-c", "from bayplan.cli.main import main; main()", "node-agent"]
    options = ["--images", "--node", NODE, "--socket", runtime.socket]
    options += ["--kubeconfig", str(tmp_path / "kubeconfig"), "--state-dir", str(tmp_path / "s")]
    with running([*command, *options], "managing the images of node n1") as agent_process:
        await create_pod(cluster, name, "on-2022", "ws2022")
        await wait_for_event(cluster, "Pulled", "on-2022")
    assert agent_process.process.returncode == 0
    assert not any("Traceback" in line for line in agent_process.log)
    assert set(await images_named(runtime, name)) == {"wcow-2022"}


async def test_the_pods_of_a_node_are_found_and_deleted_by_identity(cluster: Client) -> None:
    workloads = LiveNodePods(cluster)
    pod = await create_pod(cluster, "app:1", "web", "ws2019")
    assert [found.name for found in await workloads.pods_on(NODE)] == ["web"]
    assert await workloads.pods_on("other") == []
    await workloads.delete_pod(pod)
    await workloads.delete_pod(pod)
