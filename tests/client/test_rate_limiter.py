"""The request budget: never more than its rate, never more than its places, first come first."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.base.clock import LoopClock
from bayplan.client.wire.calls import RateLimiter

pytestmark = pytest.mark.virtual


async def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    clock = LoopClock()
    budget = RateLimiter(clock, qps=2, burst=3)
    when: list[float] = []

    async def ask() -> None:
        async with budget.slot():
            when.append(clock.monotonic())

    async def ask_all() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(6):
                group.create_task(ask())

    await ask_all()
    assert when == [0, 0, 0, 0.5, 1.0, 1.5]


async def test_no_more_than_its_places_are_in_flight_and_turns_are_in_order() -> None:
    clock = LoopClock()
    budget = RateLimiter(clock, qps=1000, burst=1000, in_flight=2)
    order: list[int] = []
    inside = most = 0

    async def ask(number: int) -> None:
        nonlocal inside, most
        async with budget.slot():
            order.append(number)
            inside += 1
            most = max(most, inside)
            await clock.sleep(1)
            inside -= 1

    async def ask_all() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(7):
                group.create_task(ask(number))

    await ask_all()
    assert most == 2
    assert order == list(range(7))


async def test_a_budget_of_nothing_is_refused() -> None:
    for qps, burst in ((0, 1), (-1, 1), (1, 0)):
        with pytest.raises(ValueError, match="rate limits need"):
            RateLimiter(LoopClock(), qps=qps, burst=burst)
