"""A node's pods get their images, keep them while they live, and lose them to nobody meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from bayplan.images.agent.housekeeping import GateLedger, Housekeeping
from bayplan.images.agent.pod_images import PodImages
from bayplan.images.collection import CollectionPolicy, Collector
from bayplan.images.manager.wanted import Subject
from bayplan.images.runtime.objects import Image, ImageKey
from tests.builders import make_pod
from tests.images.desk import Desk, pod_of
from tests.images.shelf import ShelfRuntime

PROCESS = Image("sha256:2022", ("app:1",), size=50, handler="process")
HYPERV = Image("sha256:2019", ("app:1",), size=45, handler="hyperv")
OTHER = Image("sha256:other", ("other:1",), size=1)


@pytest.fixture
def shelf() -> ShelfRuntime:
    offers = {(image.tags[0], image.handler): image for image in (PROCESS, HYPERV, OTHER)}
    return ShelfRuntime(offers=offers)


@pytest.fixture
async def desk(shelf: ShelfRuntime, tmp_path: Path) -> Desk:
    desk = Desk(shelf, tmp_path)
    desk.cluster.handlers = {"ws2022": "process", "ws2019": "hyperv"}
    return desk


def housekeeping(desk: Desk, shelf: ShelfRuntime, pods: PodImages) -> Housekeeping:
    collector = Collector(
        desk.manager.runtime, desk.clock, CollectionPolicy(), shelf.disk, pods.in_use, pods.lock
    )
    return Housekeeping(
        collector,
        desk.manager.memory,
        GateLedger.in_state_dir(desk.folder),
        desk.cluster,
        desk.manager.metrics,
        desk.clock,
        Subject("Node", "n1"),
    )


async def test_every_container_of_a_pod_is_served_init_ones_first(
    desk: Desk, shelf: ShelfRuntime
) -> None:
    pod = make_pod("web").uid("u").image("app:1").init().obj()
    pod.spec.init_containers[0].image = "other:1"
    pod.spec.runtime_class_name = None
    shelf.offers[("app:1", "")] = replace(PROCESS, handler="")
    pods = PodImages(desk.manager, desk.clock)
    pods.pod_seen(pod)
    await pods.settled()
    assert await pods.in_use() == {OTHER.key, ImageKey(PROCESS.id)}
    assert [message for _, reason, message in desk.cluster.events if reason == "Pulling"] == [
        'Pulling image "other:1"',
        'Pulling image "app:1"',
    ]


async def test_what_has_to_wait_is_tried_again(desk: Desk, shelf: ShelfRuntime) -> None:
    offer = shelf.offers.pop(("other:1", ""))
    pods = PodImages(desk.manager, desk.clock)
    pods.pod_seen(pod_of("other:1"))
    await desk.clock.until_sleeping()
    shelf.offers[("other:1", "")] = offer
    await desk.clock.run(pods.settled())
    assert await pods.in_use() == {OTHER.key}
    assert desk.cluster.reasons()[:2] == ["Pulling", "Failed"]


async def test_a_pod_that_goes_takes_its_work_with_it(desk: Desk) -> None:
    pods = PodImages(desk.manager, desk.clock)
    pod = pod_of("no-such:1")
    pods.pod_seen(pod)
    await desk.clock.until_sleeping()
    pods.pod_gone(pod.metadata.uid)
    await asyncio.sleep(0)
    assert desk.clock.sleeping == 0
    assert await pods.in_use() == set()


async def test_a_changed_image_is_pulled_and_the_old_one_let_go(desk: Desk) -> None:
    pods = PodImages(desk.manager, desk.clock)
    pods.pod_seen(pod_of("app:1", runtime_class="ws2022"))
    await pods.settled()
    pods.pod_seen(pod_of("app:1", runtime_class="ws2022"))
    pods.pod_seen(pod_of("other:1"))
    await pods.settled()
    assert await pods.in_use() == {OTHER.key}


async def test_a_pod_that_has_ended_holds_nothing(desk: Desk) -> None:
    pods = PodImages(desk.manager, desk.clock)
    pod = pod_of("other:1")
    pods.pod_seen(pod)
    await pods.settled()
    pod.status.phase = "Succeeded"
    pods.pod_seen(pod)
    assert await pods.in_use() == set()
    await pods.stop()


async def test_a_pod_that_is_being_deleted_keeps_what_it_has_and_gets_nothing_more(
    desk: Desk,
) -> None:
    pods = PodImages(desk.manager, desk.clock)
    has, wants = pod_of("other:1", "has"), pod_of("no-such:1", "wants")
    for pod in (has, wants):
        pods.pod_seen(pod)
    await desk.clock.until_sleeping()
    for pod in (has, wants, pod_of("app:1", "late")):
        pod.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
        pods.pod_seen(pod)
    await desk.clock.advance(600)
    assert await pods.in_use() == {OTHER.key}
    assert desk.cluster.reasons().count("Failed") == 1
    await pods.stop()


async def test_collecting_one_pods_image_leaves_the_others(desk: Desk, shelf: ShelfRuntime) -> None:
    pods = PodImages(desk.manager, desk.clock)
    rounds = housekeeping(desk, shelf, pods)
    one = pod_of("app:1", "one", runtime_class="ws2022")
    pods.pod_seen(one)
    pods.pod_seen(pod_of("app:1", "other", runtime_class="ws2019"))
    await pods.settled()
    assert await rounds.round()
    assert set(shelf.images) == {PROCESS.key, HYPERV.key}, "both are in use"
    pods.pod_gone(one.metadata.uid)
    await desk.clock.advance(600)
    assert await rounds.round()
    assert set(shelf.images) == {HYPERV.key}
    metrics = generate_latest(desk.registry).decode()
    assert 'kubelet_image_garbage_collected_total{reason="space"} 1.0' in metrics
    assert 'bayplan_node_images{runtime_handler="hyperv"} 1.0' in metrics
    assert "bayplan_node_images_non_default_runtime_handler 1.0" in metrics
    assert desk.manager.memory.counts() == (0, 1), "the record went with its image"


async def test_an_image_collected_just_before_it_was_claimed_is_pulled_again(
    desk: Desk, shelf: ShelfRuntime
) -> None:
    pods = PodImages(desk.manager, desk.clock)
    async with pods.lock:  # the collector is at work
        pods.pod_seen(pod_of("other:1"))
        await desk.clock.advance(0)  # lets the pull end
        assert set(shelf.images) == {OTHER.key}
        shelf.images.clear()
    await pods.settled()
    assert set(shelf.images) == {OTHER.key}
    assert desk.cluster.reasons().count("Pulling") == 2


async def test_a_disk_filled_by_others_is_told_of(desk: Desk, shelf: ShelfRuntime) -> None:
    shelf.capacity = 10
    shelf.images[OTHER.key] = replace(OTHER, size=9)
    shelf.in_use = {OTHER.key}
    rounds = housekeeping(desk, shelf, PodImages(desk.manager, desk.clock))
    assert await rounds.round()
    assert desk.cluster.reasons() == ["FreeDiskSpaceFailed"]
    shelf.capacity = 0
    assert not await rounds.round()
    assert desk.cluster.reasons()[-1] == "InvalidDiskCapacity"
    shelf.broken = "ListImages"
    assert not await rounds.round()
    assert desk.cluster.reasons()[-1] == "ImageGCFailed"


async def test_rounds_come_sooner_after_a_failure(desk: Desk, shelf: ShelfRuntime) -> None:
    rounds = housekeeping(desk, shelf, PodImages(desk.manager, desk.clock))
    shelf.broken = "ListImages"
    task = asyncio.ensure_future(rounds.run())
    await desk.clock.advance(31)
    assert desk.cluster.reasons().count("ImageGCFailed") == 2
    shelf.broken = ""
    await desk.clock.advance(30)
    shelf.broken = "ListImages"
    await desk.clock.advance(298)
    assert desk.cluster.reasons().count("ImageGCFailed") == 2
    task.cancel()


async def test_a_debt_is_warned_of_in_every_round(desk: Desk, shelf: ShelfRuntime) -> None:
    rounds = housekeeping(desk, shelf, PodImages(desk.manager, desk.clock))
    rounds.ledger.started([OTHER], enabled=True)
    rounds.ledger.started([OTHER], enabled=False)
    await rounds.round()
    await rounds.round()
    assert desk.cluster.reasons() == ["ImageCleanUpOwed"] * 2
    assert "bayplan_node_images_clean_up_owed 1.0" in desk.metrics()
    rounds.ledger.settle()
    await rounds.round()
    assert "bayplan_node_images_clean_up_owed 0.0" in desk.metrics()
