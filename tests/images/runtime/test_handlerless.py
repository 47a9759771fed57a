"""With the gate off no handler goes out, and images that differ only in it look like one."""

from __future__ import annotations

from bayplan.images.runtime.objects import (
    HandlerlessRuntime,
    Image,
    ImageKey,
    ImageSpec,
    with_gate,
)
from tests.images.in_memory_runtime import InMemoryRuntime

SHARED = Image("sha256:app", ("app:1",), ("app@sha256:1",), 10)
ONE = Image("sha256:app", ("app:1",), size=10, handler="process", pinned=True)
OTHER = Image("sha256:app", ("app:2",), size=12, handler="hyperv")


async def test_a_merged_image_keeps_all_names_and_the_pin() -> None:
    (merged,) = await HandlerlessRuntime(InMemoryRuntime.of([ONE, OTHER])).list_images()
    assert (merged.tags, merged.size, merged.pinned, merged.handler) == (
        ("app:1", "app:2"),
        12,
        True,
        "",
    )


async def test_no_call_carries_a_handler() -> None:
    memory_runtime = InMemoryRuntime.of([ONE, SHARED], capacity=100)
    memory_runtime.offers[("app:1", "")] = SHARED
    memory_runtime.in_use = {ONE.key}
    blind = HandlerlessRuntime(memory_runtime)
    spec = ImageSpec("app:1", "process")
    assert await blind.image_status(spec) == SHARED
    assert await blind.pull_image(spec, None, None) == "sha256:app"
    await blind.remove_image(ImageSpec("sha256:app", "process"))
    assert {each.handler for each in memory_runtime.asked + memory_runtime.removed} == {""}
    assert await blind.images_in_use() == {ImageKey("sha256:app")}


def test_the_gate_decides_how_a_runtime_is_seen() -> None:
    memory_runtime = InMemoryRuntime()
    assert with_gate(memory_runtime, enabled=True) is memory_runtime
    assert isinstance(with_gate(memory_runtime, enabled=False), HandlerlessRuntime)
