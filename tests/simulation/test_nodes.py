"""Nodes register, run pods, end them, and say how they are."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from bayplan.embedded.control.view import LEASES, NODES
from bayplan.embedded.nodes.health import Leases
from bayplan.embedded.nodes.kubelet import EXIT_CODE, RUNS_FOR, STOPS_IN
from bayplan.kube.codec import KINDS, decode_as
from bayplan.kube.nodes import Node
from bayplan.nodegroups import NodeRef
from tests.simulation.worlds import CLUSTER, pod, world

pytestmark = pytest.mark.whole


ONE_NODE = CLUSTER.replace("count: 2", "count: 1")


async def test_nodes_register_not_ready_and_become_ready() -> None:
    async with world(settle=0) as w:
        while w.get(NODES, "workers-1") is None:
            await w.forward(0.5)
        assert w.ready("workers-1") == "False"
        assert ("not-ready", "NoSchedule") in w.taints("workers-1")
        await w.forward(5)
        assert w.ready("workers-1") == "True"
        assert w.taints("workers-1") == set()


async def test_a_node_has_what_its_instance_type_says() -> None:
    async with world() as w:
        node = w.get(NODES, "workers-1")
        assert node["status"]["capacity"]["cpu"] == "8"
        assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "zone-a"
        assert node["spec"]["providerID"] == "sim://workers/workers-1"


async def test_leases_are_fresh_when_asked_for() -> None:
    async with world() as w:
        await w.forward(1000)
        await w.simulation.refresh_leases()
        renewed = w.get(LEASES, "workers-1", "kube-node-lease")["spec"]["renewTime"]
        age = w.run.clock.now().timestamp() - _seconds(renewed)
        assert 0 <= age < 10


async def test_on_the_wall_clock_leases_are_renewed_every_ten_seconds() -> None:
    async with world() as w:
        leases = Leases(w.simulation.stage, w.simulation.fleet, periodically=True)
        w.simulation.engine.add(leases)
        for tenth in leases.first():
            w.simulation.engine.ask(leases, tenth)
        seen = set()
        for _ in range(120):
            await w.forward(1)
            seen.add(w.get(LEASES, "workers-1", "kube-node-lease")["spec"]["renewTime"])
        assert 12 <= len(seen) <= 13


async def test_a_dead_node_renews_no_lease() -> None:
    async with world() as w:
        w.inject(kind="node-dies", node="workers-1")
        await w.forward(1)
        before = w.get(LEASES, "workers-1", "kube-node-lease")
        await w.forward(100)
        await w.simulation.refresh_leases()
        assert w.get(LEASES, "workers-1", "kube-node-lease") == before


async def test_a_bound_pod_is_created_and_then_runs() -> None:
    async with world() as w:
        await w.create(pod("p"))
        await w.bind("p", "workers-1")
        await w.forward(0.1)
        waiting = w.get("pods", "p")["status"]["containerStatuses"][0]["state"]
        assert waiting == {"waiting": {"reason": "ContainerCreating"}}
        await w.forward(5)
        assert w.pod("p").phase == "Running"
        assert w.pod("p").ready


async def test_a_pod_that_may_end_does_so_after_its_annotated_time() -> None:
    async with world() as w:
        notes = {RUNS_FOR: "10m"}
        await w.create(pod("p", restartPolicy="Never", annotations=notes))
        await w.create(pod("q", restartPolicy="Never", annotations={**notes, EXIT_CODE: "3"}))
        await w.bind("p", "workers-1")
        await w.bind("q", "workers-1")
        await w.forward(590)
        assert w.phases() == {"Running": 2}
        await w.forward(20)
        assert w.pod("p").phase == "Succeeded"
        assert w.pod("q").phase == "Failed"
        ended = w.get("pods", "q")["status"]["containerStatuses"][0]["state"]["terminated"]
        assert ended["exitCode"] == 3


async def test_a_deleted_pod_gets_its_grace_period_and_no_more() -> None:
    async with world() as w:
        slow = {STOPS_IN: "1h"}
        await w.create(pod("p", terminationGracePeriodSeconds=20, annotations=slow))
        await w.bind("p", "workers-1")
        await w.forward(10)
        await w.delete("pods", "p")
        await w.forward(15)
        assert w.pod("p").deleting
        await w.forward(10)
        assert w.pod("p") is None


async def test_a_pod_that_does_not_fit_is_refused_by_the_kubelet() -> None:
    async with world(ONE_NODE) as w:
        big = {"requests": {"cpu": "5"}}
        container = [{"name": "c", "image": "i", "resources": big}]
        for name in ("p", "q"):
            await w.create(pod(name, containers=container))
            await w.bind(name, "workers-1")
        await w.forward(10)
        assert w.pod("p").phase == "Running"
        assert w.pod("q").phase == "Failed"
        assert w.get("pods", "q")["status"]["reason"] == "OutOfcpu"


async def test_a_cordoned_node_is_tainted_and_an_uncordoned_one_is_not() -> None:
    async with world() as w:
        await w.edit(NODES, "workers-1", lambda obj: _cordon(obj, True))
        await w.forward(1)
        assert ("unschedulable", "NoSchedule") in w.taints("workers-1")
        await w.edit(NODES, "workers-1", lambda obj: _cordon(obj, False))
        await w.forward(1)
        assert w.taints("workers-1") == set()


async def test_a_no_execute_taint_evicts_those_who_do_not_tolerate_it() -> None:
    tolerated = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute"}
    async with world() as w:
        await w.create(
            pod("leaves"),
            pod("stays", tolerations=[tolerated]),
            pod("stays-a-while", tolerations=[{**tolerated, "tolerationSeconds": 100}]),
        )
        for name in ("leaves", "stays", "stays-a-while"):
            await w.bind(name, "workers-1")
        await w.forward(10)

        def taint(obj: Any) -> Any:
            added = w.simulation.stage.now()
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
    async with world() as w:
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


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


async def test_a_provider_in_process_buys_and_gives_back_in_virtual_time() -> None:
    async with world() as w:
        provider = w.simulation.provider
        await provider.increase("workers", 1)
        await w.forward(60)
        node = decode_as(KINDS["Node"], w.get(NODES, "workers-3"))
        assert isinstance(node, Node)
        group = await provider.group_for_node(NodeRef.of(node))
        assert group is not None
        await provider.delete_nodes(group.id, [NodeRef.of(node)])
        await w.forward(1)
        assert w.get(NODES, "workers-3") is None
