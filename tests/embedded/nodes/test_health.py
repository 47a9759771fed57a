"""Nodes renew their leases."""

from __future__ import annotations

from datetime import datetime

import pytest

from bayplan.embedded.control.view import LEASES
from bayplan.embedded.nodes.health import LeaseRenewal
from tests.embedded.simulation.virtual_clusters import virtual_cluster

pytestmark = pytest.mark.whole


async def test_leases_are_fresh_when_asked_for() -> None:
    async with virtual_cluster() as w:
        await w.forward(1000)
        await w.simulation.refresh_leases()
        renewed = w.get(LEASES, "workers-1", "kube-node-lease")["spec"]["renewTime"]
        age = w.run.clock.now().timestamp() - _seconds(renewed)
        assert 0 <= age < 10


async def test_on_the_wall_clock_leases_are_renewed_every_ten_seconds() -> None:
    async with virtual_cluster() as w:
        leases = LeaseRenewal(w.simulation.context, w.simulation.fleet, periodically=True)
        w.simulation.engine.add(leases)
        for tenth in leases.first():
            w.simulation.engine.enqueue(leases, tenth)
        seen = set()
        for _ in range(120):
            await w.forward(1)
            seen.add(w.get(LEASES, "workers-1", "kube-node-lease")["spec"]["renewTime"])
        assert 12 <= len(seen) <= 13


async def test_a_dead_node_renews_no_lease() -> None:
    async with virtual_cluster() as w:
        w.inject(kind="node-dies", node="workers-1")
        await w.forward(1)
        before = w.get(LEASES, "workers-1", "kube-node-lease")
        await w.forward(100)
        await w.simulation.refresh_leases()
        assert w.get(LEASES, "workers-1", "kube-node-lease") == before


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
