"""Drivers register on nodes."""

from __future__ import annotations

import pytest

from bayplan.embedded.control.view import CSI_NODES
from tests.embedded.simulation.virtual_clusters import CLUSTER, DRIVER, virtual_cluster

pytestmark = pytest.mark.whole


async def test_a_driver_registers_with_its_limit_or_with_none() -> None:
    text = (
        CLUSTER
        + f"""
  - name: endless
    instanceType: large
    count: 1
    drivers: [{{name: {DRIVER}, limit: none, delay: 100s}}]
"""
    )
    async with virtual_cluster(text) as w:
        limited = w.get(CSI_NODES, "workers-1")["spec"]["drivers"]
        assert limited[0]["allocatable"] == {"count": 8}
        assert not w.get(CSI_NODES, "endless-1")["spec"]["drivers"]
        await w.forward(100)
        late = w.get(CSI_NODES, "endless-1")["spec"]["drivers"]
        assert late[0]["name"] == DRIVER
        assert "allocatable" not in late[0]
