"""Whatever pods come and go, and whenever images are collected: no live pod loses its image."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.images.agent.pod_images import PodImages
from bayplan.images.image_gc import ImageGCManager, ImageGCPolicy
from bayplan.images.runtime.objects import Image
from tests.images.in_memory_runtime import InMemoryRuntime
from tests.images.manager_fixture import ManagerFixture, pod_of

pytestmark = pytest.mark.whole


IMAGES = ("a:1", "b:1")
CLASSES = {None: "", "ws2019": "hyperv", "ws2022": "process"}
PODS = ("p", "q", "r")

STEPS = st.one_of(
    st.tuples(
        st.just("seen"),
        st.sampled_from(PODS),
        st.sampled_from(IMAGES),
        st.sampled_from(sorted(CLASSES, key=str)),
    ),
    st.tuples(st.just("gone"), st.sampled_from(PODS)),
    st.tuples(st.just("collect"), st.sampled_from([0.0, 60.0, 600.0])),
)


def full_shelf() -> InMemoryRuntime:
    """A runtime that has every image for every handler; a's content is the same for all."""
    offers = {
        (name, handler): Image(
            f"sha256:{name[0]}{handler if name == 'b:1' else ''}", (name,), size=40, handler=handler
        )
        for name in IMAGES
        for handler in CLASSES.values()
    }
    return InMemoryRuntime(offers=offers)


@given(st.lists(STEPS, max_size=14))
@settings(max_examples=60, deadline=None)
async def test_no_live_pod_loses_its_image(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[object, ...]]
) -> None:
    memory_runtime = full_shelf()
    fixture = ManagerFixture(memory_runtime, Path(tmp_path_factory.mktemp("state")))
    fixture.cluster.handlers = {name: handler for name, handler in CLASSES.items() if name}
    pods = PodImages(fixture.manager, fixture.clock)
    collector = ImageGCManager(
        memory_runtime,
        fixture.clock,
        ImageGCPolicy(1, 0),
        memory_runtime.disk,
        pods.in_use,
        pods.lock,
    )
    living: dict[str, tuple[str, str]] = {}
    for step in steps:
        match step:
            case ("seen", str(name), str(image), runtime_class):
                assert runtime_class is None or isinstance(runtime_class, str)
                if name not in living:  # a pod's runtime class never changes
                    living[name] = (image, CLASSES[runtime_class])
                    pods.pod_seen(pod_of(image, name, runtime_class=runtime_class))
            case ("gone", str(name)):
                living.pop(name, None)
                pods.pod_gone(f"uid-{name}")
            case ("collect", float(seconds)):
                await fixture.clock.advance(seconds)
                await collector.collect()
        await pods.settled()
        needed = {memory_runtime.offers[wanted].key for wanted in living.values()}
        assert await pods.in_use() == needed
        assert needed <= set(memory_runtime.images)
    await collector.refresh()
    await fixture.clock.advance(600)
    await collector.collect()
    assert set(memory_runtime.images) == {
        memory_runtime.offers[wanted].key for wanted in living.values()
    }
    await pods.stop()
