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
from tests.autoscaler.running import Town, ended, led, virtual_town
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


class Stubborn:
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


def stubborn(clouds: list[Stubborn], error: Exception, *, acts: bool = False) -> Wrap:
    def wrap(_: VirtualLab, inner: Provider) -> Provider:
        cloud = Stubborn(inner)
        cloud.error, cloud.acts = error, acts
        clouds.append(cloud)
        return cloud  # type: ignore[return-value] # the rest is the inner one's

    return wrap


async def marked(town: Town, within: float = 400) -> str:
    """The first node that is to be deleted."""
    for _ in range(int(within)):
        await town.lab.forward(1)
        found = [name for name, keys in (await taints(town)).items() if TO_BE_DELETED in keys]
        if found:
            return found[0]
    raise AssertionError("no node is given back")


async def node(town: Town, name: str) -> Node:
    return await town.client.get(Node, name)


async def test_a_node_that_the_cloud_does_not_delete_is_as_it_was_and_is_tried_again() -> None:
    clouds: list[Stubborn] = []
    wrap = stubborn(clouds, RefusedError("not today"))
    async with virtual_town(one_spare(), QUICK, wrap=wrap) as town:
        await begun(town, 1)
        name = await marked(town)
        assert (await node(town, name)).spec.unschedulable
        await town.lab.forward(10)
        found = await node(town, name)
        assert [one.key for one in found.spec.taints] == [DELETION_CANDIDATE]
        assert not found.spec.unschedulable
        assert CORDONED not in found.metadata.annotations
        said = await town.said("ScaleDownFailed")
        assert said == ["failed to delete empty node: the cloud provider failed: not today"]
        asked = clouds[0].asked
        await town.lab.forward(120)
        assert clouds[0].asked == asked, "it rests for three minutes"
        clouds[0].error = None
        await town.lab.forward(240)
        assert len(await town.nodes()) == 1


async def test_a_cloud_that_deletes_and_does_not_say_so_is_believed() -> None:
    clouds: list[Stubborn] = []
    wrap = stubborn(clouds, ProviderUnavailableError("lost"), acts=True)
    async with virtual_town(one_spare(), QUICK, wrap=wrap) as town:
        await begun(town, 1)
        await town.lab.forward(300)
        assert len(await town.nodes()) == 1
        assert clouds[0].asked == 1
        assert not await town.said("ScaleDownFailed")


async def test_a_cloud_that_fails_in_a_way_of_its_own_keeps_no_node_on_its_way() -> None:
    clouds: list[Stubborn] = []
    wrap = stubborn(clouds, ZeroDivisionError("a bug"))
    async with virtual_town(one_spare(), QUICK, wrap=wrap) as town:
        await begun(town, 1)
        name = await marked(town)
        await town.lab.forward(10)
        assert TO_BE_DELETED not in (await taints(town))[name]
        clouds[0].error = None
        await town.lab.forward(400)
        assert len(await town.nodes()) == 1


async def test_a_pod_that_comes_meanwhile_keeps_its_node() -> None:
    """It tolerates everything, so that no taint holds it off."""
    async with virtual_town(one_spare(), QUICK) as town:
        await begun(town, 1)
        name = await marked(town)
        container = {"name": "c", "image": "i"}
        spec = {
            "nodeName": name,
            "containers": [container],
            "tolerations": [{"operator": "Exists"}],
        }
        pod = {"metadata": {"name": "late", "namespace": "default"}, "spec": spec}
        await town.client.create({"apiVersion": "v1", "kind": "Pod", **pod})
        await town.lab.forward(60)
        assert name in await town.nodes()
        assert TO_BE_DELETED not in (await taints(town))[name]
        assert (await town.said("ScaleDownFailed"))[0].startswith("failed to delete empty node: ")


async def test_a_node_that_somebody_else_had_cordoned_stays_cordoned() -> None:
    clouds: list[Stubborn] = []
    wrap = stubborn(clouds, RefusedError("not today"))
    async with virtual_town(one_spare(), QUICK, wrap=wrap) as town:
        await begun(town, 1)
        used = {pod.spec.node_name for pod in await town.pods()}
        (spare,) = set(await town.nodes()) - used
        await town.client.patch(Node, spare, change=merge({"spec": {"unschedulable": True}}))
        assert await marked(town) == spare
        await town.lab.forward(15)
        assert (await node(town, spare)).spec.unschedulable


async def test_a_node_that_vanishes_in_mid_drain_is_let_go() -> None:
    async with virtual_town(half_empty(3, 6), QUICK) as town:
        await begun(town, 6)
        name = await marked(town)
        town.lab.simulation.cloud.delete([name])
        await town.lab.forward(900)
        assert name not in await town.nodes()
        assert len(await running(town)) == 6
        assert not any(TO_BE_DELETED in keys for keys in (await taints(town)).values())


async def test_a_restart_in_mid_drain_leaves_no_taint_and_loses_no_pod() -> None:
    async with virtual_town(half_empty(3, 6), QUICK, leads=False) as town:
        first = led(town, town.lab.client())
        await begun(town, 6)
        name = await marked(town)
        await ended(first)
        await town.lab.forward(60)
        assert TO_BE_DELETED in (await taints(town))[name]
        second = led(town, town.lab.client())
        await town.lab.forward(20)
        assert TO_BE_DELETED not in (await taints(town))[name]
        assert not (await node(town, name)).spec.unschedulable
        await town.lab.forward(1200)
        assert len(await running(town)) == 6
        assert len(await town.nodes()) == 1
        await ended(second)


async def test_an_eviction_that_a_budget_refuses_gives_up_after_a_while() -> None:
    """Something else spends the budget after the plan was made."""
    async with virtual_town(half_empty(2, 4), QUICK) as town:
        await begun(town, 4)
        name = await marked(town)
        await guard(town, 4)
        await town.lab.forward(200)
        assert name in await town.nodes()
        assert TO_BE_DELETED not in (await taints(town))[name]
        assert len(await running(town)) == 4
