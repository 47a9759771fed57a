"""Whatever goes wrong, nothing is bought twice, nothing above a maximum, and in the end all run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.client import Access, Client
from bayplan.embedded.apiserver.request import ADMIN
from bayplan.embedded.control.faults import Fault
from bayplan.embedded.inprocess import InProcessTransport
from bayplan.embedded.simulation.clusterfile import ClusterSpec, parse_cluster
from bayplan.lab import VirtualLab
from bayplan.nodegroups import Provider
from tests.autoscaler.faults.faulty_provider import FaultPeriod, FaultyProvider, ProviderFault
from tests.autoscaler.running_autoscaler import (
    RunningCluster,
    all_run,
    ended,
    led,
    virtual_running_cluster,
)
from tests.scheduler.faults import wire

pytestmark = pytest.mark.whole


CLUSTER = """
seed: 9
csiDrivers: [{name: disk.csi.example.com, topologyKey: ""}]
storageClasses: [{name: disks, driver: disk.csi.example.com, default: true}]
instanceTypes: [{name: large, cpu: 16, memory: 64Gi, price: 0.8}]
nodeGroups:
  - {name: first, instanceType: large, count: 0, max: 4, start: 45s,
     drivers: [{name: disk.csi.example.com, limit: 8, delay: 15s}]}
"""
SECOND = """
  - {name: second, instanceType: large, count: 0, max: 4, start: 45s,
     drivers: [{name: disk.csi.example.com, limit: 8, delay: 15s}]}
