"""One name, several platforms, several handlers: a real registry and our service."""

import pytest

from tests.images.parts.layouts import WINDOWS_BUILDS, ImageBuilder, linux, tar_of, windows
from tests.images.parts.registry import Registry
from tests.images.parts.service import Service

pytestmark = pytest.mark.whole


def push_story(registry: Registry, name: str) -> str:
    builder = ImageBuilder()
    platforms = [linux("amd64"), linux("arm64"), *map(windows, WINDOWS_BUILDS)]
    entries = [
        builder.entry(tar_of(("shared", b"same")), tar_of(("which", str(p).encode())), platform=p)
        for p in platforms
    ]
    return registry.push(builder, builder.index(*entries), name)


async def test_two_handlers_get_two_manifests_of_one_name(
    registry: Registry, service: Service
) -> None:
    name = push_story(registry, "story:1")
    ids = {handler: await service.pull(name, handler) for handler in ("", "wcow-2019", "wcow-2022")}
    assert len(set(ids.values())) == 3
    for handler, image_id in ids.items():
        image = await service.status(name, handler)
        assert image is not None
        assert (image.id, image.spec.runtime_handler) == (image_id, handler)


async def test_removing_one_handlers_image_leaves_the_others(
    registry: Registry, service: Service
) -> None:
    name = push_story(registry, "story:2")
    for handler in ("", "kata", "wcow-2019"):
        await service.pull(name, handler)
    await service.remove(name, "kata")
    assert await service.status(name, "kata") is None
    listed = {image.spec.runtime_handler for image in await service.list()}
    assert listed == {"", "wcow-2019"}
    image = await service.status(name)
    assert image is not None
    assert image.size > 0
