"""The agent on a wire that fails: it goes on, and in the end every node says what it should."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from bayplan.client import Access, Client
from bayplan.embedded.apiserver.request import ADMIN
from bayplan.embedded.inprocess import InProcessTransport
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.kube.nodes import Node
from bayplan.lab import VirtualLab
from bayplan.node.deciding import Settings
from tests.node.running import EBS_KEY, csinode, limits_of, node, publishing, retype
from tests.scheduler.faults.wire import Fault, FaultyWire, How, Plan, Target

NAMES = [f"n{number}" for number in range(20)]
TYPES = {"m5.large": 26, "m5d.large": 25, "m4.large": 39, "c7a.48xlarge": 127, "zz9": 26}
PATCH = Target("PATCH", r"nodes/")
FAULTS = {
    "conflict": Fault(How.REFUSED, PATCH, code=409),
    "forbidden": Fault(How.REFUSED, PATCH, code=403),
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


async def _weathers(faults: list[Fault], seed: int) -> None:
    rng = Random(seed)
    spec = parse_cluster(b"seed: 1\n", "empty", Path())
    async with VirtualLab(spec) as lab:
        client = lab.client()
        for name in NAMES:
            await client.create(node(name, "m5.large"))
            await client.create(csinode(name, ebs_csi_aws_com=None))
        wire = FaultyWire(
            InProcessTransport(lab.plane, ADMIN), Plan(lab.clock, Random(seed), faults)
        )
        by = Client(Access("https://in.process"), transport=wire, clock=lab.clock, rng=rng)
        async with publishing(client, Settings(csi_nodes=True), by=by) as at:
            last = await _live(lab, client, rng)
            # The longest back-off, and as much again for what is late.
            await lab.forward(900)
            found = {one.name: one for one in (await client.list(Node)).items}
            said = {name: limits_of(one.status.allocatable) for name, one in found.items()}
            assert said == {name: {EBS_KEY: str(TYPES[last[name]])} for name in found}
            assert at.count("waiting") == 0
        await by.close()


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
