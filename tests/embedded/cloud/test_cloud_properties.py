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
from tests.embedded.cloud.clouds import WORKERS, ServedProvider, SimulatedCloud

MOVES = ["increase", "delete", "decrease", "stock-out", "quota", "never-registers", "well", "wait"]
Move = tuple[str, int]
moves = st.lists(st.tuples(st.sampled_from(MOVES), st.integers(-1, 6)), max_size=25)


async def play(simulated: SimulatedCloud, provider: Provider, move: Move) -> str:
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
        simulated.forward(20 * abs(number))
    elif name == "well":
        simulated.clear()
    else:
        simulated.inject(kind=name)
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
        simulated, seen, spent = SimulatedCloud([WORKERS]), set[str](), 0.0
        for move in plan:
            before = dict(simulated.cloud.instances)
            states = dict(simulated.states())
            await play(simulated, simulated.provider, move)
            after = simulated.cloud.instances
            gone = [name for name in before if name not in after]
            assert await simulated.provider.target_size("workers") == len(after) <= WORKERS.maximum
            assert len(after) >= WORKERS.minimum or all(states[n] == "failed" for n in gone)
            assert not (seen & (after.keys() - before.keys()))
            seen |= after.keys()
            newly_failed = [
                n for n, state in simulated.states() if state == "failed" != states.get(n)
            ]
            # What could not be had is not paid, so only then may the sum fall.
            assert simulated.cloud.spent() >= spent - 1e-9 or newly_failed
            spent = simulated.cloud.spent()
        simulated.clear()
        simulated.forward(120)
        working = [name for name, state in simulated.states() if state == "running"]
        assert sorted(working) == sorted(simulated.fleet.machines)

    asyncio.run(story())


@settings(max_examples=20)
@given(moves)
def test_the_wire_changes_nothing(plan: list[Move]) -> None:
    async def story(folder: Path) -> None:
        near, far = SimulatedCloud(), SimulatedCloud()
        async with ServedProvider(far.provider, "socket", folder) as remote:
            for move in plan:
                assert await play(near, near.provider, move) == await play(far, remote, move)
                assert await near.provider.instances("workers") == await remote.instances("workers")
                assert near.states() == far.states()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(story(Path(folder)))


async def test_a_stocked_out_instance_of_a_group_at_its_minimum_can_be_given_back() -> None:
    simulated = SimulatedCloud([WORKERS])
    simulated.forward()
    simulated.inject(kind="stock-out")
    simulated.cloud.delete(["workers-1"])
    simulated.cloud.increase("workers", 1)
    simulated.forward()
    simulated.cloud.delete(["workers-2"])
    assert simulated.states() == [("workers-3", "failed")]
    simulated.cloud.delete(["workers-3"])
    assert simulated.cloud.target("workers") == 0
    simulated.clear()
    simulated.cloud.increase("workers", 1)
    simulated.forward()
    assert simulated.states() == [("workers-4", "running")]
    with pytest.raises(RefusedError):
        simulated.cloud.delete(["workers-4"])


async def test_what_failed_is_the_first_to_go_when_fewer_are_wanted() -> None:
    simulated = SimulatedCloud([WORKERS])
    simulated.forward()
    simulated.inject(kind="stock-out", zone="zone-a")
    simulated.cloud.increase("workers", 3)
    simulated.forward(10)
    assert dict(simulated.states())["workers-3"] == "failed"
    simulated.cloud.decrease_target("workers", 2)
    assert [name for name, _ in simulated.states()] == ["workers-1", "workers-2", "workers-4"]
