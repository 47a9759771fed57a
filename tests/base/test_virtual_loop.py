"""On a virtual loop waiting takes no time, and nothing from outside can come between."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.clock import START, LoopClock
from bayplan.base.virtualloop import DeadlockError, RealTimeOperationError, VirtualLoop

pytestmark = pytest.mark.virtual


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_year_of_sleep_takes_no_time_and_ends_at_its_moment() -> None:
    clock = LoopClock()
    for _ in range(365):
        await clock.sleep(24 * 3600)
    assert clock.now() == START + timedelta(days=365)


async def test_time_stands_still_while_anybody_works() -> None:
    async def chain(links: int) -> float:
        for _ in range(links):
            await asyncio.sleep(0)
        return now()

    sleeper = asyncio.ensure_future(asyncio.sleep(1))
    assert await chain(5000) == 0.0
    await sleeper
    assert now() == 1.0


@given(st.lists(st.floats(0.001, 1e7), max_size=20))
def test_sleepers_wake_in_order_exactly_at_their_moments(naps: list[float]) -> None:
    woken: list[float] = []

    async def nap(seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(now())

    async def all_naps() -> None:
        await asyncio.gather(*map(nap, naps))

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(all_naps())
    assert woken == pytest.approx(sorted(naps), abs=2e-6)


async def test_timeouts_and_cancelled_timers_are_virtual_too() -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.wait_for(asyncio.Event().wait(), 7200), 3600)
    assert now() == 3600.0
    asyncio.get_running_loop().call_later(50, print).cancel()
    await asyncio.sleep(100)
    assert now() == 3700.0


async def test_idle_is_when_everybody_has_finished_and_before_time_goes_on() -> None:
    loop, steps = asyncio.get_running_loop(), list[float]()
    assert isinstance(loop, VirtualLoop)

    async def busy() -> None:
        for _ in range(100):
            await asyncio.sleep(0)
            steps.append(now())

    working, sleeping = asyncio.create_task(busy()), asyncio.create_task(asyncio.sleep(5))
    await loop.idle()
    assert (len(steps), now()) == (100, 0.0)
    await sleeping
    await working
    assert now() == 5.0


def test_a_standstill_is_an_error_that_names_who_waits() -> None:
    async def forever() -> None:
        await asyncio.create_task(asyncio.Event().wait(), name="the scheduler")

    with (
        asyncio.Runner(loop_factory=VirtualLoop) as runner,
        pytest.raises(DeadlockError, match=r"all tasks wait.*the scheduler"),
    ):
        runner.run(forever())


async def _reading() -> None:
    left, right = socket.socketpair()
    with left, right:
        left.setblocking(False)
        await asyncio.get_running_loop().sock_recv(left, 1)


@pytest.mark.parametrize(
    "wish",
    [
        lambda: asyncio.open_connection("127.0.0.1", 1),
        lambda: asyncio.start_server(print, "127.0.0.1", 0),
        lambda: asyncio.create_subprocess_exec("true"),
        lambda: asyncio.to_thread(time.sleep, 0),
        _reading,
    ],
)
async def test_what_only_real_time_has_is_refused(wish: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(RealTimeOperationError, match="cannot be used in virtual time"):
        await wish()


async def test_another_thread_is_refused() -> None:
    loop, told = asyncio.get_running_loop(), list[BaseException]()

    def call() -> None:
        try:
            loop.call_soon_threadsafe(print)
        except RealTimeOperationError as error:
            told.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert len(told) == 1


async def test_signals_arrive() -> None:
    arrived = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, arrived.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    async with asyncio.timeout(1e6):
        await arrived.wait()


def test_who_sleeps_for_ever_is_not_woken_by_anything() -> None:
    async def sleep() -> None:
        await asyncio.sleep(10)
        await asyncio.sleep(math.inf)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        with pytest.raises(DeadlockError):
            runner.run(sleep())
        assert runner.get_loop().time() == 10.0


async def test_a_socket_that_has_something_to_say_is_not_heard() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.send(b"x")
        with pytest.raises(RealTimeOperationError):
            await asyncio.get_running_loop().sock_recv(ours, 1)
