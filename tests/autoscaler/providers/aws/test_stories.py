"""From zero, with AWS as the cloud: twenty volumes, eight a node by a tag, three instances."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bayplan.autoscaler.daemon import AutoscalerDaemon
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.providers import ProviderOptions
from bayplan.autoscaler.providers.registry import open_provider
from bayplan.client import Client, Untyped
from bayplan.scheduler.config import default_settings
from bayplan.scheduler.daemon import SchedulerDaemon
from tests.autoscaler.providers.aws.account import TEMPLATE, Account
from tests.autoscaler.providers.aws.wire import Wire
from tests.autoscaler.providers.test_stories import (
    DRIVER,
    at_work,
    events_with_reason,
    https,
    kubelet,
    until_placed,
    waiting,
)
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


RESIZE = "SetDesiredCapacity"


async def boot(client: Client, account: Account, wire: Wire) -> None:
    """Once the group is resized, its instances become nodes with a driver."""
    async with asyncio.timeout(PATIENCE):
        while not (found := await asyncio.to_thread(account.read))["Instances"]:
            await wire.news.wait()
            wire.news.clear()
    for one in found["Instances"]:
        name = one["InstanceId"]
        place = f"aws:///{one['AvailabilityZone']}/{name}"
        node: Untyped = {"metadata": {"name": name}, "spec": {"providerID": place}}
        await client.create({"apiVersion": "v1", "kind": "Node", **node})
        await kubelet(client, name)


async def test_from_zero_over_https(account: Account, wire: Wire, tmp_path: Path) -> None:
    account.group(tags={f"{TEMPLATE}csi-driver/{DRIVER}": "8"})
    cloud = ProviderOptions("aws", nodes=("0:5:workers",))
    options = AutoscalerOptions(scan_interval=0.3)
    autoscaler = AutoscalerDaemon(lambda client: open_provider(cloud, client), options)
    scheduler = SchedulerDaemon(default_settings(["default-scheduler"]))
    async with https(tmp_path) as client:
        await waiting(client)
        async with at_work(scheduler.lead(client), autoscaler.lead(client)):
            await boot(client, account, wire)
            placed = await until_placed(client)
        texts = {one.note for one in await events_with_reason(client, "TriggeredScaleUp")}
    assert len(placed) == account.size() == 3
    assert max(placed.values()) == 8
    assert RESIZE in wire.asked
    assert all(one.startswith("pod triggered scale-up: [{workers ") for one in texts)
