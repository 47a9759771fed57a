"""Work in turns: others go on meanwhile, and in virtual time nobody is interrupted."""

from __future__ import annotations

import asyncio

from bayplan.base.turns import Turns
from bayplan.base.virtualloop import VirtualLoop


async def _steps(turns: Turns, count: int, beside: list[int]) -> list[int]:
    """How far somebody else had come at each step."""
    seen = []
    for _ in range(count):
        seen.append(len(beside))
        if turns.is_over:
            await turns.next()
    return seen


async def _count(into: list[int]) -> None:
    while True:
        into.append(len(into))
        await asyncio.sleep(0)


async def _both(seconds: float) -> list[int]:
    beside: list[int] = []
    other = asyncio.create_task(_count(beside))
    try:
        return await _steps(Turns(seconds), 50, beside)
    finally:
        other.cancel()


async def test_whoever_works_in_turns_lets_others_go_on() -> None:
    assert await _both(0.0) == list(range(50))


def test_in_virtual_time_a_turn_never_ends() -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(_both(0.001)) == [0] * 50
