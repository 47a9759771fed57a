"""Nodes register and become ready."""

from __future__ import annotations

import pytest

from bayplan.embedded.control.view import NODES
from tests.embedded.simulation.virtual_clusters import virtual_cluster

pytestmark = pytest.mark.whole


async def test_nodes_register_not_ready_and_become_ready() -> None:
    async with virtual_cluster(settle=0) as w:
        while w.get(NODES, "workers-1") is None:
            await w.forward(0.5)
        assert w.ready("workers-1") == "False"
        assert ("not-ready", "NoSchedule") in w.taints("workers-1")
        await w.forward(5)
        assert w.ready("workers-1") == "True"
        assert w.taints("workers-1") == set()


async def test_a_node_has_what_its_instance_type_says() -> None:
    async with virtual_cluster() as w:
        node = w.get(NODES, "workers-1")
        assert node["status"]["capacity"]["cpu"] == "8"
        assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "zone-a"
        assert node["spec"]["providerID"] == "sim://workers/workers-1"
