"""Virtual time passes only when moved, in order, and as far as asked."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.clock import Clock, WallClock
from tests.clocks import VirtualClock


async def test_a_virtual_clock_stands_still_until_moved() -> None:
    clock = VirtualClock()
    before = clock.now()
    await asyncio.sleep(0)
    assert (clock.now(), clock.monotonic()) == (before, 0.0)
    await clock.advance(90)
    assert (clock.now(), clock.monotonic()) == (before + timedelta(seconds=90), 90.0)


async def test_sleepers_wake_in_order_each_at_its_own_moment() -> None:
    clock = VirtualClock()
    woken: list[tuple[str, float]] = []

    async def nap(name: str, *naps: float) -> None:
        for seconds in naps:
            await clock.sleep(seconds)
            woken.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        group.create_task(nap("slow", 5, 5))
        group.create_task(nap("quick", 2, 3, 4))
        await clock.until_sleeping(2)
        await clock.advance(10)
    assert woken == [("quick", 2), ("slow", 5), ("quick", 5), ("quick", 9), ("slow", 10)]


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = VirtualClock()
    napping = asyncio.ensure_future(clock.sleep(1))
    await clock.until_sleeping()
    napping.cancel()
    await asyncio.wait({napping})
    assert clock.sleeping == 0
    assert not await clock.jump()


async def test_running_work_to_its_end_takes_virtual_hours_and_no_real_ones() -> None:
    clock = VirtualClock()

    async def patient(clock: Clock) -> str:
        for _ in range(24):
            await clock.sleep(3600)
        return "a day later"

    assert await clock.run(patient(clock)) == "a day later"
    assert clock.monotonic() == 24 * 3600


async def test_running_work_waits_for_what_the_clock_cannot_see() -> None:
    clock = VirtualClock()

    async def reads_a_pipe() -> bytes:
        process = await asyncio.create_subprocess_exec(
            "echo", "hello", stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        await clock.sleep(1)
        return out

    assert await clock.run(reads_a_pipe()) == b"hello\n"


async def test_the_wall_clock_moves_by_itself() -> None:
    clock = WallClock()
    before = clock.monotonic()
    await clock.sleep(0)
    assert clock.monotonic() >= before
    assert clock.now().utcoffset() == timedelta(0)


@given(st.lists(st.floats(0.001, 1000), max_size=20), st.floats(0, 1000))
def test_exactly_those_whose_time_has_come_are_woken(naps: list[float], moved: float) -> None:
    async def scenario() -> None:
        clock = VirtualClock()
        tasks = [asyncio.ensure_future(clock.sleep(nap)) for nap in naps]
        await clock.advance(moved)
        await asyncio.sleep(0)
        assert [task.done() for task in tasks] == [nap <= moved for nap in naps]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(scenario())
