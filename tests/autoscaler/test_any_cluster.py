"""What needs no cloud but one of the test's own, on any API server, with our scheduler.

Nobody makes nodes there: the cloud sells instances, and the test registers them by hand as kubelets
and CSI drivers would.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from bayplan.autoscaler.daemon import AutoscalerDaemon
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.client import Client, Informers, Selection, Untyped, merge
from bayplan.embedded.nodes.machines import GroupDriver, InstanceType, SimulatedNodeGroup
from bayplan.kube.events import Event
from bayplan.kube.nodes import Node
from bayplan.nodegroups import Provider
from tests.autoscaler.running_autoscaler import CONFIG_MAPS
from tests.embedded.cloud.clouds import SimulatedCloud
from tests.patience import PATIENCE
from tests.scheduler.running_scheduler import node, pod, scheduling
from tests.scheduler.scheduler_stories import DRIVER, claim, csinode, with_volume

pytestmark = pytest.mark.whole


GROUP = SimulatedNodeGroup(
    name="bayplan-group",
    instance_type=InstanceType(name="small", cpu=4, memory="32Gi", price=0.1),
    maximum=3,
    count=0,
    drivers={DRIVER: GroupDriver(limit=2)},
)
OPTIONS = AutoscalerOptions(scan_interval=0.2)


@asynccontextmanager
async def autoscaling(client: Client, simulated: SimulatedCloud) -> AsyncIterator[AutoscalerDaemon]:
    @asynccontextmanager
    async def cloud(_: Client) -> AsyncIterator[Provider]:
        yield simulated.provider

    daemon = AutoscalerDaemon(cloud, OPTIONS)
    task = asyncio.ensure_future(daemon.lead(client))
    try:
        yield daemon
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class ChangeFeed:
    """What the cluster and the cloud come to say."""

    def __init__(self, informers: Informers, simulated: SimulatedCloud, namespace: str) -> None:
        self._heard = asyncio.Event()
        self._events = informers.of(Event, Selection(namespace))
        self._statuses = informers.of(CONFIG_MAPS, Selection("kube-system"))
        self._events.on_change(lambda _: self._heard.set())
        self._statuses.on_change(lambda _: self._heard.set())
        simulated.cloud.listeners.append(lambda _: self._heard.set())

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until that holds."""
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._heard.clear()
                await self._heard.wait()

    def event_notes(self, reason: str) -> list[str]:
        """The texts of events with this reason."""
        return [one.note for one in self._events.objects.values() if one.reason == reason]

    @property
    def status(self) -> str:
        found = self._statuses.objects.get("kube-system/cluster-autoscaler-status", {})
        data = found.get("data")
        return str(data["status"]) if isinstance(data, dict) else ""


async def register(client: Client, simulated: SimulatedCloud, name: str) -> None:
    """Do for an instance what its kubelet does: a Node that is ready, without any driver yet."""
    provider = simulated.cloud.instances[name].provider_id
    made: Untyped = {**node(name), "spec": {"providerID": provider}}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
    status = made["status"]
    assert isinstance(status, dict)
    await client.create({**made, "status": {**status, "conditions": [ready]}})
    # A plain API server taints new nodes, and nobody is there to take that back.
    await client.patch(Node, name, change=merge({"spec": {"taints": None}}))
    change = merge({"status": {**status, "conditions": [ready]}})
    await client.patch(Node, name, change=change, subresource="status")


async def test_volumes_are_bought_for_and_drivers_waited_for(
    client: Client, namespace: str
) -> None:
    simulated = SimulatedCloud([GROUP])
    for name in ("a", "b", "c"):
        await claim(client, namespace, name)
        await client.create(with_volume(namespace, name))
    await client.create(pod(namespace, "huge", cpu="64"))
    async with (
        Informers(client) as informers,
        scheduling(client) as scheduler,
        autoscaling(client, simulated) as autoscaler,
    ):
        news = ChangeFeed(informers, simulated, namespace)
        await news.until(lambda: len(simulated.cloud.instances) == 2)
        await news.until(lambda: bool(news.event_notes("NotTriggerScaleUp")))
        (why,) = news.event_notes("NotTriggerScaleUp")
        assert "1 Insufficient cpu (bayplan-group: wants 64 CPUs" in why
        simulated.forward(120)
        for name in simulated.cloud.instances:
            await register(client, simulated, name)
        await news.until(lambda: "notStarted: 2" in news.status)
        assert autoscaler.plans()[-1].upcoming == {"bayplan-group": 2}
        for name in simulated.cloud.instances:
            await client.create(csinode(name, limit=2))
        await scheduler.placed(namespace, "a", "b", "c")
        told = "pod triggered scale-up: [{bayplan-group 0->2 (max: 3)}]"
        await news.until(lambda: news.event_notes("TriggeredScaleUp") == [told] * 3)
    assert len(simulated.cloud.instances) == 2
