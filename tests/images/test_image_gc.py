"""Images are collected by (image, handler), in order, never too many and never the wrong ones."""

from __future__ import annotations

from collections.abc import Set
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.images.image_gc import (
    DiskUsage,
    GCReason,
    ImageGCManager,
    ImageGCPolicy,
    ImageGCResult,
    InvalidDiskCapacityError,
    image_disk,
    probe_disk,
)
from bayplan.images.runtime.objects import HandlerlessRuntime, Image, ImageKey, ImageSpec
from tests.clocks import VirtualClock
from tests.images.in_memory_runtime import InMemoryRuntime

MINUTE = 60.0


def image(name: str, handler: str = "", size: int = 10, *, pinned: bool = False) -> Image:
    return Image(f"sha256:{name}", (f"{name}:1",), size=size, handler=handler, pinned=pinned)


def collector(
    memory_runtime: InMemoryRuntime,
    policy: ImageGCPolicy | None = None,
    clock: VirtualClock | None = None,
) -> ImageGCManager:
    return ImageGCManager(
        memory_runtime, clock or VirtualClock(), policy or ImageGCPolicy(), memory_runtime.disk
    )


async def aged(collector: ImageGCManager, seconds: float = 10 * MINUTE) -> ImageGCManager:
    """A collector that has known its images for a while."""
    await collector.refresh()
    assert isinstance(collector.clock, VirtualClock)
    await collector.clock.advance(seconds)
    return collector


def keys(outcome: ImageGCResult) -> list[str]:
    return [str(candidate.record.key) for candidate in outcome.removed]


async def test_nothing_goes_below_the_high_threshold() -> None:
    memory_runtime = InMemoryRuntime.of([image("a", size=84)])
    assert keys(await (await aged(collector(memory_runtime))).collect()) == []


async def test_at_the_high_threshold_images_go_until_the_low_one() -> None:
    memory_runtime = InMemoryRuntime.of([image(name, size=5) for name in "abcdefghijklmnopq"])
    outcome = await (await aged(collector(memory_runtime))).collect()
    assert (outcome.bytes_wanted, outcome.bytes_freed) == (5, 5)
    assert len(memory_runtime.images) == 16
    assert not outcome.is_short_of_space


async def test_collecting_one_variant_leaves_the_other() -> None:
    variants = [image("app", "process", 50), image("app", "hyperv", 45)]
    memory_runtime = InMemoryRuntime.of(variants)
    memory_runtime.in_use = {ImageKey("sha256:app", "hyperv")}
    outcome = await (await aged(collector(memory_runtime))).collect()
    assert keys(outcome) == ["sha256:app,process"]
    assert memory_runtime.removed == [ImageSpec("sha256:app", "process")]
    assert set(memory_runtime.images) == {ImageKey("sha256:app", "hyperv")}


async def test_a_container_that_says_no_handler_keeps_every_variant() -> None:
    memory_runtime = InMemoryRuntime.of([image("app", "process", 50), image("app", "hyperv", 45)])
    memory_runtime.in_use = {ImageKey("sha256:app")}
    outcome = await (await aged(collector(memory_runtime))).collect()
    assert keys(outcome) == []
    assert outcome.is_short_of_space


async def test_a_named_default_handler_keeps_the_image_that_is_listed_without_it() -> None:
    memory_runtime = InMemoryRuntime.of([image("app", size=95)])
    memory_runtime.in_use = {ImageKey("sha256:app", "runc")}
    assert keys(await (await aged(collector(memory_runtime))).collect()) == []


async def test_the_same_content_for_two_handlers_is_two_images() -> None:
    memory_runtime = InMemoryRuntime.of([image("app", "process", 50), image("app", "hyperv", 45)])
    work = await aged(collector(memory_runtime))

    async def pods() -> Set[ImageKey]:
        return frozenset({ImageKey("sha256:app", "hyperv")})

    work.in_use_by_pods = pods
    assert keys(await work.collect()) == ["sha256:app,process"]


