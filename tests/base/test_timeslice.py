"""Time slices: other tasks run in between, and in virtual time a slice never ends."""

from __future__ import annotations

import asyncio

from bayplan.base.timeslice import TimeSlice
from bayplan.base.virtualloop import VirtualLoop


async def _steps(time_slice: TimeSlice, count: int, beside: list[int]) -> list[int]:
    """Return how far another task had come at each step."""
    seen = []
    for _ in range(count):
        seen.append(len(beside))
        if time_slice.is_over:
            await time_slice.begin_next()
    return seen


async def _count(into: list[int]) -> None:
    while True:
        into.append(len(into))
        await asyncio.sleep(0)


async def _both(seconds: float) -> list[int]:
    beside: list[int] = []
    other = asyncio.create_task(_count(beside))
    try:
        return await _steps(TimeSlice(seconds), 50, beside)
    finally:
        other.cancel()


async def test_other_tasks_run_between_time_slices() -> None:
    assert await _both(0.0) == list(range(50))


def test_in_virtual_time_a_slice_never_ends() -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(_both(0.001)) == [0] * 50
