"""A daemon that is told to end does what it still has to, and not for longer than it may."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.base.grace import finish_within

pytestmark = pytest.mark.virtual


async def end_in_order(done: list[str], seconds: float) -> None:
    """Work until cancelled, then finish what takes that long within four seconds."""

    async def work() -> None:
        await asyncio.sleep(seconds)
        done.append("finished")

    try:
        await asyncio.Event().wait()
    finally:
        await finish_within(4.0, work())
        done.append("cleaned up")


@pytest.mark.parametrize(
    ("seconds", "done"), [(3.0, ["finished", "cleaned up"]), (5.0, ["cleaned up"])]
)
async def test_a_task_that_is_cancelled_ends_in_order(seconds: float, done: list[str]) -> None:
    seen: list[str] = []
    task = asyncio.ensure_future(end_in_order(seen, seconds))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == done


async def test_what_fails_meanwhile_is_raised() -> None:
    async def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await finish_within(1.0, work())


async def test_who_is_cancelled_again_leaves_no_work_behind() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.ensure_future(finish_within(100.0, work()))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ended.wait()
