"""Random scaling with faults and restarts: sizes stay within limits, and only those instances go
that were to be deleted.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress
from random import Random

import pytest

from bayplan.nodegroups import NodeGroupError, NodeRef, Provider
from tests.autoscaler.providers.azure.conftest import Opened
from tests.autoscaler.providers.azure.fake_azure import FakeAzure

pytestmark = pytest.mark.whole

LEAST, MOST = 1, 6
ERRORS = [("TooManyRequests", 429), ("InternalServerError", 500), ("AuthorizationFailed", 403)]
OPERATIONS = ["list", "get", "vms", "resize", "delete", "view"]


class ScalingRun:
    """A scale set, its provider, and the faults between them."""

    def __init__(self, azure: FakeAzure, opened: Opened, rng: Random) -> None:
        self.azure = azure
        self.made = azure.scale_set(size=2)
        self.opened = opened
        self.rng = rng
        self.stack = AsyncExitStack()
        self.provider: Provider
        self.chosen: set[str] = set()

    async def restart(self) -> None:
        await self.stack.aclose()
        self.azure.troubles.clear()
        opening = self.opened(f"{LEAST}:{MOST}:workers")
        self.provider = await self.stack.enter_async_context(opening)

    async def step(self) -> None:
        steps = [
            self.scale_up,
            self.decrease,
            self.delete,
            self.refresh,
            self.disturb,
            self.settle,
            self.restart,
        ]
        with suppress(NodeGroupError):
            await self.rng.choice(steps)()
        assert {one.partition("/")[2] for one in self.azure.deleted} <= self.chosen
        assert LEAST <= self.made.capacity <= MOST
        assert self.azure.lowered == []

    async def scale_up(self) -> None:
        self.made.never_comes = self.rng.choice([0, 0, 0, 1])
        await self.provider.increase("workers", self.rng.randint(1, 3))

    async def decrease(self) -> None:
        await self.provider.decrease_target("workers", self.rng.randint(1, 2))

    async def delete(self) -> None:
        listed = [one.provider_id for one in await self.provider.instances("workers")]
        going = self.rng.sample(listed, min(len(listed), self.rng.randint(1, 3)))
        self.chosen |= {one.rpartition("/")[2] for one in going}
        await self.provider.delete_nodes("workers", [NodeRef(one) for one in going])

    async def refresh(self) -> None:
        await self.opened.later(self.provider, self.rng.choice([1.0, 61.0, 400.0]))

    async def disturb(self) -> None:
        code, status = self.rng.choice(ERRORS)
        self.azure.fails(self.rng.choice(OPERATIONS), code, status, times=self.rng.randint(1, 5))

    async def settle(self) -> None:
        self.azure.troubles.clear()
        self.azure.settle()


@pytest.mark.parametrize("seed", range(8))
async def test_sizes_stay_within_limits_and_no_other_instance_is_deleted(
    azure: FakeAzure, opened: Opened, seed: int
) -> None:
    run = ScalingRun(azure, opened, Random(seed))
    await run.restart()
    for _ in range(60):
        await run.step()
    await run.settle()
    await opened.later(run.provider, 400.0)
    missing = run.made.capacity - len(run.made.active())
    assert run.made.capacity - missing <= await run.provider.target_size("workers")
    assert await run.provider.target_size("workers") <= run.made.capacity
    await run.restart()
    assert await run.provider.target_size("workers") == run.made.capacity
    assert len(azure.deleted) == len(set(azure.deleted))
    await run.stack.aclose()
