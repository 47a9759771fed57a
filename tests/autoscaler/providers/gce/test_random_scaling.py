"""Whatever is requested, fails or is restarted: sizes stay within bounds, and only named instances
are deleted, each counted once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random

import pytest

from bayplan.nodegroups import NodeGroupError, NodeRef, Provider
from tests.autoscaler.providers.gce.conftest import OpenedGce
from tests.autoscaler.providers.gce.fake_gce import FakeGce
from tests.autoscaler.providers.gce.project import REGION, ZONE, FakeMig

pytestmark = pytest.mark.whole


LEAST, MOST = 1, 6
ERRORS = [(429, "rateLimitExceeded"), (503, ""), (403, "forbidden"), (409, "resourceInUse")]
METHODS = ["resize", "deleteInstances", "get", "listManagedInstances", "getOperation"]
STOCK = {"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "no stock"}


class GceScalingRun:
    """A group, its provider, and the faults between them."""

    def __init__(self, gce: FakeGce, group: FakeMig, rng: Random) -> None:
        self.gce = gce
        self.group = group
        self.rng = rng
        self.named: set[str] = set()
        self.seen = self.active()

    def active(self) -> set[str]:
        return {one.provider_id for one in self.group.active()}

    async def step(self, provider: Provider) -> None:
        steps: list[Callable[[Provider], Awaitable[None]]] = [
            self.increase, self.decrease, self.delete, self.refresh, self.disturb, self.mend,
            self.settle, self.run_out,
        ]  # fmt: skip
        with suppress(NodeGroupError):
            await self.rng.choice(steps)(provider)
        there = self.active()
        assert self.seen - there <= self.named
        self.seen = there
        assert LEAST <= self.group.size <= MOST
        assert self.group.size == len(there)

    async def increase(self, provider: Provider) -> None:
        await provider.increase(self.group.id, self.rng.randint(1, 3))

    async def decrease(self, provider: Provider) -> None:
        await provider.decrease_target(self.group.id, self.rng.randint(1, 3))

    async def delete(self, provider: Provider) -> None:
        known = sorted({one.provider_id for one in await provider.instances(self.group.id)})
        leaving = sorted(self.named)
        some = self.rng.sample(known, min(len(known), self.rng.randint(1, 3)))
        some += self.rng.sample(leaving, min(len(leaving), 1))
        self.named |= set(some)
        await provider.delete_nodes(self.group.id, [NodeRef(one) for one in some])

    async def refresh(self, provider: Provider) -> None:
        await provider.refresh()

    async def disturb(self, _: Provider) -> None:
        method, times = self.rng.choice(METHODS), self.rng.randint(1, 5)
        if method in ("resize", "deleteInstances") and self.rng.random() < 0.5:
            self.gce.loses(method, times=times)
        else:
            self.gce.fails(method, *self.rng.choice(ERRORS), times=times)

    async def mend(self, _: Provider) -> None:
        self.gce.faults.clear()
        self.gce.project.errors = []

    async def settle(self, _: Provider) -> None:
        self.group.settle()

    async def run_out(self, _: Provider) -> None:
        self.gce.project.errors = [STOCK]


@pytest.mark.parametrize("seed", range(6))
async def test_sizes_stay_within_bounds_and_only_named_instances_are_deleted(
    gce: FakeGce, opened: OpenedGce, seed: int
) -> None:
    group = gce.project.group(size=2, location=REGION if seed % 2 else ZONE)
    run = GceScalingRun(gce, group, Random(seed))
    for _ in range(4):
        gce.faults.clear()
        async with opened(f"{LEAST}:{MOST}:{group.id}") as provider:
            for _ in range(15):
                await run.step(provider)
            await run.mend(provider)
            await opened.later(provider)
            assert await provider.target_size(group.id) == group.size
            there = {one.provider_id for one in await provider.instances(group.id)}
            assert there == {one.provider_id for one in group.instances}
