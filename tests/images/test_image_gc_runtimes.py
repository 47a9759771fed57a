"""Collection and runtime classes against every runtime there is, with and without handlers."""

from __future__ import annotations

from collections.abc import Set

from bayplan.images.image_gc import DiskUsage, ImageGCManager, ImageGCPolicy
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import ImageKey, ImageSpec
from tests.images.manager_fixture import ManagerFixture, pod_of
from tests.images.parts.registry import PASSWORD, USER, Registry
from tests.images.peers.fixtures import Push

FULL = DiskUsage(10**12, 0)


def collector_for(fixture: ManagerFixture, used: Set[ImageKey]) -> ImageGCManager:
    async def pods() -> Set[ImageKey]:
        return used

    everything = ImageGCPolicy(0, 0)
    return ImageGCManager(fixture.manager.runtime, fixture.clock, everything, lambda _: FULL, pods)


async def test_what_nobody_uses_goes_and_what_a_pod_uses_stays(
    fixture: ManagerFixture, runtime: CriRuntime, registry: Registry, push: Push
) -> None:
    kept = await fixture.ready(pod_of(push(registry, "collected-kept:1").name))
    gone = await fixture.ready(pod_of(push(registry, "collected-gone:1").name))
    collector = collector_for(fixture, {kept.key})
    await collector.refresh()
    await fixture.clock.advance(600)
    outcome = await collector.collect()
    assert gone.key in {candidate.record.key for candidate in outcome.removed}
    assert await runtime.image_status(ImageSpec(gone.key.id, gone.key.handler)) is None
    assert await runtime.image_status(ImageSpec(kept.key.id, kept.key.handler)) is not None


async def test_an_image_pulled_for_a_class_is_in_use_however_the_runtime_lists_it(
    fixture: ManagerFixture, runtime: CriRuntime, registry: Registry, push: Push
) -> None:
    fixture.cluster.handlers = {"isolated": "kata"}
    image = push(registry, "collected-class:1")
    ready = await fixture.ready(pod_of(image.name, runtime_class="isolated"))
    assert ready.key in {listed.key for listed in await runtime.list_images()}
    collector = collector_for(fixture, {ready.key})
    await collector.refresh()
    await fixture.clock.advance(600)
    await collector.collect()
    again = await fixture.ready(pod_of(image.name, "other", runtime_class="isolated"))
    assert (again.key, again.pulled) == (ready.key, False)


async def test_no_runtime_class_gets_round_a_secret(
    fixture: ManagerFixture, guarded_registry: Registry, push: Push
) -> None:
    fixture.cluster.handlers = {"isolated": "kata"}
    fixture.cluster.add_secret("good", guarded_registry.host, USER, PASSWORD)
    image = push(guarded_registry, "collected-private:1")
    await fixture.ready(pod_of(image.name, "owner", runtime_class="isolated", secrets=("good",)))
    assert (await fixture.waiting(pod_of(image.name, "stranger"))).reason == "ErrImagePull"
    sly = pod_of(image.name, "sly", policy="Never")
    assert (await fixture.waiting(sly)).reason == "ErrImageNeverPull"
