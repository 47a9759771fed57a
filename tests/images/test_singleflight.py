"""Work that several callers share is done once, and a failure of one is not the others'."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.images.singleflight import SingleFlight


async def test_whoever_comes_just_after_a_failure_works_for_itself() -> None:
    flights: SingleFlight[str] = SingleFlight()
    done: list[str] = []

    async def fail() -> None:
        raise ValueError("no such blob")

    async def succeed() -> None:
        done.append("late")

    async def come_late() -> None:
        await asyncio.sleep(0)  # the work has failed, and nobody has been told yet
        await flights.run("blob", succeed)

    leader = asyncio.ensure_future(flights.run("blob", fail))
    await asyncio.ensure_future(come_late())
    with pytest.raises(ValueError, match="no such blob"):
        await leader
    assert done == ["late"]


async def test_callers_of_one_key_share_the_work() -> None:
    flights: SingleFlight[str] = SingleFlight()
    done: list[str] = []

    async def work() -> None:
        await asyncio.sleep(0)
        done.append("once")

    await asyncio.gather(*(flights.run("blob", work) for _ in range(3)))
    assert done == ["once"]
