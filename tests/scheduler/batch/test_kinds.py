"""Clusters that have no queues, get them, and lose them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.kube.volcano import PodGroup
from bayplan.lab import VirtualLab
from tests.scheduler.batch.objects import install_kinds, pod, queue
from tests.scheduler.batch.queue_stories import gated, scale_up_pods
from tests.scheduler.running_scheduler import node, scheduling

pytestmark = pytest.mark.virtual
NOBODY = parse_cluster(b"seed: 1\n", "empty", Path())


async def test_without_the_kinds_pods_are_scheduled_as_ever_and_lose_our_gate() -> None:
    async with VirtualLab(NOBODY) as lab:
        client = lab.client()
        await client.create(node("n", "4"))
        await client.create(pod("default", "early", queue="team"))
        async with scheduling(client) as it:
            for name, has_gate in (("gated", True), ("plain", False)):
                await client.create(pod("default", name, queue="team", gated=has_gate))
            await it.placed("default", "early", "gated", "plain")


async def test_queues_are_honoured_from_when_the_cluster_has_them() -> None:
    async with VirtualLab(NOBODY) as lab:
        client = lab.client()
        await client.create(node("n", "1"))
        async with scheduling(client) as it:
            await client.create(pod("default", "first", "1", queue="team", gated=False))
            await it.placed("default", "first")
            await client.create(pod("default", "waits", "1", queue="team", gated=False))
            await lab.forward(5)
            assert scale_up_pods(it, "default") == {"waits"}
            await install_kinds(client)
            await client.create(queue("team", {"cpu": "1"}))
            await lab.forward(30)
            await client.create(pod("default", "gated", "1", queue="team"))
            await lab.forward(30)
            assert gated(it, "default") == {"gated"}
            groups = (await client.list(PodGroup)).items
            assert {one.spec.queue for one in groups} == {"team"}
            assert it.scheduler.batch.ledger.usage("team").allocated["cpu"] == 1000
