"""Taints of nodes, and whom they evict."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.embedded.control.view import NODES
from tests.embedded.simulation.virtual_clusters import pod, virtual_cluster

pytestmark = pytest.mark.whole


async def test_a_cordoned_node_is_tainted_and_an_uncordoned_one_is_not() -> None:
    async with virtual_cluster() as w:
        await w.edit(NODES, "workers-1", lambda obj: _cordon(obj, True))
        await w.forward(1)
        assert ("unschedulable", "NoSchedule") in w.taints("workers-1")
        await w.edit(NODES, "workers-1", lambda obj: _cordon(obj, False))
        await w.forward(1)
        assert w.taints("workers-1") == set()


async def test_a_no_execute_taint_evicts_those_who_do_not_tolerate_it() -> None:
    tolerated = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute"}
    async with virtual_cluster() as w:
        await w.create(
            pod("leaves"),
            pod("stays", tolerations=[tolerated]),
            pod("stays-a-while", tolerations=[{**tolerated, "tolerationSeconds": 100}]),
        )
        for name in ("leaves", "stays", "stays-a-while"):
            await w.bind(name, "workers-1")
        await w.forward(10)

        def taint(obj: Any) -> Any:
            added = w.simulation.context.now()
            key = {"key": "maintenance", "effect": "NoExecute", "timeAdded": added}
            obj["spec"]["taints"] = [key]
            return obj

        await w.edit(NODES, "workers-1", taint)
        await w.forward(50)
        assert w.pod("leaves") is None
        assert w.pod("stays-a-while") is not None
        await w.forward(60)
        assert w.pod("stays-a-while") is None
        assert w.pod("stays").phase == "Running"


async def test_pods_of_a_node_that_is_gone_are_deleted() -> None:
    async with virtual_cluster() as w:
        await w.create(pod("p"))
        await w.bind("p", "workers-1")
        await w.forward(10)
        w.simulation.cloud.delete(["workers-1"])
        await w.forward(100)
        assert w.get(NODES, "workers-1") is None
        assert w.pod("p") is None


def _cordon(node: Any, on: bool) -> Any:
    node["spec"]["unschedulable"] = on
    return node
