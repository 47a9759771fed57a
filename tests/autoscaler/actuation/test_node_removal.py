"""Nodes given back in a whole cluster: our scheduler, a simulated cloud, virtual time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bayplan.autoscaler.clusterstate.taints import DELETION_CANDIDATE, TO_BE_DELETED
from bayplan.client import merge
from bayplan.kube.nodes import Node
from tests.autoscaler.running_autoscaler import RunningCluster, virtual_running_cluster
from tests.autoscaler.scaledown.random_clusters import (
    QUICK,
    begun,
    guard,
    half_empty,
    resize,
    running,
    taints,
)

pytestmark = pytest.mark.virtual


async def test_nodes_that_are_not_needed_are_emptied_and_given_back() -> None:
    async with virtual_running_cluster(half_empty(4, 9), QUICK) as cluster:
        await begun(cluster, 9)
        await cluster.lab.forward(1800)
        assert len(await cluster.nodes()) == 2
        assert len(await running(cluster)) == 9
        assert await cluster.event_notes("ScaleDown")
        kept = {one.node: one.reason for one in cluster.autoscaler.plans()[-1].unremovable}
        assert set(kept.values()) <= {"NotUnderutilized", "RecentlyUnremovable", "BlockedByPod"}


async def test_empty_nodes_go_together() -> None:
    async with virtual_running_cluster(half_empty(6, 1), QUICK) as cluster:
        await begun(cluster, 1)
        await cluster.lab.forward(180)
        assert len(await cluster.nodes()) == 1
        assert len(await cluster.event_notes("ScaleDownEmpty")) == 5


async def test_a_group_that_goes_as_a_whole_goes_in_one_piece() -> None:
    whole = "    options: {zeroOrMaxNodeScaling: true, scaleDownUnneededTime: 1m}\n    drivers:"
    async with virtual_running_cluster(half_empty(3, 0, least=0, group=whole), QUICK) as cluster:
        await cluster.lab.forward(200)
        assert await cluster.nodes() == []
        (removed,) = [one for one in cluster.autoscaler.plans() if one.removals]
        assert len(removed.removals) == 3


async def test_without_soft_taints_none_is_written_and_old_ones_go() -> None:
    options = replace(QUICK, max_bulk_soft_taint_count=0, scale_down_unneeded_time=3600.0)
    async with virtual_running_cluster(half_empty(2, 1, cpu="6"), options) as cluster:
        await begun(cluster, 1)
        before = [{"key": DELETION_CANDIDATE, "value": "1", "effect": "PreferNoSchedule"}]
        await _taint(cluster, "workers-1", before)
        await cluster.lab.forward(60)
        assert not any((await taints(cluster)).values())


async def test_a_group_keeps_its_minimum() -> None:
    async with virtual_running_cluster(half_empty(4, 1, least=3), QUICK) as cluster:
        await begun(cluster, 1)
        await cluster.lab.forward(1200)
        assert len(await cluster.nodes()) == 3


async def test_a_budget_holds_all_the_way() -> None:
    """At no moment fewer pods run than the budget promises."""
    async with virtual_running_cluster(half_empty(4, 8), QUICK) as cluster:
        await begun(cluster, 8)
        await guard(cluster, 7)
        fewest = 8
        for _ in range(360):
            await cluster.lab.forward(5)
            fewest = min(fewest, len(await running(cluster)))
        assert fewest >= 7
        assert len(await cluster.nodes()) < 4
        assert len(await running(cluster)) == 8


async def test_a_budget_that_allows_nothing_keeps_every_node() -> None:
    async with virtual_running_cluster(half_empty(3, 3), QUICK) as cluster:
        await begun(cluster, 3)
        await guard(cluster, 3)
        await cluster.lab.forward(1200)
        assert len(await cluster.nodes()) == 3
        reasons = {one.reason for one in cluster.autoscaler.plans()[-1].unremovable}
        assert reasons <= {"BlockedByPod", "RecentlyUnremovable"}


async def test_nodes_that_are_not_needed_are_marked_and_unmarked() -> None:
    async with virtual_running_cluster(half_empty(3, 2, cpu="6"), QUICK) as cluster:
        await begun(cluster, 2)
        await cluster.lab.forward(40)
        marked = [name for name, keys in (await taints(cluster)).items() if keys]
        assert [(await taints(cluster))[name] for name in marked] == [[DELETION_CANDIDATE]]
        await resize(cluster, 3)
        await cluster.lab.forward(40)
        assert not any((await taints(cluster)).values())
        assert len(await cluster.nodes()) == 3


async def test_taints_of_a_life_before_are_taken_off() -> None:
    async with virtual_running_cluster(half_empty(2, 2, cpu="6"), QUICK) as cluster:
        await begun(cluster, 2)
        before = [{"key": TO_BE_DELETED, "value": "1", "effect": "NoSchedule"}]
        await _taint(cluster, "workers-1", before)
        await cluster.lab.forward(60)
        assert (await taints(cluster))["workers-1"] == []


async def _taint(cluster: RunningCluster, name: str, given: list[dict[str, str]]) -> None:
    await cluster.client.patch(Node, name, change=merge({"spec": {"taints": given}}))
