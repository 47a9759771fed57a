"""Images by runtime class against our own service: pulled, found, verified, removed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bayplan.images.agent.image_gc_loop import GateStateFile
from bayplan.images.agent.reset import ImageReset
from bayplan.images.image_gc import DiskUsage, ImageGCManager, ImageGCPolicy
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import ImageKey, ImageSpec, RuntimeCallError
from tests.images.manager_fixture import ManagerFixture, pod_of
from tests.images.parts.registry import PASSWORD, USER, Registry
from tests.images.peers.fixtures import Push, push_for_all
from tests.patience import PATIENCE


@pytest.fixture
async def runtime(bayplan_socket: str) -> AsyncIterator[CriRuntime]:
    async with CriRuntime(bayplan_socket, timeout=PATIENCE) as connected:
        for image in await connected.list_images():
            await connected.remove_image(ImageSpec(image.id, image.handler))
        yield connected


@pytest.fixture
async def fixture(runtime: CriRuntime, tmp_path: Path) -> ManagerFixture:
    fixture = ManagerFixture(runtime, tmp_path / "state")
    fixture.cluster.handlers = {
        "ws2019": "wcow-2019",
        "ws2022": "wcow-2022",
        "kata": "kata",
        "default": "runc",
        "unknown": "no-such-handler",
    }
    return fixture


async def keys(runtime: CriRuntime) -> set[ImageKey]:
    return {image.key for image in await runtime.list_images()}


async def test_each_class_gets_its_own_manifest_of_one_name(
    fixture: ManagerFixture, runtime: CriRuntime, registry: Registry
) -> None:
    name = push_for_all(registry, "handlers:1")
    classes = ("ws2019", "ws2022", None)
    ready = [await fixture.ready(pod_of(name, f"p-{c}", runtime_class=c)) for c in classes]
    assert [each.key.handler for each in ready] == ["wcow-2019", "wcow-2022", ""]
    assert len({each.key.id for each in ready}) == 3
    assert await keys(runtime) == {each.key for each in ready}


async def test_the_same_manifest_for_two_handlers_is_two_entries(
    fixture: ManagerFixture, runtime: CriRuntime, registry: Registry, push: Push
) -> None:
    image = push(registry, "handlers:2")
    await fixture.ready(pod_of(image.name))
    await fixture.ready(pod_of(image.name, "isolated", runtime_class="kata"))
    assert await keys(runtime) == {ImageKey(image.id), ImageKey(image.id, "kata")}
    await runtime.remove_image(ImageSpec(image.id, "kata"))
    assert await keys(runtime) == {ImageKey(image.id)}
    never = pod_of(image.name, "late", runtime_class="kata", policy="Never")
    assert (await fixture.waiting(never)).reason == "ErrImageNeverPull"


async def test_the_default_handler_by_its_name_is_the_default_handler(
    fixture: ManagerFixture, runtime: CriRuntime, registry: Registry, push: Push
) -> None:
    image = push(registry, "handlers:3")
    ready = await fixture.ready(pod_of(image.name, runtime_class="default"))
    assert ready.key == ImageKey(image.id), "known as it is listed, so that it counts as in use"
    assert not (await fixture.ready(pod_of(image.name, "plain"))).pulled


async def test_a_handler_that_the_runtime_does_not_know_is_refused_by_name(
    fixture: ManagerFixture, registry: Registry, push: Push
) -> None:
    image = push(registry, "handlers:4")
    outcome = await fixture.waiting(pod_of(image.name, runtime_class="unknown"))
    assert outcome.reason == "ImageInspectError"
    assert "no-such-handler" in outcome.message


async def test_one_handlers_secret_does_not_open_anothers_image(
    fixture: ManagerFixture, guarded_registry: Registry, push: Push
) -> None:
    image = push(guarded_registry, "handlers:5")
    fixture.cluster.add_secret("good", guarded_registry.host, USER, PASSWORD)
    await fixture.ready(pod_of(image.name, "owner", secrets=("good",)))
    stranger = pod_of(image.name, "stranger", runtime_class="kata")
    assert (await fixture.waiting(stranger)).reason == "ErrImagePull"
    friend = pod_of(image.name, "friend", runtime_class="kata", secrets=("good",))
    assert (await fixture.ready(friend)).pulled


async def test_collecting_one_variant_leaves_the_other_whole(
    fixture: ManagerFixture, runtime: CriRuntime, registry: Registry, push: Push
) -> None:
    image = push(registry, "handlers:6")
    await fixture.ready(pod_of(image.name))
    kata = await fixture.ready(pod_of(image.name, "isolated", runtime_class="kata"))

    async def pods() -> frozenset[ImageKey]:
        return frozenset({kata.key})

    collector = ImageGCManager(
        runtime, fixture.clock, ImageGCPolicy(0, 0), lambda _: DiskUsage(10**12, 0), pods
    )
    await collector.refresh()
    await fixture.clock.advance(600)
    outcome = await collector.collect()
    assert [candidate.record.key for candidate in outcome.removed] == [ImageKey(image.id)]
    left = await runtime.image_status(ImageSpec(image.name, "kata"))
    assert left is not None
    assert left.size > 0
    assert await runtime.image_status(ImageSpec(image.name)) is None


async def test_the_gate_on_off_on_against_a_real_service(
    fixture: ManagerFixture, runtime: CriRuntime, registry: Registry
) -> None:
    name = push_for_all(registry, "handlers:7")
    pod = pod_of(name, runtime_class="ws2022")
    gate_file = GateStateFile.in_state_dir(fixture.folder)
    clean_up = ImageReset(runtime, fixture.manager.pull_manager, gate_file, fixture.clock)

    gate_file.record_start(await runtime.list_images(), enabled=True)
    on = await fixture.ready(pod)
    assert on.key.handler == "wcow-2022"

    fixture.gate = False
    fixture.restart()
    assert gate_file.record_start(await runtime.list_images(), enabled=False).clean_up_owed
    off = await fixture.ready(pod)
    assert (off.key.handler, off.pulled) == ("", True)
    assert off.key.id != on.key.id
    assert (await clean_up.run()).complete
    assert await keys(runtime) == set()
    assert not gate_file.needs_clean_up
    await fixture.ready(pod)

    fixture.gate = True
    fixture.restart()
    assert gate_file.record_start(await runtime.list_images(), enabled=True).clean_up_owed
    assert (await clean_up.run()).complete
    assert (await fixture.ready(pod)).key == on.key
    assert await keys(runtime) == {on.key}


async def test_the_runtime_says_its_name_its_handlers_and_its_disk(runtime: CriRuntime) -> None:
    version = await runtime.version()
    assert (version.name, version.api_version) == ("bayplan", "v1")
    assert {"", "kata", "wcow-2019", "wcow-2022"} <= set(await runtime.handlers())
    (filesystem,) = await runtime.image_filesystems()
    assert filesystem.mountpoint.endswith("store")
    assert await runtime.images_in_use() == set()


async def test_a_socket_where_nobody_answers_is_an_error_that_says_so(tmp_path: Path) -> None:
    async with CriRuntime(str(tmp_path / "none.sock")) as nobody:
        with pytest.raises(RuntimeCallError, match="ListImages: UNAVAILABLE"):
            await nobody.list_images()
