"""Nodes run pods and end them."""

from __future__ import annotations

import pytest

from bayplan.embedded.nodes.kubelet import EXIT_CODE, RUNS_FOR, STOPS_IN
from tests.embedded.simulation.virtual_clusters import CLUSTER, pod, virtual_cluster

pytestmark = pytest.mark.whole
ONE_NODE = CLUSTER.replace("count: 2", "count: 1")


async def test_a_bound_pod_is_created_and_then_runs() -> None:
    async with virtual_cluster() as w:
        await w.create(pod("p"))
        await w.bind("p", "workers-1")
        await w.forward(0.1)
        waiting = w.get("pods", "p")["status"]["containerStatuses"][0]["state"]
        assert waiting == {"waiting": {"reason": "ContainerCreating"}}
        await w.forward(5)
        assert w.pod("p").phase == "Running"
        assert w.pod("p").is_ready


async def test_a_pod_that_may_end_does_so_after_its_annotated_time() -> None:
    async with virtual_cluster() as w:
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
    async with virtual_cluster() as w:
        slow = {STOPS_IN: "1h"}
        await w.create(pod("p", terminationGracePeriodSeconds=20, annotations=slow))
        await w.bind("p", "workers-1")
        await w.forward(10)
        await w.delete("pods", "p")
        await w.forward(15)
        assert w.pod("p").is_terminating
        await w.forward(10)
        assert w.pod("p") is None


async def test_a_pod_that_does_not_fit_is_refused_by_the_kubelet() -> None:
    async with virtual_cluster(ONE_NODE) as w:
        big = {"requests": {"cpu": "5"}}
        container = [{"name": "c", "image": "i", "resources": big}]
        for name in ("p", "q"):
            await w.create(pod(name, containers=container))
            await w.bind(name, "workers-1")
        await w.forward(10)
        assert w.pod("p").phase == "Running"
        assert w.pod("q").phase == "Failed"
        assert w.get("pods", "q")["status"]["reason"] == "OutOfcpu"
