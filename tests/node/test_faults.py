"""The agent on a wire that fails: it goes on, and in the end every node says what it should."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from bayplan.client import Access, Client, Untyped
from bayplan.client.resources import EVENTS
from bayplan.embedded.apiserver.request import ADMIN
from bayplan.embedded.inprocess import InProcessTransport
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.kube.nodes import Node
from bayplan.lab import VirtualLab
from bayplan.node.decision import AttachLimitSettings
from tests.node.running_agent import (
    EBS_KEY,
    RunningAgent,
    csinode,
    limits_of,
    node,
    publishing,
    retype,
)
from tests.scheduler.faults.wire import Fault, FaultyWire, How, Plan, Target

pytestmark = pytest.mark.whole


NAMES = [f"n{number}" for number in range(20)]
TYPES = {"m5.large": 26, "m5d.large": 25, "m4.large": 39, "c7a.48xlarge": 127, "zz9": 26}
PATCH = Target("PATCH", r"nodes/")
FAULTS = {
    "conflict": Fault(How.REFUSED, PATCH, code=409),
    "forbidden": Fault(How.REFUSED, PATCH, code=403),
    "not found": Fault(How.REFUSED, PATCH, code=404),
    "broken": Fault(How.REFUSED, PATCH, code=500),
    "busy": Fault(How.REFUSED, PATCH, code=429, retry_after=1),
    "cut": Fault(How.CUT, PATCH),
    "reset": Fault(How.RESET, PATCH),
    "late": Fault(How.LATE, PATCH),
    "unreachable": Fault(How.UNREACHABLE, Target()),
    "watches lost": Fault(How.LOST, Target()),
    "failed though done": Fault(How.FAILED, PATCH, code=500),
}


def strikes(fault: Fault, start: float, end: float, chance: float = 1.0) -> Fault:
    target = Target(fault.target.method, fault.target.path, start, end)
    return Fault(fault.how, target, fault.code, fault.retry_after, chance=chance)


@pytest.mark.virtual
@pytest.mark.parametrize("name", FAULTS)
async def test_whatever_fails_for_a_while_is_made_good_afterwards(name: str) -> None:
    await _weathers([strikes(FAULTS[name], 5, 60)], seed=1)


@pytest.mark.virtual
@pytest.mark.parametrize("seed", range(10))
async def test_any_mixture_of_faults_is_weathered(seed: int) -> None:
    rng = Random(seed)
    faults = [
        strikes(fault, start := rng.uniform(0, 200), start + rng.uniform(5, 60), rng.random())
        for fault in FAULTS.values()
        for _ in range(2)
    ]
    await _weathers(faults, seed)


class _Lab(NamedTuple):
    lab: VirtualLab
    client: Client
    at: RunningAgent

    async def limits(self) -> dict[str, dict[str, str]]:
        """What every node says."""
        nodes = (await self.client.list(Node)).items
        return {one.name: limits_of(one.status.allocatable) for one in nodes}

    async def told(self, reason: str) -> list[str]:
        """The uids of nodes of which events with that reason tell."""
        events = (await self.client.list(EVENTS, "default")).items
        return [one.regarding.uid for one in events if one.reason == reason]


@asynccontextmanager
async def _at_work(
    faults: list[Fault], *there: Untyped, rng: Random | None = None, csi_nodes: bool = False
) -> AsyncIterator[_Lab]:
    """An agent behind a wire with faults, and what is there when it comes."""
    async with VirtualLab(parse_cluster(b"seed: 1\n", "empty", Path())) as lab:
        client, rng = lab.client(), rng or Random(1)
        for one in there:
            await client.create(one)
        wire = InProcessTransport(lab.plane, ADMIN)
        faulty = FaultyWire(wire, Plan(lab.clock, Random(rng.random()), faults))
        by = Client(Access("https://in.process"), transport=faulty, clock=lab.clock, rng=rng)
        async with publishing(client, AttachLimitSettings(csi_nodes=csi_nodes), by=by) as at:
            yield _Lab(lab, client, at)
        await by.close()


@pytest.mark.virtual
async def test_a_new_type_does_not_wait_for_what_failed_before() -> None:
    forbidden = Fault(How.REFUSED, Target("PATCH", "csinodes/"), code=403)
    silent = csinode("a", ebs_csi_aws_com=None)
    async with _at_work([forbidden], node("a", "m5.large"), silent, csi_nodes=True) as run:
        await run.lab.forward(3600)
        assert await run.limits() == {"a": {EBS_KEY: "26"}}
        await retype(run.client, "a", "m4.large")
        await run.lab.forward(0.5)
        assert await run.limits() == {"a": {EBS_KEY: "39"}}


@pytest.mark.virtual
async def test_a_new_node_does_not_wait_for_what_failed_with_the_old_one_of_its_name() -> None:
    forbidden = strikes(FAULTS["forbidden"], 0, 1800)
    async with _at_work([forbidden], node("a", "zz9")) as run:
        await run.lab.forward(1801)
        await run.client.delete(Node, "a")
        await run.client.create(node("a", "zz9"))
        await run.lab.forward(2)
        assert await run.limits() == {"a": {EBS_KEY: "26"}}
        assert len(set(await run.told("UnknownInstanceType"))) == 2


@pytest.mark.virtual
async def test_a_node_that_is_not_found_is_tried_again_and_nothing_is_told_of_it() -> None:
    missing = strikes(FAULTS["not found"], 0, 30)
    async with _at_work([missing], node("a", "m5.large")) as run:
        await run.lab.forward(20)
        assert await run.told("AttachLimitPublished") == []
        await run.lab.forward(60)
        assert await run.limits() == {"a": {EBS_KEY: "26"}}
        assert len(await run.told("AttachLimitPublished")) == 1


@pytest.mark.virtual
async def test_a_node_that_takes_long_keeps_no_other_waiting() -> None:
    slow = Fault(How.SLOW_ANSWER, Target("PATCH", "nodes/a/", start=1), seconds=50)
    async with _at_work([slow], node("a", "m5.large"), node("b", "m5.large")) as run:
        await run.lab.forward(2)
        await retype(run.client, "a", "m4.large")
        await run.lab.forward(1)
        await retype(run.client, "b", "m4.large")
        await run.lab.forward(1)
        assert (await run.limits())["b"] == {EBS_KEY: "39"}


async def _weathers(faults: list[Fault], seed: int) -> None:
    rng = Random(seed)
    there = [node(name, "m5.large") for name in NAMES]
    there += [csinode(name, ebs_csi_aws_com=None) for name in NAMES]
    async with _at_work(faults, *there, rng=rng, csi_nodes=True) as run:
        last = await _live(run.lab, run.client, rng)
        # The longest back-off, and as much again for what is late.
        await run.lab.forward(900)
        assert await run.limits() == {name: {EBS_KEY: str(TYPES[last[name]])} for name in NAMES}
        assert run.at.count("waiting") == 0


async def _live(lab: VirtualLab, client: Client, rng: Random) -> dict[str, str]:
    """Nodes change their types, go, and come, for some minutes."""
    last = dict.fromkeys(NAMES, "m5.large")
    for _ in range(60):
        await lab.forward(rng.uniform(0, 8))
        name, kind = rng.choice(sorted(last)), rng.choice(sorted(TYPES))
        if rng.random() < 0.15:
            await client.delete(Node, name)
            await client.create(node(name, kind))
        else:
            await retype(client, name, kind)
        last[name] = kind
    return last
