"""No more pulls run at once than may."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.images.manager.pulls import PullSlots


async def _most_at_once(line: PullSlots, count: int) -> int:
    running = most = 0

    async def pull() -> None:
        nonlocal running, most
        async with line.slot():
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(pull() for _ in range(count)))
    return most


async def test_pulls_are_serial_by_default() -> None:
    assert await _most_at_once(PullSlots(), 5) == 1


async def test_parallel_pulls_have_a_limit_only_if_told() -> None:
    assert await _most_at_once(PullSlots(serialize=False, max_parallel=3), 9) == 3
    assert await _most_at_once(PullSlots(serialize=False), 9) == 9


async def test_who_came_first_is_served_first() -> None:
    line, served = PullSlots(), []

    async def pull(name: int) -> None:
        async with line.slot():
            await asyncio.sleep(0)
            served.append(name)

    await asyncio.gather(*(pull(name) for name in range(6)))
    assert served == list(range(6))


@pytest.mark.parametrize(("serialize", "limit"), [(True, 2), (False, 0)])
def test_a_contradictory_limit_is_refused(serialize: bool, limit: int) -> None:
    with pytest.raises(ValueError, match="pulls"):
        PullSlots(serialize=serialize, max_parallel=limit)