"""
LEDGER = """
workloads: [{file: workloads/ledger.yaml}]
"""
STORIES = Path(__file__).parents[3] / "examples" / "stories"
SURE = AutoscalerOptions(scale_down_enabled=False)


def spec(*, second: bool = False) -> ClusterSpec:
    text = CLUSTER + (SECOND.lstrip("\n") if second else "") + LEDGER
    return parse_cluster(text.encode(), "cluster", STORIES)


def moody(*spells: FaultPeriod) -> Callable[[VirtualLab, Provider], Provider]:
    return lambda lab, provider: FaultyProvider(provider, lab.clock, spells)


def check(cluster: RunningCluster, created_instances: int = 3) -> None:
    """No more was bought than is needed, and no group was ever above its maximum."""
    assert len(cluster.created_instances) == created_instances
    assert cluster.most <= 4


@pytest.mark.virtual
@pytest.mark.parametrize("asked", ["", "refresh", "groups", "target_size", "instances", "template"])
async def test_a_cloud_that_does_not_answer_for_a_while_is_asked_again(asked: str) -> None:
    spell = FaultPeriod(ProviderFault.REFUSES, asked, end=300.0)
    async with virtual_running_cluster(spec(), SURE, wrap=moody(spell)) as cluster:
        await cluster.lab.run(290)
        assert not cluster.created_instances or asked == "template"
        await cluster.until(all_run(20))
        check(cluster)


@pytest.mark.virtual
@pytest.mark.parametrize("asked", ["groups", "instances", "template", "increase"])
async def test_what_nobody_thought_of_ends_one_loop_and_not_the_next(asked: str) -> None:
    spell = FaultPeriod(ProviderFault.BREAKS, asked, end=100.0)
    async with virtual_running_cluster(spec(), SURE, wrap=moody(spell)) as cluster:
        await cluster.until(all_run(20))
        check(cluster)


@pytest.mark.virtual
@pytest.mark.parametrize("asked", ["groups", "instances", "increase"])
async def test_a_cloud_that_hangs_holds_one_loop_up_and_not_the_next(asked: str) -> None:
    spell = FaultPeriod(ProviderFault.HANGS, asked, end=100.0)
    async with virtual_running_cluster(spec(), SURE, wrap=moody(spell)) as cluster:
        await cluster.until(all_run(20))
        check(cluster)


@pytest.mark.virtual
async def test_a_purchase_whose_answer_is_lost_is_not_made_again() -> None:
    spell = FaultPeriod(ProviderFault.LOSES, "increase", end=200.0)
    async with virtual_running_cluster(spec(), SURE, wrap=moody(spell)) as cluster:
        await cluster.until(all_run(20))
        check(cluster)
        assert any(
            "in a mood" in text for text in await cluster.event_notes("FailedToScaleUpGroup")
        )


@pytest.mark.virtual
async def test_what_is_on_its_way_in_a_group_that_stops_answering_is_not_bought_elsewhere() -> None:
    spell = FaultPeriod(ProviderFault.REFUSES, "instances", start=15.0, end=40.0, group="first")
    wrap = moody(FaultPeriod(ProviderFault.REFUSES, "increase", end=5.0, group="second"), spell)
    async with virtual_running_cluster(spec(second=True), SURE, wrap=wrap) as cluster:
        await cluster.until(all_run(20))
        check(cluster)


@pytest.mark.virtual
async def test_instances_that_are_listed_for_long_after_they_were_given_back_hold_nobody_up() -> (
    None
):
    lists_on = FaultPeriod(ProviderFault.FORGETS, "delete_nodes", end=1800.0)
    async with virtual_running_cluster(spec(second=True), SURE, wrap=moody(lists_on)) as cluster:
        faults = cluster.lab.simulation.faults
        faults.inject("none left", Fault(kind="stock-out", group="first"))
        await cluster.lab.run(900)
        running = [name for name in await cluster.nodes() if name.startswith("second")]
        assert len(running) == 3


@pytest.mark.virtual
async def test_a_stocked_out_group_rests_and_another_helps() -> None:
    async with virtual_running_cluster(spec(second=True), SURE) as cluster:
        faults = cluster.lab.simulation.faults
        faults.inject("none left", Fault(kind="stock-out", group="first"))
        faults.inject("none left here", Fault(kind="stock-out", group="second"))
        await cluster.lab.run(100)
        faults.clear("none left here")
        await cluster.until(all_run(20))
        running = [name for name in await cluster.nodes() if name.startswith("second")]
        assert len(running) == 3
        assert cluster.most <= 4
        assert any("OUT_OF_STOCK" in text for text in await cluster.event_notes("ScaleUpFailed"))
        left = cluster.lab.simulation.cloud.instances.values()
        assert [one.state for one in left] == ["running"] * 3


@pytest.mark.virtual
async def test_a_quota_is_waited_out() -> None:
    async with virtual_running_cluster(spec(), SURE) as cluster:
        cluster.lab.simulation.faults.inject("quota", Fault(kind="quota"))
        await cluster.lab.run(400)
        assert not cluster.created_instances
        assert await cluster.event_notes("FailedToScaleUpGroup")
        status = (await cluster.status())["status"]
        assert "errorCode: QUOTA_EXCEEDED" in status
        assert "status: Backoff" in status
        cluster.lab.simulation.faults.clear("quota")
        await cluster.until(all_run(20))
        check(cluster)


@pytest.mark.virtual
async def test_instances_that_never_register_are_given_back_and_replaced() -> None:
    async with virtual_running_cluster(spec(), SURE) as cluster:
        cluster.lab.simulation.faults.inject("lost", Fault(kind="never-registers"))
        await cluster.lab.run(600)
        assert (
            len(cluster.created_instances) == 3
        )  # they are on their way, and nothing is bought meanwhile
        cluster.lab.simulation.faults.clear("lost")
        await cluster.until(all_run(20))
        check(cluster, created_instances=6)
        assert len(await cluster.event_notes("DeleteUnregistered")) == 3
        assert await cluster.event_notes("ScaleUpTimedOut")


@pytest.mark.virtual
@pytest.mark.parametrize("moment", [15, 35, 57, 65, 72])
async def test_a_restart_in_the_middle_of_a_scale_up_buys_nothing_more(moment: float) -> None:
    async with virtual_running_cluster(spec(), SURE, leads=False) as cluster:
        first = led(cluster, cluster.lab.client())
        await cluster.lab.run(moment)
        assert len(cluster.created_instances) == 3
        await ended(first)
        second = led(cluster, cluster.lab.client())
        await cluster.until(all_run(20))
        await ended(second)
        check(cluster)


@pytest.mark.virtual
async def test_a_restart_before_the_answer_to_a_purchase_buys_nothing_more() -> None:
    wrap = moody(FaultPeriod(ProviderFault.LOSES, "increase"))
    async with virtual_running_cluster(spec(), SURE, leads=False, wrap=wrap) as cluster:
        for _ in range(4):
            task = led(cluster, cluster.lab.client())
            await cluster.lab.forward(15)
            await ended(task)
        check(cluster)


@pytest.mark.virtual
@pytest.mark.parametrize("how", [wire.How.UNREACHABLE, wire.How.REFUSED, wire.How.CUT])
async def test_an_api_server_that_is_away_holds_nobody_up_for_good(how: wire.How) -> None:
    async with virtual_running_cluster(spec(), SURE, leads=False) as cluster:
        lab = cluster.lab
        fault = wire.Fault(how, wire.Target(start=20.0, end=200.0), code=503)
        plan = wire.Plan(lab.clock, Random(1), [fault])
        transport = wire.FaultyWire(InProcessTransport(lab.plane, ADMIN), plan)
        access = Access("https://in.process")
        async with Client(access, transport=transport, clock=lab.clock, rng=Random(2)) as client:
            task = led(cluster, client)
            await cluster.until(all_run(20))
            await ended(task)
        check(cluster)
