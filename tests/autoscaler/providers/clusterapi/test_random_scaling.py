"""Whatever is asked, goes wrong or is changed by others: sizes stay within bounds, and nobody goes
who was not meant.

In virtual time, over a wire on which requests are lost, cut, late and refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.base.clock import LoopClock
from bayplan.client import Access, Client, merge
from bayplan.embedded.apiserver.config import PlaneConfig
from bayplan.embedded.apiserver.controlplane import ControlPlane
from bayplan.embedded.apiserver.request import ADMIN
from bayplan.embedded.inprocess import InProcessTransport, in_process_client
from bayplan.lab import run_virtually
from bayplan.nodegroups import NodeGroupError, NodeRef, Provider, ProviderUnavailableError
from tests.autoscaler.providers.clusterapi.capi import DELETE, MAX, MIN, NAMESPACE, Capi
from tests.autoscaler.providers.clusterapi.providers import opened, seen
from tests.scheduler.faults.wire import Fault, FaultyWire, How, Plan, Target

pytestmark = pytest.mark.whole


WORKERS = "MachineDeployment/default/workers"
LEAST, MOST = 1, 6
WRONG = (How.UNREACHABLE, How.RESET, How.CUT, How.REFUSED, How.FAILED, How.SLOW_ANSWER)


class ScalingRun:
    """A management cluster, and a provider whose connection fails."""

    def __init__(self, capi: Capi, provider: Provider, plan: Plan, faulty: Client) -> None:
        self.capi = capi
        self.faulty = faulty
        self.provider = provider
        self.plan = plan
        self.meant: set[str] = set()
        """Machines that we have asked to go."""

    async def step(self, what: str, count: int) -> None:
        with suppress(NodeGroupError):
            await getattr(self, what)(count)
        await self.check()

    async def buy(self, count: int) -> None:
        await self.provider.increase(WORKERS, count)

    async def want_fewer(self, count: int) -> None:
        await self.provider.decrease_target(WORKERS, count)

    async def give_back(self, count: int) -> None:
        there = [one.provider_id for one in await self.provider.instances(WORKERS)][:count]
        names = {one.rpartition("/")[2].rpartition("_")[2] for one in there}
        self.meant |= names
        await self.provider.delete_nodes(WORKERS, [NodeRef(one) for one in there])

    async def settle(self, count: int) -> None:
        before = set(await self.capi.machines())
        nodes = {name for name, one in (await self.capi.machines()).items() if "status" in one}
        await self.capi.settle(boot=count % 2 == 0)
        gone = before - set(await self.capi.machines())
        assert gone & nodes <= self.meant

    async def resize(self, count: int) -> None:
        """Somebody else makes it larger."""
        size = min(MOST, await self.capi.replicas("MachineDeployment", "workers") + count)
        change = merge({"spec": {"replicas": size}})
        await self.capi.client.patch(
            self.capi.of("MachineDeployment"), NAMESPACE, "workers", change=change
        )

    async def breaks(self, count: int) -> None:
        now = self.plan.clock.monotonic()
        target = Target("", "machine", now, now + 20.0)
        self.plan.faults = [Fault(WRONG[count % len(WRONG)], target, chance=0.5, seconds=2.0)]

    async def mends(self, count: int) -> None:
        self.plan.faults = []

    async def check(self) -> None:
        size = await self.capi.replicas("MachineDeployment", "workers")
        assert LEAST <= size <= MOST


@asynccontextmanager
async def view() -> AsyncIterator[ScalingRun]:
    clock = LoopClock()
    plane = ControlPlane(PlaneConfig(clock=clock, rng=Random(1)))
    await plane.start()
    plan = Plan(clock, Random(1))
    wire = FaultyWire(InProcessTransport(plane, ADMIN), plan)
    async with (
        in_process_client(plane, rng=Random(1)) as sound,
        Client(Access("https://in.process"), transport=wire, clock=clock, rng=Random(1)) as faulty,
    ):
        capi = Capi(sound)
        await capi.install()
        await capi.make("MachineDeployment", "workers", 2, {MIN: str(LEAST), MAX: str(MOST)})
        await capi.settle()
        async with opened(Capi(faulty)) as provider:
            yield ScalingRun(capi, provider, plan, faulty)
    await plane.stop()


steps = st.tuples(
    st.sampled_from(
        ["buy", "want_fewer", "give_back", "settle", "settle", "resize", "breaks", "mends"]
    ),
    st.integers(1, 5),
)


@settings(max_examples=15)
@given(st.lists(steps, min_size=3, max_size=12))
def test_sizes_stay_within_bounds_and_only_those_go_who_were_meant(
    taken: list[tuple[str, int]],
) -> None:
    async def live() -> None:
        async with view() as made:
            for what, count in taken:
                await made.step(what, count)
            made.plan.faults = []
            size = await made.capi.replicas("MachineDeployment", "workers")
            await seen(made.provider, WORKERS, target=size)

    run_virtually(live())


@pytest.mark.virtual
@pytest.mark.parametrize("how", [How.CUT, How.FAILED])
async def test_a_purchase_whose_answer_is_lost_is_not_made_twice(how: How) -> None:
    async with view() as made:
        made.plan.faults = [Fault(how, Target("PATCH", "scale"))]
        with suppress(ProviderUnavailableError):
            await made.provider.increase(WORKERS, 1)
        assert await made.capi.replicas("MachineDeployment", "workers") == 3


@pytest.mark.virtual
async def test_marks_are_taken_back_if_the_size_cannot_be_written() -> None:
    async with view() as made:
        first, *_ = await made.provider.instances(WORKERS)
        made.plan.faults = [Fault(How.REFUSED, Target("PATCH", "scale"), code=403)]
        with pytest.raises(NodeGroupError):
            await made.provider.delete_nodes(WORKERS, [NodeRef(first.provider_id)])
        machines = await made.capi.machines()
        assert not any(
            DELETE in one["metadata"].get("annotations", {}) for one in machines.values()
        )


@pytest.mark.virtual
async def test_an_outage_is_told_and_what_was_known_stays() -> None:
    async with view() as made:
        made.plan.faults = [Fault(How.UNREACHABLE, Target())]
        with pytest.raises(ProviderUnavailableError):
            await made.provider.increase(WORKERS, 1)
        assert await made.provider.target_size(WORKERS) == 2
        assert len(await made.provider.instances(WORKERS)) == 2
        await made.provider.refresh()


@pytest.mark.virtual
async def test_a_management_cluster_that_never_answers_is_told_in_time() -> None:
    async with view() as made:
        made.plan.faults = [Fault(How.UNREACHABLE, Target("", "machinesets"))]
        with pytest.raises(ProviderUnavailableError, match="Cluster API's objects cannot be read"):
            async with opened(Capi(made.faulty)):
                pass
