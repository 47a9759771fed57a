"""Whatever is asked, goes wrong or is changed by others: sizes stay within bounds, and nobody goes
who was not meant.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from bayplan.nodegroups import NodeGroupError, NodeRef, Provider
from tests.autoscaler.providers.aws.account import Account
from tests.autoscaler.providers.aws.conftest import Opened
from tests.autoscaler.providers.aws.wire import Wire

pytestmark = pytest.mark.whole


LEAST, MOST = 1, 5
TROUBLES = [("Throttling", 400), ("InternalFailure", 500), ("AccessDenied", 403)]
ACTIONS = ["SetDesiredCapacity", "TerminateInstanceInAutoScalingGroup", "DescribeAutoScalingGroups"]


class ScalingRun:
    """A node group, its provider, and the faults between them."""

    def __init__(self, account: Account, wire: Wire, provider: Provider, rng: Random) -> None:
        self.account = account
        self.wire = wire
        self.provider = provider
        self.rng = rng
        self.seen = set(account.instances())
        self.meant: set[str] = set()

    async def step(self) -> None:
        steps = [self.buy, self.want_fewer, self.give_back, self.refresh, self.disturb, self.mend]
        with suppress(NodeGroupError):
            await self.rng.choice(steps)()
        there = set(self.account.instances())
        assert self.seen - there <= self.meant
        self.seen = there
        assert LEAST <= self.account.size() <= MOST

    async def buy(self) -> None:
        await self.provider.increase("workers", self.rng.randint(1, 3))

    async def want_fewer(self) -> None:
        await self.provider.decrease_target("workers", self.rng.randint(1, 3))

    async def give_back(self) -> None:
        there = [one.provider_id for one in await self.provider.instances("workers")]
        going = self.rng.sample(there, min(len(there), self.rng.randint(1, 3)))
        self.meant |= {one.rpartition("/")[2] for one in going}
        await self.provider.delete_nodes("workers", [NodeRef(one) for one in going])

    async def refresh(self) -> None:
        await self.provider.refresh()

    async def disturb(self) -> None:
        code, status = self.rng.choice(TROUBLES)
        self.wire.fails(self.rng.choice(ACTIONS), code, status, times=self.rng.randint(1, 2))

    async def mend(self) -> None:
        self.wire.troubles.clear()


@pytest.mark.parametrize("seed", range(4))
async def test_sizes_stay_within_bounds_and_only_those_go_who_were_meant(
    account: Account, wire: Wire, opened: Opened, seed: int
) -> None:
    account.group(size=2, least=LEAST, most=MOST + 3)
    async with opened(f"{LEAST}:{MOST}:workers") as provider:
        view = ScalingRun(account, wire, provider, Random(seed))
        for _ in range(20):
            await view.step()
        await view.mend()
        await opened.later(provider)
        assert await provider.target_size("workers") == account.size()
        assert len(await provider.instances("workers")) == account.size()