async def test_the_longest_unused_goes_first_and_then_the_longest_here() -> None:
    clock = VirtualClock()
    memory_runtime = InMemoryRuntime.of([image("used", size=30), image("old", size=30)])
    memory_runtime.in_use = {ImageKey("sha256:used")}
    work = await aged(collector(memory_runtime, ImageGCPolicy(85, 0), clock))
    memory_runtime.images[ImageKey("sha256:new")] = image("new", size=30)
    memory_runtime.in_use = set()
    await aged(work)
    assert keys(await work.collect()) == ["sha256:old", "sha256:new", "sha256:used"]


async def test_young_images_do_not_go_for_space() -> None:
    memory_runtime = InMemoryRuntime.of([image("young", size=95)])
    outcome = await (await aged(collector(memory_runtime), 119)).collect()
    assert (keys(outcome), outcome.is_short_of_space) == ([], True)
    work = await aged(collector(memory_runtime), 120)
    assert keys(await work.collect()) == ["sha256:young"]


async def test_pinned_images_never_go() -> None:
    memory_runtime = InMemoryRuntime.of([image("pause", size=95, pinned=True)])
    work = await aged(collector(memory_runtime, ImageGCPolicy(maximum_age=timedelta(hours=1))))
    await aged(work, 7200)
    assert keys(await work.collect()) == []
    assert keys(await work.remove_unused()) == []


async def test_images_unused_for_too_long_go_whatever_the_disk_says() -> None:
    policy = ImageGCPolicy(maximum_age=timedelta(hours=1))
    memory_runtime = InMemoryRuntime.of([image("old", "hyperv", 1)])
    work = await aged(collector(memory_runtime, policy), 3600)
    assert keys(await work.collect()) == [], "not yet longer than the maximum"
    memory_runtime.images[ImageKey("sha256:new")] = image("new", size=1)
    await aged(work, 1)
    outcome = await work.collect()
    assert keys(outcome) == ["sha256:old,hyperv"]
    assert outcome.removed[0].reason is GCReason.AGE


async def test_a_collector_that_just_started_judges_no_ages() -> None:
    clock = VirtualClock()
    policy = ImageGCPolicy(maximum_age=timedelta(hours=1))
    memory_runtime = InMemoryRuntime.of([image("app", size=1)])
    work = collector(memory_runtime, policy, clock)
    assert keys(await work.collect()) == []


async def test_a_failed_removal_is_passed_over_and_tried_again() -> None:
    memory_runtime = InMemoryRuntime.of([image("a", "hyperv", 45), image("b", "hyperv", 45)])
    stuck = ImageKey("sha256:a", "hyperv")
    memory_runtime.stuck = {stuck}
    work = await aged(collector(memory_runtime, ImageGCPolicy(85, 50)))
    outcome = await work.collect()
    assert keys(outcome) == ["sha256:b,hyperv"]
    assert outcome.failed == {stuck: "RemoveImage: UNKNOWN: device or resource busy"}
    memory_runtime.stuck = set()
    memory_runtime.capacity = 50
    assert keys(await work.collect()) == ["sha256:a,hyperv"]


async def test_an_image_that_a_pod_came_to_need_meanwhile_stays() -> None:
    memory_runtime = InMemoryRuntime.of([image("app", "hyperv", 95)])
    looks = 0

    async def needed_after_the_look() -> Set[ImageKey]:
        nonlocal looks
        looks += 1
        return frozenset({ImageKey("sha256:app", "hyperv")} if looks > 2 else ())

    work = await aged(replace_users(collector(memory_runtime), needed_after_the_look))
    assert keys(await work.collect()) == []
    assert memory_runtime.images


def replace_users(work: ImageGCManager, users: object) -> ImageGCManager:
    assert callable(users)
    work.in_use_by_pods = users
    return work


async def test_a_dry_run_removes_nothing_and_forgets_nothing() -> None:
    memory_runtime = InMemoryRuntime.of([image("app", size=95)])
    work = await aged(collector(memory_runtime))
    first = await work.collect(dry_run=True)
    assert keys(first) == ["sha256:app"]
    assert memory_runtime.images
    assert keys(await work.collect(dry_run=True)) == keys(first)
    assert keys(await work.collect()) == keys(first)


