"""What goes wrong while nodes are given back: nothing is lost, and everything is put right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from bayplan.autoscaler.actuation.node_taints import CORDONED
from bayplan.autoscaler.clusterstate.taints import DELETION_CANDIDATE, TO_BE_DELETED
from bayplan.client import merge
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.kube.nodes import Node
from bayplan.lab import VirtualLab
from bayplan.nodegroups import NodeRef, Provider, ProviderUnavailableError, RefusedError
from tests.autoscaler.running_autoscaler import RunningCluster, ended, led, virtual_running_cluster
from tests.autoscaler.scaledown.random_clusters import (
    QUICK,
    begun,
    guard,
    half_empty,
    running,
    taints,
)

pytestmark = [pytest.mark.whole, pytest.mark.virtual]


def one_spare() -> ClusterSpec:
    """One node has to stay and one is empty."""
    return half_empty(count=2, replicas=1, cpu="6")


Wrap = Callable[[VirtualLab, Provider], Provider]


class StubbornProvider:
    """A cloud that does not delete, or does not say that it did."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner
        self.error: Exception | None = None
        self.acts = False
        self.asked = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        self.asked += 1
        if self.error is None or self.acts:
            await self._inner.delete_nodes(group, nodes)
        if self.error is not None:
            raise self.error


def stubborn(clouds: list[StubbornProvider], error: Exception, *, acts: bool = False) -> Wrap:
    def wrap(_: VirtualLab, inner: Provider) -> Provider:
        cloud = StubbornProvider(inner)
        cloud.error, cloud.acts = error, acts
        clouds.append(cloud)
        return cloud  # type: ignore[return-value] # the rest is the inner one's

    return wrap


async def marked(cluster: RunningCluster, within: float = 400) -> str:
    """The first node that is to be deleted."""
    for _ in range(int(within)):
        await cluster.lab.forward(1)
        found = [name for name, keys in (await taints(cluster)).items() if TO_BE_DELETED in keys]
        if found:
            return found[0]
    raise AssertionError("no node is given back")


async def node(cluster: RunningCluster, name: str) -> Node:
    return await cluster.client.get(Node, name)


async def test_a_node_that_the_cloud_does_not_delete_is_as_it_was_and_is_tried_again() -> None:
    clouds: list[StubbornProvider] = []
    wrap = stubborn(clouds, RefusedError("not today"))
    async with virtual_running_cluster(one_spare(), QUICK, wrap=wrap) as cluster:
        await begun(cluster, 1)
        name = await marked(cluster)
        assert (await node(cluster, name)).spec.unschedulable
        await cluster.lab.forward(10)
        found = await node(cluster, name)
        assert [one.key for one in found.spec.taints] == [DELETION_CANDIDATE]
        assert not found.spec.unschedulable
        assert CORDONED not in found.metadata.annotations
        notes = await cluster.event_notes("ScaleDownFailed")
        assert notes == ["failed to delete empty node: the cloud provider failed: not today"]
        asked = clouds[0].asked
        await cluster.lab.forward(120)
        assert clouds[0].asked == asked, "it rests for three minutes"
        clouds[0].error = None
        await cluster.lab.forward(240)
        assert len(await cluster.nodes()) == 1


async def test_a_cloud_that_deletes_and_does_not_say_so_is_believed() -> None:
    clouds: list[StubbornProvider] = []
    wrap = stubborn(clouds, ProviderUnavailableError("lost"), acts=True)
    async with virtual_running_cluster(one_spare(), QUICK, wrap=wrap) as cluster:
        await begun(cluster, 1)
        await cluster.lab.forward(300)
        assert len(await cluster.nodes()) == 1
        assert clouds[0].asked == 1
        assert not await cluster.event_notes("ScaleDownFailed")


