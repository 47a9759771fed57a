"""Stories 1, 3 and 4 with Azure as the cloud: twenty volumes, eight a node by a tag.

The instances of the fake Azure become nodes with a driver, as soon as it has answered a request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bayplan.autoscaler.daemon import AutoscalerDaemon
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.providers import ProviderOptions
from bayplan.autoscaler.providers.azure import open_provider
from bayplan.autoscaler.providers.azure.connection import AzureConnection
from bayplan.base.durations import Seconds
from bayplan.client import Client, Untyped
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.scheduler.config import default_settings
from bayplan.scheduler.daemon import SchedulerDaemon
from tests.autoscaler.providers.azure.conftest import ENVIRONMENT, FakeCredential
from tests.autoscaler.providers.azure.fake_azure import FakeAzure, node_id
from tests.autoscaler.providers.azure.test_groups import TEMPLATE
from tests.autoscaler.providers.test_stories import (
    DRIVER,
    at_work,
    events_with_reason,
    https,
    kubelet,
    make,
    until_all,
    until_placed,
    waiting,
)

pytestmark = pytest.mark.whole

TAGS = {f"{TEMPLATE}csi-driver_{DRIVER}": "8"}


class Machines:
    """The instances of the scale set as nodes of a cluster."""

    def __init__(self, azure: FakeAzure, client: Client, without_driver: set[str]) -> None:
        self.azure = azure
        self.client = client
        self.without_driver = without_driver
        self.nodes: set[str] = set()

    async def run(self) -> None:
        """Register and remove nodes after every answer of Azure."""
        while True:
            await self.azure.news.wait()
            self.azure.news.clear()
            await self.settle()

    async def settle(self) -> None:
        self.azure.settle()
        there = set(self.azure.sets["workers"].vms)
        for one in sorted(self.nodes - there):
            await self.client.delete(Node, f"workers-{one}")
        new, self.nodes = sorted(there - self.nodes), there
        for one in new:
            await self.boot(one)

    async def boot(self, instance: str) -> None:
        name = f"workers-{instance}"
        spec = {"providerID": node_id("workers", instance)}
        node: Untyped = {"metadata": {"name": name}, "spec": spec}
        await self.client.create({"apiVersion": "v1", "kind": "Node", **node})
        await kubelet(self.client, name, has_driver=instance not in self.without_driver)


def is_placed_or_refused(pod: Pod) -> bool:
    return bool(pod.spec.node_name) or any(c.status == "False" for c in pod.status.conditions)


@asynccontextmanager
async def scaled(
    azure: FakeAzure, client: Client, options: AutoscalerOptions, without_driver: set[str]
) -> AsyncIterator[None]:
    """Scheduler, autoscaler and machines; the autoscaler starts once all pods are pending."""
    cloud = ProviderOptions("azure", nodes=("0:9:workers",))
    connection = AzureConnection(azure.url, FakeCredential())
    autoscaler = AutoscalerDaemon(
        lambda own: open_provider(cloud, own, ENVIRONMENT, connection=connection), options
    )
    scheduler = SchedulerDaemon(default_settings(["default-scheduler"]))
    machines = Machines(azure, client, without_driver)
    await machines.settle()
    async with at_work(scheduler.lead(client)):
        await waiting(client)
        await until_all(client, is_placed_or_refused)
        async with at_work(autoscaler.lead(client), machines.run()):
            yield


async def test_attach_limit_reached(azure: FakeAzure, tmp_path: Path) -> None:
    azure.scale_set(size=1, tags=TAGS)
    options = AutoscalerOptions(scan_interval=Seconds("300ms"))
    async with https(tmp_path) as client:
        await fill(client)
        async with scaled(azure, client, options, set()):
            placed = await until_placed(client)
        texts = {one.note for one in await events_with_reason(client, "TriggeredScaleUp")}
    assert placed.pop("workers-0") == 8
    assert sorted(placed.values()) == [4, 8, 8]
    assert azure.sets["workers"].capacity == 4
    assert texts == {"pod triggered scale-up: [{workers 1->4 (max: 9)}]"}


async def fill(client: Client) -> None:
    """Eight pods with a volume each on the first node."""
    modes = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    for number in range(8):
        name = f"old-{number}"
        csi = {"driver": DRIVER, "volumeHandle": name}
        held = {"namespace": "default", "name": name}
        volume = {"capacity": {"storage": "1Gi"}, "csi": csi, "claimRef": held, **modes}
        await make(client, "PersistentVolume", "v1", name, spec=volume)
        room = {"resources": {"requests": {"storage": "1Gi"}}}
        claim = {"volumeName": name, **modes, **room}
        await make(client, "PersistentVolumeClaim", "v1", name, spec=claim)
        used = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
        containers = [{"name": "c", "image": "i"}]
        spec = {"containers": containers, "volumes": used, "nodeName": "workers-0"}
        await make(client, "Pod", "v1", name, spec=spec)


async def test_from_zero(azure: FakeAzure, tmp_path: Path) -> None:
    azure.scale_set(tags=TAGS)
    options = AutoscalerOptions(scan_interval=Seconds("300ms"))
    async with https(tmp_path) as client, scaled(azure, client, options, set()):
        placed = await until_placed(client)
        texts = {one.note for one in await events_with_reason(client, "TriggeredScaleUp")}
    assert sorted(placed.values()) == [4, 8, 8]
    assert azure.sets["workers"].capacity == 3
    assert texts == {"pod triggered scale-up: [{workers 0->3 (max: 9)}]"}


async def test_the_driver_that_never_came(azure: FakeAzure, tmp_path: Path) -> None:
    made = azure.scale_set(tags=TAGS)
    options = AutoscalerOptions(
        scan_interval=Seconds("300ms"),
        csi_driver_startup_time=Seconds("3s"),
        initial_node_group_backoff_duration=Seconds("1s"),
    )
    async with https(tmp_path) as client, scaled(azure, client, options, {"0"}):
        placed = await until_placed(client)
        (missing, *_) = await events_with_reason(client, "CSIDriverMissing")
    assert placed == {"workers-1": 8, "workers-2": 8, "workers-3": 4}
    assert DRIVER in (missing.note or "")
    assert azure.deleted == ["workers/0"]
    assert (made.capacity, sorted(made.vms), azure.lowered) == (3, ["1", "2", "3"], [])
