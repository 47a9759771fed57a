"""Daemon sets have a pod on every node that they may use."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.embedded.control.view import (
    DAEMON_SETS,
    NODES,
)
from bayplan.embedded.nodes.kubelet import STOPS_IN
from tests.embedded.simulation.virtual_clusters import CLUSTER, virtual_cluster, workload
from tests.embedded.workloads.edits import new_image

pytestmark = pytest.mark.whole


async def test_a_daemon_set_has_a_pod_for_every_node_that_it_may_use() -> None:
    text = (
        CLUSTER
        + """
  - name: special
    instanceType: large
    count: 1
    taints: [{key: special, effect: NoSchedule}]
"""
    )
    async with virtual_cluster(text) as w:
        await w.create(workload("DaemonSet", "agent"))
        await w.forward(5)
        targets = {_daemon_target(w.get("pods", key.name)) for key in w.view.pods}
        assert targets == {"workers-1", "workers-2"}
        w.simulation.cloud.increase("workers", 1)
        await w.forward(90)
        assert w.get(DAEMON_SETS, "agent")["status"]["desiredNumberScheduled"] == 3
        w.simulation.cloud.delete(["workers-1"])
        await w.forward(90)
        targets = {_daemon_target(w.get("pods", key.name)) for key in w.view.pods}
        assert targets == {"workers-2", "workers-3"}


async def test_daemon_pods_tolerate_what_kubernetes_makes_them_tolerate() -> None:
    async with virtual_cluster() as w:
        host = {"hostNetwork": True, "containers": [{"name": "c", "image": "i"}]}
        await w.create(workload("DaemonSet", "agent", template=host))
        await w.forward(5)
        pod = w.get("pods", next(iter(w.view.pods)).name)
        held = {
            (one["key"].rpartition("/")[2], one["effect"])
            for one in pod["spec"]["tolerations"]
            if one["operator"] == "Exists" and "tolerationSeconds" not in one
        }
        assert held == {
            ("not-ready", "NoExecute"),
            ("unreachable", "NoExecute"),
            ("disk-pressure", "NoSchedule"),
            ("memory-pressure", "NoSchedule"),
            ("pid-pressure", "NoSchedule"),
            ("unschedulable", "NoSchedule"),
            ("network-unavailable", "NoSchedule"),
        }


async def test_daemon_pods_stay_on_a_dead_node() -> None:
    async with virtual_cluster() as w:
        await w.create(workload("DaemonSet", "agent"))
        await w.forward(5)
        for key in list(w.view.pods):
            await w.bind(key.name, _daemon_target(w.get("pods", key.name)))
        await w.forward(10)
        w.inject(kind="node-dies", node="workers-1")
        await w.forward(1000)
        assert not any(pod.is_terminating for pod in w.view.pods.values())


async def test_a_daemon_set_is_updated_one_node_after_the_other() -> None:
    async with virtual_cluster(CLUSTER.replace("count: 2", "count: 4"), placing=True) as w:
        agent = workload("DaemonSet", "agent", minReadySeconds=5)
        notes = {STOPS_IN: "15s"}
        agent["spec"]["template"]["metadata"]["annotations"] = notes
        await w.create(agent)
        await w.forward(60)
        await w.edit(DAEMON_SETS, "agent", new_image)
        least = 4
        for _ in range(400):
            await w.forward(0.5)
            least = min(
                least, sum(pod.is_ready and not pod.is_terminating for pod in w.view.pods.values())
            )
        assert least == 3
        status = w.get(DAEMON_SETS, "agent")["status"]
        assert (status["updatedNumberScheduled"], status["numberAvailable"]) == (4, 4)


async def test_daemon_pods_are_available_once_they_were_ready_for_long_enough() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(workload("DaemonSet", "agent", minReadySeconds=60))
        await w.forward(20)
        status = w.get(DAEMON_SETS, "agent")["status"]
        assert (status["numberReady"], status["numberAvailable"]) == (2, 0)
        await w.forward(60)
        assert w.get(DAEMON_SETS, "agent")["status"]["numberAvailable"] == 2


async def test_a_cordoned_node_keeps_its_daemon_pods() -> None:
    async with virtual_cluster() as w:
        await w.create(workload("DaemonSet", "agent"))
        await w.forward(5)
        await w.edit(NODES, "workers-1", _cordoned)
        await w.forward(30)
        assert w.get(DAEMON_SETS, "agent")["status"]["desiredNumberScheduled"] == 2


def _daemon_target(pod: Any) -> str:
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return str(terms[0]["matchFields"][0]["values"][0])


def _cordoned(obj: Any) -> Any:
    obj["spec"]["unschedulable"] = True
    return obj
