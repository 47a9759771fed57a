"""Collection and runtime classes against every runtime there is, with and without handlers."""

from __future__ import annotations

from collections.abc import Set

from bayplan.images.collection import CollectionPolicy, Collector, DiskUsage
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import ImageKey, ImageSpec
from tests.images.desk import Desk, pod_of
from tests.images.parts.registry import PASSWORD, USER, Registry
from tests.images.peers.fixtures import Push

FULL = DiskUsage(10**12, 0)


def collector_for(desk: Desk, used: Set[ImageKey]) -> Collector:
    async def pods() -> Set[ImageKey]:
        return used

    everything = CollectionPolicy(0, 0)
    return Collector(desk.manager.runtime, desk.clock, everything, lambda _: FULL, pods)


async def test_what_nobody_uses_goes_and_what_a_pod_uses_stays(
    desk: Desk, runtime: CriRuntime, registry: Registry, push: Push
) -> None:
    kept = await desk.ready(pod_of(push(registry, "collected-kept:1").name))
    gone = await desk.ready(pod_of(push(registry, "collected-gone:1").name))
    collector = collector_for(desk, {kept.key})
    await collector.look()
    await desk.clock.advance(600)
    outcome = await collector.collect()
    assert gone.key in {candidate.record.key for candidate in outcome.removed}
    assert await runtime.image_status(ImageSpec(gone.key.id, gone.key.handler)) is None
    assert await runtime.image_status(ImageSpec(kept.key.id, kept.key.handler)) is not None


async def test_an_image_pulled_for_a_class_is_in_use_however_the_runtime_lists_it(
    desk: Desk, runtime: CriRuntime, registry: Registry, push: Push
) -> None:
    desk.cluster.handlers = {"isolated": "kata"}
    image = push(registry, "collected-class:1")
    ready = await desk.ready(pod_of(image.name, runtime_class="isolated"))
    assert ready.key in {listed.key for listed in await runtime.list_images()}
    collector = collector_for(desk, {ready.key})
    await collector.look()
    await desk.clock.advance(600)
    await collector.collect()
    again = await desk.ready(pod_of(image.name, "other", runtime_class="isolated"))
    assert (again.key, again.pulled) == (ready.key, False)


async def test_no_runtime_class_gets_round_a_secret(
    desk: Desk, guarded_registry: Registry, push: Push
) -> None:
    desk.cluster.handlers = {"isolated": "kata"}
    desk.cluster.add_secret("good", guarded_registry.host, USER, PASSWORD)
    image = push(guarded_registry, "collected-private:1")
    await desk.ready(pod_of(image.name, "owner", runtime_class="isolated", secrets=("good",)))
    assert (await desk.waiting(pod_of(image.name, "stranger"))).reason == "ErrImagePull"
    sly = pod_of(image.name, "sly", policy="Never")
    assert (await desk.waiting(sly)).reason == "ErrImageNeverPull"
