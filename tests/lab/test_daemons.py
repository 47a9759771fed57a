"""The daemons of a lab, in real and virtual time, and what remains when they have ended."""

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
from bayplan.kube.volcano import QUEUE_SCHEDULING_GATE, Queue
from bayplan.lab import Lab, LiveLab, VirtualLab
from bayplan.lab.daemons import (
    DAEMON_NAMES,
    LabDaemons,
    PreparedDaemons,
    UnknownDaemonError,
    parse_daemon_names,
    prepare_daemons,
)
from tests.clocks import in_virtual_time
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
EVERYTHING = LabDaemons(frozenset(DAEMON_NAMES))
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
        QUEUE_SCHEDULING_GATE: "true",
    }
    resources = {"requests": {"cpu": "3"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": name, "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
    }


@asynccontextmanager
async def virtually(daemons: LabDaemons) -> AsyncIterator[tuple[Lab, PreparedDaemons]]:
    prepared = prepare_daemons(daemons, spec(), lambda: lab.simulation.provider)
    lab = VirtualLab(prepared.spec, prepared.daemons, webhooks=prepared.webhooks)
    async with lab:
        yield lab, prepared


@asynccontextmanager
async def live(
    daemons: LabDaemons, data: Path | None = None
) -> AsyncIterator[tuple[Lab, PreparedDaemons]]:
    prepared = prepare_daemons(daemons, spec(), lambda: lab.simulation.provider, live=True)
    lab = LiveLab(prepared.spec, ServerConfig(data=data), prepared.daemons)
    async with lab, running(lab):
        yield lab, prepared


@asynccontextmanager
async def running(lab: Lab) -> AsyncIterator[None]:
    """Let time pass in a lab."""
    task = asyncio.ensure_future(lab.run())
    yield
    lab.stop()
    await task


@pytest.fixture
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A client of a lab with all daemons, in real time or, where the test is virtual, in that."""
    if in_virtual_time(request):
        async with virtually(EVERYTHING) as (lab, _), running(lab):
            yield lab.client()
    else:
        async with live(EVERYTHING) as (lab, _):
            yield lab.client()


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
    return [gate.name for gate in pods[name].spec.scheduling_gates] == [QUEUE_SCHEDULING_GATE]


@pytest.mark.wall
@pytest.mark.virtual
async def test_pods_within_quota_run_and_others_are_gated(client: Client) -> None:
    await registered(client)
    for one in (QUEUE, asking("first"), asking("second")):
        await client.create(one)
    await until(client, lambda pods: pods["first"].status.phase == "Running")
    await until(client, lambda pods: gated(pods, "second"))


@pytest.mark.virtual
async def test_all_daemons_together_gate_ungate_add_nodes_and_publish_limits() -> None:
    async with virtually(EVERYTHING) as (lab, prepared):
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
        assert prepared.autoscaler is not None
        assert any(plan.new_nodes for plan in prepared.autoscaler.plans())


async def test_live_the_webhook_is_served_and_registered_by_its_url() -> None:
    async with live(EVERYTHING) as (lab, _):
        client = lab.client()
        await registered(client)
        found: Any = await client.get(MUTATING, "bayplan-webhook")
        assert found["webhooks"][0]["clientConfig"]["url"].startswith("https://127.0.0.1:")


async def test_a_live_webhook_takes_its_registration_along(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with live(EVERYTHING, data) as (lab, _):
        await registered(lab.client())
    async with live(LabDaemons(frozenset({"scheduler"})), data) as (lab, _):
        client = lab.client()
        assert not (await client.list(MUTATING)).items
        await client.create(asking("first"))


async def test_a_registration_that_was_left_behind_is_replaced(tmp_path: Path) -> None:
    data = tmp_path / "data"
    stale = {"url": "https://127.0.0.1:1/pods/mutate"}
    async with live(LabDaemons(), data) as (lab, _):
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
    async with live(EVERYTHING, data) as (lab, _):
        client = lab.client()
        await registered(client)
        await client.create(QUEUE)
        await client.create(asking("first"))
        await until(client, lambda pods: pods["first"].status.phase == "Running")


def test_daemons_are_parsed_by_name() -> None:
    assert parse_daemon_names("scheduler, queues") == {"scheduler", "queues"}
    with pytest.raises(
        UnknownDaemonError, match="unknown daemon 'planner'; known daemons: scheduler, autoscaler, "
    ):
        parse_daemon_names("scheduler,planner")
    with pytest.raises(UnknownDaemonError, match="unknown daemon ''"):
        parse_daemon_names("scheduler,")


@pytest.mark.virtual
async def test_a_lab_without_daemons_leaves_a_cluster_alone() -> None:
    async with virtually(LabDaemons()) as (lab, prepared):
        assert (prepared.daemons, prepared.webhooks) == ((), {})
        await lab.client().create(asking("first"))
        await lab.forward(60)
        (pod,) = (await lab.client().list(Pod)).items
        assert (pod.spec.node_name, pod.spec.scheduling_gates) == ("", [])


@pytest.mark.virtual
async def test_the_profile_and_the_options_reach_the_daemons() -> None:
    gates = FeatureGates({"QueueAllocationGate": False})
    options = AutoscalerOptions(max_nodes_total=1)
    daemons = LabDaemons(EVERYTHING.names, Profile(gates=gates), options)
    async with virtually(daemons) as (lab, _):
        client = lab.client()
        await lab.forward(60)
        for one in (QUEUE, asking("first"), asking("second")):
            await client.create(one)
        await client.patch(Queue, "research", change=merge({"spec": {"capability": {"cpu": "6"}}}))
        await lab.forward(300)
        pods = {one.name: one for one in (await client.list(Pod)).items}
        assert not any(one.spec.scheduling_gates for one in pods.values())
        assert len((await client.list(Node)).items) == 1
