"""A node's pods get their images, keep them while they live, and lose them to nobody meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from bayplan.images.agent.image_gc_loop import GateStateFile, ImageGCLoop
from bayplan.images.agent.pod_images import PodImages
from bayplan.images.image_gc import ImageGCManager, ImageGCPolicy
from bayplan.images.manager.image_request import InvolvedObject
from bayplan.images.runtime.objects import Image, ImageKey
from tests.builders import make_pod
from tests.images.in_memory_runtime import InMemoryRuntime
from tests.images.manager_fixture import ManagerFixture, pod_of

PROCESS = Image("sha256:2022", ("app:1",), size=50, handler="process")
HYPERV = Image("sha256:2019", ("app:1",), size=45, handler="hyperv")
OTHER = Image("sha256:other", ("other:1",), size=1)


@pytest.fixture
def memory_runtime() -> InMemoryRuntime:
    offers = {(image.tags[0], image.handler): image for image in (PROCESS, HYPERV, OTHER)}
    return InMemoryRuntime(offers=offers)


@pytest.fixture
async def fixture(memory_runtime: InMemoryRuntime, tmp_path: Path) -> ManagerFixture:
    fixture = ManagerFixture(memory_runtime, tmp_path)
    fixture.cluster.handlers = {"ws2022": "process", "ws2019": "hyperv"}
    return fixture


def gc_loop(
    fixture: ManagerFixture, memory_runtime: InMemoryRuntime, pods: PodImages
) -> ImageGCLoop:
    collector = ImageGCManager(
        fixture.manager.runtime,
        fixture.clock,
        ImageGCPolicy(),
        memory_runtime.disk,
        pods.in_use,
        pods.lock,
    )
    return ImageGCLoop(
        collector,
        fixture.manager.pull_manager,
        GateStateFile.in_state_dir(fixture.folder),
        fixture.cluster,
        fixture.manager.metrics,
        fixture.clock,
        InvolvedObject("Node", "n1"),
    )


async def test_every_container_of_a_pod_is_served_init_ones_first(
    fixture: ManagerFixture, memory_runtime: InMemoryRuntime
) -> None:
    pod = make_pod("web").uid("u").image("app:1").init().obj()
    pod.spec.init_containers[0].image = "other:1"
    pod.spec.runtime_class_name = None
    memory_runtime.offers[("app:1", "")] = replace(PROCESS, handler="")
    pods = PodImages(fixture.manager, fixture.clock)
    pods.pod_seen(pod)
    await pods.settled()
    assert await pods.in_use() == {OTHER.key, ImageKey(PROCESS.id)}
    assert [message for _, reason, message in fixture.cluster.events if reason == "Pulling"] == [
        'Pulling image "other:1"',
        'Pulling image "app:1"',
    ]


async def test_what_has_to_wait_is_tried_again(
    fixture: ManagerFixture, memory_runtime: InMemoryRuntime
) -> None:
    offer = memory_runtime.offers.pop(("other:1", ""))
    pods = PodImages(fixture.manager, fixture.clock)
    pods.pod_seen(pod_of("other:1"))
    await fixture.clock.until_sleeping()
    memory_runtime.offers[("other:1", "")] = offer
    await fixture.clock.run(pods.settled())
    assert await pods.in_use() == {OTHER.key}
    assert fixture.cluster.reasons()[:2] == ["Pulling", "Failed"]


async def test_a_pod_that_goes_takes_its_work_with_it(fixture: ManagerFixture) -> None:
    pods = PodImages(fixture.manager, fixture.clock)
    pod = pod_of("no-such:1")
    pods.pod_seen(pod)
    await fixture.clock.until_sleeping()
    pods.pod_gone(pod.metadata.uid)
    await asyncio.sleep(0)
    assert fixture.clock.sleeping == 0
    assert await pods.in_use() == set()


async def test_a_changed_image_is_pulled_and_the_old_one_let_go(fixture: ManagerFixture) -> None:
    pods = PodImages(fixture.manager, fixture.clock)
    pods.pod_seen(pod_of("app:1", runtime_class="ws2022"))
    await pods.settled()
    pods.pod_seen(pod_of("app:1", runtime_class="ws2022"))
    pods.pod_seen(pod_of("other:1"))
    await pods.settled()
    assert await pods.in_use() == {OTHER.key}


async def test_a_pod_that_has_ended_holds_nothing(fixture: ManagerFixture) -> None:
    pods = PodImages(fixture.manager, fixture.clock)
    pod = pod_of("other:1")
    pods.pod_seen(pod)
    await pods.settled()
    pod.status.phase = "Succeeded"
    pods.pod_seen(pod)
    assert await pods.in_use() == set()
    await pods.stop()


async def test_a_pod_that_is_being_deleted_keeps_what_it_has_and_gets_nothing_more(
    fixture: ManagerFixture,
) -> None:
    pods = PodImages(fixture.manager, fixture.clock)
    has, wants = pod_of("other:1", "has"), pod_of("no-such:1", "wants")
    for pod in (has, wants):
        pods.pod_seen(pod)
    await fixture.clock.until_sleeping()
    for pod in (has, wants, pod_of("app:1", "late")):
        pod.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
        pods.pod_seen(pod)
    await fixture.clock.advance(600)
    assert await pods.in_use() == {OTHER.key}
    assert fixture.cluster.reasons().count("Failed") == 1
    await pods.stop()


async def test_collecting_one_pods_image_leaves_the_others(
    fixture: ManagerFixture, memory_runtime: InMemoryRuntime
) -> None:
    pods = PodImages(fixture.manager, fixture.clock)
    rounds = gc_loop(fixture, memory_runtime, pods)
    one = pod_of("app:1", "one", runtime_class="ws2022")
    pods.pod_seen(one)
    pods.pod_seen(pod_of("app:1", "other", runtime_class="ws2019"))
    await pods.settled()
    assert await rounds.round()
    assert set(memory_runtime.images) == {PROCESS.key, HYPERV.key}, "both are in use"
    pods.pod_gone(one.metadata.uid)
    await fixture.clock.advance(600)
    assert await rounds.round()
    assert set(memory_runtime.images) == {HYPERV.key}
    metrics = generate_latest(fixture.registry).decode()
    assert 'kubelet_image_garbage_collected_total{reason="space"} 1.0' in metrics
    assert 'bayplan_node_images{runtime_handler="hyperv"} 1.0' in metrics
    assert "bayplan_node_images_non_default_runtime_handler 1.0" in metrics
    assert fixture.manager.pull_manager.counts() == (0, 1), "the record went with its image"


async def test_an_image_collected_just_before_it_was_claimed_is_pulled_again(
    fixture: ManagerFixture, memory_runtime: InMemoryRuntime
) -> None:
    pods = PodImages(fixture.manager, fixture.clock)
    async with pods.lock:  # the collector is at work
        pods.pod_seen(pod_of("other:1"))
        await fixture.clock.advance(0)  # lets the pull end
        assert set(memory_runtime.images) == {OTHER.key}
        memory_runtime.images.clear()
    await pods.settled()
    assert set(memory_runtime.images) == {OTHER.key}
    assert fixture.cluster.reasons().count("Pulling") == 2


async def test_a_disk_filled_by_others_is_told_of(
    fixture: ManagerFixture, memory_runtime: InMemoryRuntime
) -> None:
    memory_runtime.capacity = 10
    memory_runtime.images[OTHER.key] = replace(OTHER, size=9)
    memory_runtime.in_use = {OTHER.key}
    rounds = gc_loop(fixture, memory_runtime, PodImages(fixture.manager, fixture.clock))
    assert await rounds.round()
    assert fixture.cluster.reasons() == ["FreeDiskSpaceFailed"]
    memory_runtime.capacity = 0
    assert not await rounds.round()
    assert fixture.cluster.reasons()[-1] == "InvalidDiskCapacity"
    memory_runtime.broken = "ListImages"
    assert not await rounds.round()
    assert fixture.cluster.reasons()[-1] == "ImageGCFailed"


async def test_rounds_come_sooner_after_a_failure(
    fixture: ManagerFixture, memory_runtime: InMemoryRuntime
) -> None:
    rounds = gc_loop(fixture, memory_runtime, PodImages(fixture.manager, fixture.clock))
    memory_runtime.broken = "ListImages"
    task = asyncio.ensure_future(rounds.run())
    await fixture.clock.advance(31)
    assert fixture.cluster.reasons().count("ImageGCFailed") == 2
    memory_runtime.broken = ""
    await fixture.clock.advance(30)
    memory_runtime.broken = "ListImages"
    await fixture.clock.advance(298)
    assert fixture.cluster.reasons().count("ImageGCFailed") == 2
    task.cancel()


async def test_a_debt_is_warned_of_in_every_round(
    fixture: ManagerFixture, memory_runtime: InMemoryRuntime
) -> None:
    rounds = gc_loop(fixture, memory_runtime, PodImages(fixture.manager, fixture.clock))
    rounds.gate_file.record_start([OTHER], enabled=True)
    rounds.gate_file.record_start([OTHER], enabled=False)
    await rounds.round()
    await rounds.round()
    assert fixture.cluster.reasons() == ["ImageCleanUpOwed"] * 2
    assert "bayplan_node_images_clean_up_owed 1.0" in fixture.metrics()
    rounds.gate_file.mark_cleaned_up()
    await rounds.round()
    assert "bayplan_node_images_clean_up_owed 0.0" in fixture.metrics()
