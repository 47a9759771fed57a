"""A crew in a lab: who is at work, on either clock, and what stays when it has gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bayplan.admission.configurations import MUTATING, VALIDATING
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.client import Client, Informers, merge
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.simulation.clusterfile import ClusterSpec, parse_cluster
from bayplan.fit import Profile
from bayplan.kube.gates import FeatureGates
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.queueing import QUEUE_ALLOCATION_GATE, Queue
from bayplan.lab import Lab, LiveLab, VirtualLab
from bayplan.lab.crew import MEMBERS, Aboard, Crew, CrewError, members, muster
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


CLUSTER = """
seed: 3
csiDrivers: [{name: disk.csi.azure.com, topologyKey: ""}]
instanceTypes: [{name: Standard_D2s_v3, cpu: 4, memory: 16Gi, price: 1}]
nodeGroups:
  - name: workers
    cloud: azure
    instanceType: Standard_D2s_v3
    count: 1
    max: 3
    start: 0.1
    drivers: [{name: disk.csi.azure.com, limit: none, delay: 0.1}]
"""
EVERYBODY = Crew(frozenset(MEMBERS))
QUEUE: Any = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "research"},
    "spec": {"capability": {"cpu": "3"}},
}


def spec() -> ClusterSpec:
    return parse_cluster(CLUSTER.encode(), "cluster.yaml", Path())


def asking(name: str) -> Any:
    """A pod of three cores that asks for the gate, and has none yet."""
    annotations = {
        "scheduling.volcano.sh/queue-name": "research",
        QUEUE_ALLOCATION_GATE: "true",
    }
    resources = {"requests": {"cpu": "3"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": name, "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
    }


@asynccontextmanager
async def virtually(crew: Crew, data: Path | None = None) -> AsyncIterator[tuple[Lab, Aboard]]:
    aboard = muster(crew, spec(), lambda: lab.simulation.provider)
    lab = VirtualLab(aboard.spec, aboard.daemons, webhooks=aboard.webhooks, data=data)
    async with lab:
        yield lab, aboard


@asynccontextmanager
async def live(crew: Crew, data: Path | None = None) -> AsyncIterator[tuple[Lab, Aboard]]:
    aboard = muster(crew, spec(), lambda: lab.simulation.provider, live=True)
    lab = LiveLab(aboard.spec, ServerConfig(data=data), aboard.daemons)
    async with lab:
        running = asyncio.ensure_future(lab.run())
        yield lab, aboard
        lab.stop()
        await running


async def until(client: Client, holds: Callable[[dict[str, Pod]], bool]) -> None:
    """Wait until the pods are as they should be."""
    await _followed(client, Pod, lambda found: holds({one.name: one for one in found}))


async def registered(client: Client) -> None:
    """Wait until the API server asks the webhook."""
    await _followed(client, VALIDATING, bool)


async def _followed(client: Client, kind: Any, holds: Callable[[list[Any]], bool]) -> None:
    news = asyncio.Event()
    async with asyncio.timeout(PATIENCE), Informers(client) as informers:
        followed = informers.of(kind)
        followed.on_change(lambda _: news.set())
        await followed.synced.wait()
        while not holds(list(followed.objects.values())):
            news.clear()
            await news.wait()


def gated(pods: dict[str, Pod], name: str) -> bool:
    return [gate.name for gate in pods[name].spec.scheduling_gates] == [QUEUE_ALLOCATION_GATE]


@pytest.mark.virtual
async def test_in_virtual_time_the_whole_crew_gates_lets_in_buys_and_publishes() -> None:
    async with virtually(EVERYBODY) as (lab, aboard):
        client = lab.client()
        await lab.forward(60)
        node = (await client.list(Node)).items[0]
        assert node.status.allocatable["attachable-volumes-azure-disk"] == "4"
        for one in (QUEUE, asking("first"), asking("second")):
            await client.create(one)
        await lab.forward(60)
        pods = {one.name: one for one in (await client.list(Pod)).items}
        assert (pods["first"].status.phase, gated(pods, "second")) == ("Running", True)
        assert len((await client.list(Node)).items) == 1
        await client.patch(Queue, "research", change=merge({"spec": {"capability": {"cpu": "6"}}}))
        await lab.forward(120)
        pods = {one.name: one for one in (await client.list(Pod)).items}
        assert {one.status.phase for one in pods.values()} == {"Running"}
        assert len((await client.list(Node)).items) == 2
        assert aboard.autoscaler is not None
        assert any(plan.bought for plan in aboard.autoscaler.plans())


async def test_live_the_webhook_is_served_and_registered_by_its_url() -> None:
    async with live(EVERYBODY) as (lab, _):
        client = lab.client()
        await registered(client)
        found: Any = await client.get(MUTATING, "bayplan-webhook")
        assert found["webhooks"][0]["clientConfig"]["url"].startswith("https://127.0.0.1:")
        for one in (QUEUE, asking("first"), asking("second")):
            await client.create(one)
        await until(client, lambda pods: pods["first"].status.phase == "Running")
        await until(client, lambda pods: gated(pods, "second"))


async def test_a_live_webhook_takes_its_registration_along(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with live(EVERYBODY, data) as (lab, _):
        await registered(lab.client())
    async with live(Crew(frozenset({"scheduler"})), data) as (lab, _):
        client = lab.client()
        assert not (await client.list(MUTATING)).items
        await client.create(asking("first"))


async def test_a_registration_that_was_left_behind_is_replaced(tmp_path: Path) -> None:
    data = tmp_path / "data"
    stale = {"url": "https://127.0.0.1:1/pods/mutate"}
    async with live(Crew(), data) as (lab, _):
        hook = {
            "name": "gate.pods.webhook.bayplan.io",
            "clientConfig": stale,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "resources": ["pods"],
                    "operations": ["CREATE"],
                }
            ],
        }
        made: Any = {"metadata": {"name": "bayplan-webhook"}, "webhooks": [hook]}
        await lab.client().create(made, MUTATING)
    async with live(EVERYBODY, data) as (lab, _):
        client = lab.client()
        await registered(client)
        await client.create(QUEUE)
        await client.create(asking("first"))
        await until(client, lambda pods: pods["first"].status.phase == "Running")


def test_members_are_told_by_name() -> None:
    assert members("scheduler, queues") == {"scheduler", "queues"}
    with pytest.raises(CrewError, match="there is no 'planner'; there are scheduler, autoscaler, "):
        members("scheduler,planner")
    with pytest.raises(CrewError, match="there is no ''"):
        members("scheduler,")


@pytest.mark.virtual
async def test_a_crew_without_members_leaves_a_cluster_alone() -> None:
    async with virtually(Crew()) as (lab, aboard):
        assert (aboard.daemons, aboard.webhooks) == ((), {})
        await lab.client().create(asking("first"))
        await lab.forward(60)
        (pod,) = (await lab.client().list(Pod)).items
        assert (pod.spec.node_name, pod.spec.scheduling_gates) == ("", [])


@pytest.mark.virtual
async def test_the_rules_and_options_of_a_crew_reach_its_daemons() -> None:
    gates = FeatureGates({"QueueAllocationGate": False})
    options = AutoscalerOptions(max_nodes_total=1)
    crew = Crew(EVERYBODY.members, Profile(gates=gates), options)
    async with virtually(crew) as (lab, _):
        client = lab.client()
        await lab.forward(60)
        for one in (QUEUE, asking("first"), asking("second")):
            await client.create(one)
        await client.patch(Queue, "research", change=merge({"spec": {"capability": {"cpu": "6"}}}))
        await lab.forward(300)
        pods = {one.name: one for one in (await client.list(Pod)).items}
        assert not any(one.spec.scheduling_gates for one in pods.values())
        assert len((await client.list(Node)).items) == 1
