"""Pulls begin no faster than they may, and no more run at once than may."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.images.manager.throttle import PullLine, TokenBucket


def test_a_burst_is_allowed_and_then_the_rate() -> None:
    bucket = TokenBucket(qps=5, burst=10)
    assert [bucket.take(0) for _ in range(11)] == [True] * 10 + [False]
    assert bucket.take(0.2)
    assert not bucket.take(0.2)


def test_no_rate_is_no_limit() -> None:
    bucket = TokenBucket(qps=0, burst=1)
    assert all(bucket.take(0) for _ in range(100))


def test_a_negative_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        TokenBucket(qps=-1)


@given(st.lists(st.floats(0, 10), max_size=60), st.floats(0.5, 20), st.integers(1, 20))
def test_never_more_than_burst_and_rate_together(
    pauses: list[float], qps: float, burst: int
) -> None:
    bucket, now, taken = TokenBucket(qps, burst), 0.0, 0
    for pause in pauses:
        now += pause
        taken += bucket.take(now)
    assert taken <= burst + now * qps + 1e-6


async def _most_at_once(line: PullLine, count: int) -> int:
    running = most = 0

    async def pull() -> None:
        nonlocal running, most
        async with line.turn():
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(pull() for _ in range(count)))
    return most


async def test_pulls_are_serial_by_default() -> None:
    assert await _most_at_once(PullLine(), 5) == 1


async def test_parallel_pulls_have_a_limit_only_if_told() -> None:
    assert await _most_at_once(PullLine(serialize=False, max_parallel=3), 9) == 3
    assert await _most_at_once(PullLine(serialize=False), 9) == 9


async def test_who_came_first_is_served_first() -> None:
    line, served = PullLine(), []

    async def pull(name: int) -> None:
        async with line.turn():
            await asyncio.sleep(0)
            served.append(name)

    await asyncio.gather(*(pull(name) for name in range(6)))
    assert served == list(range(6))


@pytest.mark.parametrize(("serialize", "limit"), [(True, 2), (False, 0)])
def test_a_contradictory_limit_is_refused(serialize: bool, limit: int) -> None:
    with pytest.raises(ValueError, match="pulls"):
        PullLine(serialize=serialize, max_parallel=limit)
