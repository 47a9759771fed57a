"""Nodes whose CSI driver does not register: which are removed, how many, and after restarts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bayplan.autoscaler.actuation.missing_drivers import is_driver_broken
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.base.clock import Clock
from bayplan.client import merge
from bayplan.embedded.control.faults import Fault
from bayplan.embedded.simulation.clusterfile import ClusterSpec, parse_cluster
from bayplan.kube.storage import CSINode
from bayplan.lab import VirtualLab, run_virtually
from bayplan.nodegroups import NodeRef, Provider
from tests.autoscaler.faults.faulty_provider import FaultyProvider
from tests.autoscaler.faults.test_faults import STORIES
from tests.autoscaler.running_autoscaler import ended, led, virtual_running_cluster

pytestmark = [pytest.mark.whole, pytest.mark.virtual]

CLUSTER = """
seed: 9
csiDrivers: [{{name: disk.csi.example.com, topologyKey: ""}}]
storageClasses: [{{name: disks, driver: disk.csi.example.com, default: true}}]
instanceTypes: [{{name: large, cpu: 16, memory: 64Gi, price: 0.8}}]
nodeGroups:
  - {{name: first, instanceType: large, count: {count}, min: 0, max: 9, start: 5s,
     drivers: [{{name: disk.csi.example.com, limit: 8, delay: 15s}}]}}
"""
CALM = AutoscalerOptions(scale_down_enabled=False)
HOUR = 3600


def cluster_of(count: int) -> ClusterSpec:
    return parse_cluster(CLUSTER.format(count=count).encode(), "cluster", STORIES)


def without_driver(*numbers: int) -> dict[str, Fault]:
    return {f"f{n}": Fault(kind="no-driver", node=f"first-{n}") for n in numbers}


@dataclass(slots=True)
class Removals:
    """What the cloud was asked to remove, and when."""

    calls: list[tuple[datetime, str]] = field(default_factory=list)

    @property
    def nodes(self) -> list[str]:
        return [name for _, name in self.calls]

    def most_within(self, interval: timedelta) -> int:
        """Return the most removals in any interval."""
        moments = [moment for moment, _ in self.calls]
        return max(
            (sum(one <= other < one + interval for other in moments) for one in moments), default=0
        )


class StuckProvider(FaultyProvider):
    """A provider that lowers the target size at every call, and may never remove the node."""

    removals: Removals
    clock: Clock
    removes: bool
    lowered: int = 0

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        self.removals.calls += [(self.clock.now(), one.name) for one in nodes]
        if self.removes:
            await self._inner.delete_nodes(group, nodes)
        else:
            self.lowered += len(nodes)

    async def target_size(self, group: str) -> int:
        return await self._inner.target_size(group) - self.lowered


def watched(removals: Removals, *, removes: bool) -> Callable[[VirtualLab, Provider], Provider]:
    def wrap(lab: VirtualLab, inner: Provider) -> Provider:
        provider = StuckProvider(inner, lab.clock, ())
        provider.removals, provider.clock, provider.removes = removals, lab.clock, removes
        return provider

    return wrap


async def play(
    nodes: int,
    bad: Sequence[int],
    *,
    removes: bool = True,
    restarts: Sequence[int] = (),
    options: AutoscalerOptions = CALM,
) -> Removals:
    """Run a group for three hours with some nodes whose driver never registers."""
    removals = Removals()
    wrap = watched(removals, removes=removes)
    async with virtual_running_cluster(
        cluster_of(nodes), options, wrap=wrap, leads=False
    ) as cluster:
        for name, fault in without_driver(*bad).items():
            cluster.lab.simulation.faults.inject(name, fault)
        task = led(cluster, cluster.lab.client())
        for moment in sorted(restarts):
            await cluster.lab.run(moment)
            await ended(task)
            task = led(cluster, cluster.lab.client())
        await cluster.lab.run(3 * HOUR)
        await ended(task)
    return removals


async def test_a_node_without_its_driver_is_removed_once() -> None:
    assert (await play(5, [2])).nodes == ["first-2"]


async def test_a_group_is_not_lowered_twice_while_the_cloud_does_not_remove_the_node() -> None:
    assert (await play(5, [2], removes=False)).nodes == ["first-2"]


async def test_a_group_is_not_lowered_twice_by_two_leaders() -> None:
    restarts = range(600, 2 * HOUR, 200)
    assert (await play(5, [2], removes=False, restarts=restarts)).nodes == ["first-2"]


async def test_nodes_are_removed_one_by_one() -> None:
    removals = await play(7, [2, 4, 6])
    assert sorted(removals.nodes) == ["first-2", "first-4", "first-6"]
    assert removals.most_within(timedelta(minutes=10)) == 1


async def test_more_nodes_are_removed_at_once_if_the_flags_say_so() -> None:
    options = AutoscalerOptions(scale_down_enabled=False, csi_driver_max_removals=2)
    removals = await play(7, [2, 4, 6], options=options)
    assert sorted(removals.nodes) == ["first-2", "first-4", "first-6"]
    assert removals.most_within(timedelta(minutes=10)) == 2


async def test_no_node_is_removed_if_most_lack_the_driver() -> None:
    assert not (await play(5, [1, 2, 3])).calls


@pytest.mark.parametrize(
    ("ready", "missing", "broken"),
    [(0, 1, False), (0, 2, True), (1, 2, True), (2, 2, False), (4, 1, False)],
)
def test_a_driver_is_broken_if_most_of_several_nodes_lack_it(
    ready: int, missing: int, broken: bool
) -> None:
    assert is_driver_broken(ready, missing) is broken


async def test_a_restarted_driver_is_not_missing_after_a_restart_of_the_autoscaler() -> None:
    removals = Removals()
    wrap = watched(removals, removes=True)
    async with virtual_running_cluster(cluster_of(2), CALM, wrap=wrap, leads=False) as cluster:
        task = led(cluster, cluster.lab.client())
        await cluster.lab.run(300)
        await ended(task)
        gone = merge({"spec": {"drivers": []}})
        await cluster.client.patch(CSINode, "first-1", change=gone)
        task = led(cluster, cluster.lab.client())
        await cluster.lab.run(2 * HOUR)
        await ended(task)
    assert not removals.calls


@settings(max_examples=8, deadline=None)
@example(nodes=5, bad={1, 2}, removes=False, restarts=[700, 1400])
@given(
    nodes=st.integers(1, 6),
    bad=st.sets(st.integers(1, 6), max_size=4),
    removes=st.booleans(),
    restarts=st.lists(st.integers(0, 2 * HOUR), max_size=4),
)
def test_drivers_never_cost_a_group_more_than_its_bad_nodes(
    nodes: int, bad: set[int], removes: bool, restarts: list[int]
) -> None:
    missing = {n for n in bad if n <= nodes}
    removals = run_virtually(play(nodes, sorted(missing), removes=removes, restarts=restarts))
    assert len(removals.nodes) == len(set(removals.nodes)) <= len(missing)
    assert set(removals.nodes) <= {f"first-{n}" for n in missing}
    assert removals.most_within(timedelta(minutes=10)) <= 1
