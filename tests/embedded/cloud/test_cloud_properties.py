"""Whatever is bought, given back or fails: targets, instances and bounds stay together."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.nodegroups import NodeGroupError, NodeRef, Provider, RefusedError
from tests.embedded.cloud.clouds import WORKERS, Served, Sky

MOVES = ["increase", "delete", "decrease", "stock-out", "quota", "never-registers", "well", "wait"]
Move = tuple[str, int]
moves = st.lists(st.tuples(st.sampled_from(MOVES), st.integers(-1, 6)), max_size=25)


async def play(sky: Sky, provider: Provider, move: Move) -> str:
    """Make a move; what came of it, in words."""
    name, number = move
    asked: dict[str, Awaitable[None]] = {}
    if name == "increase":
        asked[name] = provider.increase("workers", number)
    elif name == "decrease":
        asked[name] = provider.decrease_target("workers", number)
    elif name == "delete":
        nodes = [NodeRef(f"sim://workers/workers-{n}") for n in range(number, number + 2)]
        asked[name] = provider.delete_nodes("workers", nodes[: 1 + number % 2])
    elif name == "wait":
        sky.forward(20 * abs(number))
    elif name == "well":
        sky.clear()
    else:
        sky.inject(kind=name)
    for question in asked.values():
        try:
            await question
        except NodeGroupError as error:
            return f"{type(error).__name__}: {error}"
    return "done"


@settings(max_examples=60)
@given(moves)
def test_targets_instances_and_bounds_stay_together(plan: list[Move]) -> None:
    async def story() -> None:
        sky, seen, spent = Sky([WORKERS]), set[str](), 0.0
        for move in plan:
            before = dict(sky.cloud.instances)
            states = dict(sky.states())
            await play(sky, sky.provider, move)
            after = sky.cloud.instances
            gone = [name for name in before if name not in after]
            assert await sky.provider.target_size("workers") == len(after) <= WORKERS.maximum
            assert len(after) >= WORKERS.minimum or all(states[n] == "failed" for n in gone)
            assert not (seen & (after.keys() - before.keys()))
            seen |= after.keys()
            newly_failed = [n for n, state in sky.states() if state == "failed" != states.get(n)]
            # What could not be had is not paid, so only then may the sum fall.
            assert sky.cloud.spent() >= spent - 1e-9 or newly_failed
            spent = sky.cloud.spent()
        sky.clear()
        sky.forward(120)
        working = [name for name, state in sky.states() if state == "running"]
        assert sorted(working) == sorted(sky.fleet.machines)

    asyncio.run(story())


@settings(max_examples=20)
@given(moves)
def test_the_wire_changes_nothing(plan: list[Move]) -> None:
    async def story(folder: Path) -> None:
        near, far = Sky(), Sky()
        async with Served(far.provider, "socket", folder) as remote:
            for move in plan:
                assert await play(near, near.provider, move) == await play(far, remote, move)
                assert await near.provider.instances("workers") == await remote.instances("workers")
                assert near.states() == far.states()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(story(Path(folder)))


async def test_a_stocked_out_instance_of_a_group_at_its_minimum_can_be_given_back() -> None:
    sky = Sky([WORKERS])
    sky.forward()
    sky.inject(kind="stock-out")
    sky.cloud.delete(["workers-1"])
    sky.cloud.increase("workers", 1)
    sky.forward()
    sky.cloud.delete(["workers-2"])
    assert sky.states() == [("workers-3", "failed")]
    sky.cloud.delete(["workers-3"])
    assert sky.cloud.target("workers") == 0
    sky.clear()
    sky.cloud.increase("workers", 1)
    sky.forward()
    assert sky.states() == [("workers-4", "running")]
    with pytest.raises(RefusedError):
        sky.cloud.delete(["workers-4"])


async def test_what_failed_is_the_first_to_go_when_fewer_are_wanted() -> None:
    sky = Sky([WORKERS])
    sky.forward()
    sky.inject(kind="stock-out", zone="zone-a")
    sky.cloud.increase("workers", 3)
    sky.forward(10)
    assert dict(sky.states())["workers-3"] == "failed"
    sky.cloud.decrease_target("workers", 2)
    assert [name for name, _ in sky.states()] == ["workers-1", "workers-2", "workers-4"]
