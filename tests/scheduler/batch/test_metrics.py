"""Queues are counted under Volcano's names, removals of gates by what became of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.lab import VirtualLab
from bayplan.scheduler.config import QueueSettings, default_settings
from bayplan.scheduler.daemon import SchedulerDaemon
from tests.scheduler.batch.objects import install_kinds, pod, queue
from tests.scheduler.running_scheduler import node

pytestmark = pytest.mark.virtual


async def test_what_a_queue_has_reserves_and_deserves_can_be_scraped() -> None:
    registry = CollectorRegistry()
    daemon = SchedulerDaemon(default_settings(["bayplan"]), registry=registry)
    assert registry.get_sample_value("volcano_queue_share", {"queue_name": "team"}) is None
    async with VirtualLab(parse_cluster(b"seed: 1\n", "empty", Path()), [daemon.lead]) as lab:
        client = lab.client()
        await install_kinds(client)
        await client.create(queue("team", {"cpu": "4"}, deserved={"cpu": "2"}, weight=3))
        await client.create(node("n", "1"))
        for name, cpu in (("runs", "1"), ("reserves", "2"), ("waits", "3")):
            await client.create(pod("default", name, cpu, queue="team"))
            await lab.forward(20)

        def of_team(name: str) -> float | None:
            return registry.get_sample_value(name, {"queue_name": "team"})

        assert of_team("volcano_queue_allocated_milli_cpu") == 1000
        assert of_team("bayplan_queue_reserved_milli_cpu") == 2000
        assert of_team("volcano_queue_deserved_milli_cpu") == 2000
        assert of_team("volcano_queue_real_capacity_milli_cpu") == 4000
        assert of_team("volcano_queue_real_capacity_memory_bytes") is None
        assert of_team("volcano_queue_share") == 0.5
        assert of_team("volcano_queue_weight") == 3
        assert of_team("bayplan_queue_waiting_groups") == 2
        removed = registry.get_sample_value(
            "bayplan_scheduler_gate_removals_total", {"result": "removed"}
        )
        assert removed == 2


async def test_under_the_policy_proportion_nodes_are_shared_by_weight() -> None:
    registry = CollectorRegistry()
    settings = replace(default_settings(["bayplan"]), queues=QueueSettings("proportion"))
    daemon = SchedulerDaemon(settings, registry=registry)
    async with VirtualLab(parse_cluster(b"seed: 1\n", "empty", Path()), [daemon.lead]) as lab:
        client = lab.client()
        await install_kinds(client)
        for name, weight in (("light", 1), ("heavy", 3)):
            await client.create(queue(name, weight=weight))
        await lab.forward(20)
        for number in range(8):
            for name in ("light", "heavy"):
                await client.create(pod("default", f"{name}-{number}", "1", queue=name))
        await lab.forward(20)
        for number in range(2):
            await client.create(node(f"n{number}", "4"))
        await lab.forward(20)
        for name, cpu in (("light", 2000), ("heavy", 6000)):
            of_queue = {"queue_name": name}
            deserved = registry.get_sample_value("volcano_queue_deserved_milli_cpu", of_queue)
            allocated = registry.get_sample_value("volcano_queue_allocated_milli_cpu", of_queue)
            assert (deserved, allocated) == (cpu, cpu)