async def test_with_the_gate_off_images_are_seen_and_removed_by_id_alone() -> None:
    memory_runtime = InMemoryRuntime.of([image("app", "process", 50), image("app", "hyperv", 45)])
    blind = HandlerlessRuntime(memory_runtime)
    work = await aged(ImageGCManager(blind, VirtualClock(), ImageGCPolicy(), memory_runtime.disk))
    assert [str(each.key) for each in work.images] == ["sha256:app"]
    await work.collect()
    assert memory_runtime.removed == [ImageSpec("sha256:app")]


@pytest.mark.parametrize(
    ("high", "low", "why"),
    [(101, 80, "between 0 and 100"), (85, -1, "between 0 and 100"), (50, 60, "above the high")],
)
def test_a_policy_that_makes_no_sense_is_refused(high: int, low: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ImageGCPolicy(high, low)


def test_a_disk_of_unknown_size_is_an_error() -> None:
    with pytest.raises(InvalidDiskCapacityError, match="reports no image filesystem"):
        image_disk([], probe_disk)
    with pytest.raises(InvalidDiskCapacityError, match="No such file"):
        probe_disk("/no/such/place")


def test_the_machine_knows_its_disks() -> None:
    usage = probe_disk("/")
    assert usage.capacity >= usage.available > 0


@given(st.integers(10**4, 10**15), st.integers(0, 10**15), st.integers(0, 100), st.integers(0, 100))
def test_freeing_what_is_asked_reaches_the_low_threshold(
    capacity: int, available: int, one: int, other: int
) -> None:
    policy = ImageGCPolicy(max(one, other), min(one, other))
    wanted = DiskUsage(capacity, available).bytes_to_free(policy)
    after = DiskUsage(capacity, available + wanted)
    assert wanted >= 0
    if wanted:
        assert after.used_percent <= policy.low_percent + 1


IMAGES = st.builds(
    image,
    st.sampled_from("abcdef"),
    st.sampled_from(["", "process", "hyperv"]),
    st.integers(1, 40),
    pinned=st.booleans(),
)


@st.composite
def shelves(draw: st.DrawFn) -> InMemoryRuntime:
    memory_runtime = InMemoryRuntime.of(draw(st.lists(IMAGES, max_size=18)))
    known = sorted(memory_runtime.images)
    if known:
        memory_runtime.in_use = draw(st.sets(st.sampled_from(known)))
        memory_runtime.stuck = draw(st.sets(st.sampled_from(known), max_size=2))
    memory_runtime.capacity = draw(st.integers(1, 300))
    return memory_runtime


@given(shelves(), st.integers(0, 100), st.integers(0, 100), st.floats(0, 300))
async def test_whatever_the_records_the_right_images_go(
    memory_runtime: InMemoryRuntime, one: int, other: int, age: float
) -> None:
    policy = ImageGCPolicy(max(one, other), min(one, other))
    before = dict(memory_runtime.images)
    work = await aged(collector(memory_runtime, policy), age)
    outcome = await work.collect()
    removed = [candidate.record for candidate in outcome.removed]

    assert set(before) - set(memory_runtime.images) == {record.key for record in removed}
    assert not any(record.in_use or record.pinned for record in removed)
    assert age >= 120 or not removed
    assert removed == sorted(removed, key=lambda record: record.eviction_order)
    assert not {record.key for record in removed} & memory_runtime.stuck
    if removed:  # not one more than needed
        assert sum(record.size for record in removed[:-1]) < outcome.bytes_wanted
    if outcome.is_short_of_space:  # only because nothing else could go
        left = [
            r for r in outcome.kept if not (r.in_use or r.pinned or r.key in memory_runtime.stuck)
        ]
        assert age < 120 or not left


@given(st.lists(IMAGES, max_size=18), st.sets(st.sampled_from("abcdef")))
async def test_a_variant_goes_alone(images: list[Image], used: set[str]) -> None:
    memory_runtime = InMemoryRuntime.of(images)
    memory_runtime.in_use = {ImageKey(f"sha256:{name}", "hyperv") for name in used}
    vague = {user.id for user in memory_runtime.in_use - set(memory_runtime.images)}
    kept = {
        key
        for key, each in memory_runtime.images.items()
        if key in memory_runtime.in_use or key.id in vague or each.pinned
    }
    await (await aged(collector(memory_runtime))).remove_unused()
    assert set(memory_runtime.images) == kept