async def test_a_cloud_that_fails_in_a_way_of_its_own_keeps_no_node_on_its_way() -> None:
    clouds: list[StubbornProvider] = []
    wrap = stubborn(clouds, ZeroDivisionError("a bug"))
    async with virtual_running_cluster(one_spare(), QUICK, wrap=wrap) as cluster:
        await begun(cluster, 1)
        name = await marked(cluster)
        await cluster.lab.forward(10)
        assert TO_BE_DELETED not in (await taints(cluster))[name]
        clouds[0].error = None
        await cluster.lab.forward(400)
        assert len(await cluster.nodes()) == 1


async def test_a_pod_that_comes_meanwhile_keeps_its_node() -> None:
    """It tolerates everything, so that no taint holds it off."""
    async with virtual_running_cluster(one_spare(), QUICK) as cluster:
        await begun(cluster, 1)
        name = await marked(cluster)
        container = {"name": "c", "image": "i"}
        spec = {
            "nodeName": name,
            "containers": [container],
            "tolerations": [{"operator": "Exists"}],
        }
        pod = {"metadata": {"name": "late", "namespace": "default"}, "spec": spec}
        await cluster.client.create({"apiVersion": "v1", "kind": "Pod", **pod})
        await cluster.lab.forward(60)
        assert name in await cluster.nodes()
        assert TO_BE_DELETED not in (await taints(cluster))[name]
        assert (await cluster.event_notes("ScaleDownFailed"))[0].startswith(
            "failed to delete empty node: "
        )


async def test_a_node_that_somebody_else_had_cordoned_stays_cordoned() -> None:
    clouds: list[StubbornProvider] = []
    wrap = stubborn(clouds, RefusedError("not today"))
    async with virtual_running_cluster(one_spare(), QUICK, wrap=wrap) as cluster:
        await begun(cluster, 1)
        used = {pod.spec.node_name for pod in await cluster.pods()}
        (spare,) = set(await cluster.nodes()) - used
        await cluster.client.patch(Node, spare, change=merge({"spec": {"unschedulable": True}}))
        assert await marked(cluster) == spare
        await cluster.lab.forward(15)
        assert (await node(cluster, spare)).spec.unschedulable


async def test_a_node_that_vanishes_in_mid_drain_is_let_go() -> None:
    async with virtual_running_cluster(half_empty(3, 6), QUICK) as cluster:
        await begun(cluster, 6)
        name = await marked(cluster)
        cluster.lab.simulation.cloud.delete([name])
        await cluster.lab.forward(900)
        assert name not in await cluster.nodes()
        assert len(await running(cluster)) == 6
        assert not any(TO_BE_DELETED in keys for keys in (await taints(cluster)).values())


async def test_a_restart_in_mid_drain_leaves_no_taint_and_loses_no_pod() -> None:
    async with virtual_running_cluster(half_empty(3, 6), QUICK, leads=False) as cluster:
        first = led(cluster, cluster.lab.client())
        await begun(cluster, 6)
        name = await marked(cluster)
        await ended(first)
        await cluster.lab.forward(60)
        assert TO_BE_DELETED in (await taints(cluster))[name]
        second = led(cluster, cluster.lab.client())
        await cluster.lab.forward(20)
        assert TO_BE_DELETED not in (await taints(cluster))[name]
        assert not (await node(cluster, name)).spec.unschedulable
        await cluster.lab.forward(1200)
        assert len(await running(cluster)) == 6
        assert len(await cluster.nodes()) == 1
        await ended(second)


async def test_an_eviction_that_a_budget_refuses_gives_up_after_a_while() -> None:
    """Something else spends the budget after the plan was made."""
    async with virtual_running_cluster(half_empty(2, 4), QUICK) as cluster:
        await begun(cluster, 4)
        name = await marked(cluster)
        await guard(cluster, 4)
        await cluster.lab.forward(200)
        assert name in await cluster.nodes()
        assert TO_BE_DELETED not in (await taints(cluster))[name]
        assert len(await running(cluster)) == 4
