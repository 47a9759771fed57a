"""From zero, with Cluster API as the cloud: twenty volumes, eight a node, three machines.

How many volumes a node takes is said by an annotation, or by a NodeGroup where that cannot be. It
is told over HTTPS and in virtual time; Cluster API is played by the tests' own controller, and so
are the kubelets: a machine becomes a node that is ready and has its driver.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bayplan.autoscaler.daemon import AutoscalerDaemon
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.providers import ProviderOptions
from bayplan.autoscaler.providers.declared.sources import NODE_GROUPS
from bayplan.autoscaler.providers.registry import open_provider
from bayplan.base.clock import LoopClock
from bayplan.client import Client, Informers, Untyped, connect, merge
from bayplan.embedded.apiserver.config import PlaneConfig, ServerConfig
from bayplan.embedded.apiserver.controlplane import ControlPlane
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.embedded.inprocess import in_process_client
from bayplan.kube.events import Event
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import BIND_COMPLETED
from bayplan.kube.times import timestamp
from bayplan.scheduler.config import default_settings
from bayplan.scheduler.daemon import SchedulerDaemon
from tests.admission.manifests import CRDS, documents
from tests.autoscaler.providers.clusterapi.capi import CAPACITY, NAMESPACE, SIZED, Capi

pytestmark = pytest.mark.whole


Lead = Coroutine[object, object, None]
DRIVER = "disk.csi.example.com"
PODS = 20
WORKERS = "MachineDeployment/default/workers"
SIZE = {"cpu": "4", "memory": "16Gi", "pods": "110"}


async def kubelet(client: Client, name: str) -> None:
    """A node that is registered gets ready, and a little later its driver reports."""
    since = timestamp(client.clock.now())
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
    status = {"status": {"capacity": SIZE, "allocatable": SIZE, "conditions": ready}}
    await client.patch(Node, name, change=merge(status), subresource="status")
    await client.patch(Node, name, change=merge({"spec": {"taints": None}}))
    driver = {"name": DRIVER, "nodeID": name, "topologyKeys": [], "allocatable": {"count": 8}}
    csi_node: Untyped = {"metadata": {"name": name}, "spec": {"drivers": [driver]}}
    await client.create({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", **csi_node})


class CapiWithKubelets(Capi):
    """Cluster API whose machines become nodes with a driver."""

    async def boot(self, machine: Any) -> None:
        await super().boot(machine)
        name = machine["metadata"]["name"]
        if "nodeRef" in machine.get("status", {}):
            return
        await kubelet(self.workload, name)

    async def run(self, client: Client) -> None:
        """Do what there is to do after every change."""
        news = asyncio.Event()
        async with Informers(client) as informers:
            for kind in ("Machine", "MachineSet", "MachineDeployment"):
                informers.of(self.of(kind)).on_change(lambda _: news.set())
            while True:
                await news.wait()
                news.clear()
                await self.settle()


@asynccontextmanager
async def https(folder: Path) -> AsyncIterator[Client]:
    path = folder / "kubeconfig"
    async with ApiServer(ServerConfig(kubeconfig=path)), connect(path) as client:
        yield client


@asynccontextmanager
async def virtual() -> AsyncIterator[Client]:
    plane = ControlPlane(PlaneConfig(clock=LoopClock(), rng=Random(1)))
    await plane.start()
    async with in_process_client(plane, rng=Random(1)) as client:
        yield client
    await plane.stop()


async def make(client: Client, kind: str, version: str, name: str, **fields: object) -> None:
    meta: dict[str, object] = {"name": name}
    if kind in {"Pod", "PersistentVolumeClaim"}:
        meta |= {"namespace": NAMESPACE, "annotations": {BIND_COMPLETED: "yes"}}
    await client.create({"apiVersion": version, "kind": kind, "metadata": meta, **fields})


async def waiting(client: Client) -> None:
    """Twenty pods with a volume each, and no node."""
    await make(client, "CSIDriver", "storage.k8s.io/v1", DRIVER, spec={})
    room = {"resources": {"requests": {"storage": "1Gi"}}}
    modes = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    for number in range(PODS):
        name = f"p-{number}"
        csi = {"driver": DRIVER, "volumeHandle": name}
        held = {"namespace": NAMESPACE, "name": name}
        volume = {"capacity": {"storage": "1Gi"}, "csi": csi, "claimRef": held, **modes}
        await make(client, "PersistentVolume", "v1", name, spec=volume)
        claim = {"volumeName": name, **modes, **room}
        await make(client, "PersistentVolumeClaim", "v1", name, spec=claim)
        used = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
        containers = [{"name": "c", "image": "i"}]
        await make(client, "Pod", "v1", name, spec={"containers": containers, "volumes": used})


@asynccontextmanager
async def at_work(*leads: Lead) -> AsyncIterator[None]:
    """Daemons, while the context lasts."""
    tasks = [asyncio.ensure_future(lead) for lead in leads]
    try:
        yield
        assert not [one for one in tasks if one.done()]
    finally:
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until_all(client: Client, holds: Callable[[Pod], bool]) -> list[Pod]:
    """Wait until that holds of all pods."""
    news = asyncio.Event()
    async with Informers(client) as informers:
        pods = informers.of(Pod)
        pods.on_change(lambda _: news.set())
        async with asyncio.timeout(600):
            while len(pods.objects) < PODS or not all(map(holds, pods.objects.values())):
                news.clear()
                await news.wait()
        return list(pods.objects.values())


async def until_placed(client: Client) -> dict[str, int]:
    """Wait for all pods to have a node; by node, how many it has."""
    placed = await until_all(client, lambda pod: bool(pod.spec.node_name))
    return dict(Counter(one.spec.node_name for one in placed))


async def until_refused(client: Client) -> None:
    """Wait until the scheduler has said of all pods that they fit nowhere: all count at once."""
    await until_all(client, lambda pod: any(c.status == "False" for c in pod.status.conditions))


async def events_with_reason(client: Client, reason: str) -> list[Event]:
    return [one for one in (await client.list(Event)).items if one.reason == reason]


async def from_zero(client: Client, options: AutoscalerOptions, declared: bool) -> None:
    capi = CapiWithKubelets(client)
    await capi.install()
    for one in documents(CRDS / "nodegroups.yaml"):
        await client.create(one)
    annotated = {} if declared else {f"{CAPACITY}csi-driver": f"{DRIVER}=8"}
    await capi.make("MachineDeployment", "workers", 0, {**SIZED, **annotated})
    if declared:
        spec = {"id": WORKERS, "csiDrivers": {DRIVER: 8, "other.example": "many"}}
        await client.create({"metadata": {"name": "workers"}, "spec": spec}, NODE_GROUPS)
    await waiting(client)
    cloud = ProviderOptions("clusterapi")
    autoscaler = AutoscalerDaemon(lambda own: open_provider(cloud, own), options)
    scheduler = SchedulerDaemon(default_settings(["default-scheduler"]))
    async with at_work(scheduler.lead(client)):
        await until_refused(client)
        async with at_work(autoscaler.lead(client), capi.run(client)):
            placed = await until_placed(client)
    assert sorted(placed.values()) == [4, 8, 8]
    assert await capi.replicas("MachineDeployment", "workers") == 3
    texts = {one.note for one in await events_with_reason(client, "TriggeredScaleUp")}
    assert texts == {f"pod triggered scale-up: [{{{WORKERS} 0->3 (max: 5)}}]"}
    if declared:
        (event,) = await events_with_reason(client, "NodeGroupMisdeclared")
        assert event.regarding is not None
        assert (event.regarding.kind, event.regarding.name) == ("NodeGroup", "workers")
        item: Any = await client.get(NODE_GROUPS, "workers")
        (problem,) = item["status"]["problems"]
        assert problem.startswith("csiDrivers.other.example: 'many'")


@pytest.mark.parametrize("declared", [False, True])
async def test_from_zero_over_https(tmp_path: Path, declared: bool) -> None:
    async with https(tmp_path) as client:
        await from_zero(client, AutoscalerOptions(scan_interval=0.3), declared)


@pytest.mark.virtual
@pytest.mark.parametrize("declared", [False, True])
async def test_from_zero_in_virtual_time(declared: bool) -> None:
    async with virtual() as client:
        await from_zero(client, AutoscalerOptions(), declared)
