"""Flushes that several pulls share."""

import asyncio
import threading

from bayplan.images.store.store import Barrier
from tests.patience import PATIENCE


async def test_those_who_wait_for_the_same_flush_share_it() -> None:
    flushes: list[int] = []
    barrier = Barrier(lambda: flushes.append(1))
    await asyncio.gather(*(barrier.passed() for _ in range(10)))
    assert len(flushes) == 1


async def test_who_comes_after_a_flush_began_needs_another() -> None:
    began, go_on = threading.Event(), threading.Event()
    flushes: list[int] = []

    def flush() -> None:
        flushes.append(1)
        began.set()
        go_on.wait(PATIENCE)

    barrier = Barrier(flush)
    first = asyncio.ensure_future(barrier.passed())
    assert await asyncio.to_thread(began.wait, PATIENCE)
    later = [asyncio.ensure_future(barrier.passed()) for _ in range(5)]
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(first, *later)
    assert len(flushes) == 2
