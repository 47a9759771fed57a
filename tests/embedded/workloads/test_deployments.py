"""Deployments and replica sets make the pods that Kubernetes would make."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.embedded.control.view import (
    DEPLOYMENTS,
    REPLICA_SETS,
)
from tests.embedded.simulation.virtual_clusters import virtual_cluster, workload
from tests.embedded.workloads.edits import names, new_image, scaled

pytestmark = pytest.mark.whole


async def test_a_deployment_runs_its_replicas() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(workload("Deployment", "web", replicas=3))
        await w.forward(30)
        status = w.get(DEPLOYMENTS, "web")["status"]
        assert (status["availableReplicas"], status["updatedReplicas"]) == (3, 3)
        conditions = {one["type"]: one["status"] for one in status["conditions"]}
        assert conditions == {"Available": "True", "Progressing": "True"}


async def test_a_rolling_update_keeps_enough_pods_available() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(workload("Deployment", "web", replicas=4))
        await w.forward(30)
        await w.edit(DEPLOYMENTS, "web", new_image)
        least = 4
        for _ in range(60):
            await w.forward(0.5)
            least = min(least, w.get(DEPLOYMENTS, "web")["status"]["availableReplicas"])
        assert least >= 3
        images = {w.get("pods", key.name)["spec"]["containers"][0]["image"] for key in w.view.pods}
        assert images == {"new"}
        sizes = sorted(one["spec"]["replicas"] for one in w.view.all(REPLICA_SETS))
        assert sizes == [0, 4]


async def test_recreate_ends_the_old_before_it_begins_the_new() -> None:
    async with virtual_cluster(placing=True) as w:
        recreate = workload("Deployment", "web", replicas=2, strategy={"type": "Recreate"})
        await w.create(recreate)
        await w.forward(30)
        await w.edit(DEPLOYMENTS, "web", new_image)
        for _ in range(40):
            await w.forward(0.25)
            images = [
                w.get("pods", key.name)["spec"]["containers"][0]["image"] for key in w.view.pods
            ]
            assert len(set(images)) <= 1
        assert images == ["new", "new"]


async def test_recreate_does_not_wait_for_pods_that_have_ended() -> None:
    async with virtual_cluster() as w:
        huge = {"containers": [{"name": "c", "image": "i", "resources": _asking("100")}]}
        recreate = {"strategy": {"type": "Recreate"}, "template": huge}
        await w.create(workload("Deployment", "web", replicas=1, **recreate))
        await w.forward(1)
        await w.bind(names(w)[0], "workers-1")
        await w.forward(5)
        assert w.phases() == {"Failed": 1, "Pending": 1}
        await w.edit(DEPLOYMENTS, "web", new_image)
        await w.forward(30)
        images = {
            w.get("pods", key.name)["spec"]["containers"][0]["image"]
            for key, pod in w.view.pods.items()
            if pod.phase == "Pending"
        }
        assert images == {"new"}


async def test_a_scaled_down_replica_set_spares_those_that_run() -> None:
    async with virtual_cluster() as w:
        await w.create(workload("ReplicaSet", "rs", replicas=4))
        await w.forward(1)
        bound = sorted(key.name for key in w.view.pods)[:2]
        for name in bound:
            await w.bind(name, "workers-1")
        await w.forward(10)
        await w.edit(REPLICA_SETS, "rs", lambda obj: scaled(obj, 2))
        await w.forward(10)
        assert sorted(key.name for key in w.view.pods) == bound


async def test_a_deleted_deployment_leaves_nothing() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(workload("Deployment", "web", replicas=3))
        await w.forward(30)
        await w.delete(DEPLOYMENTS, "web")
        await w.forward(60)
        assert not w.view.pods
        assert not w.view.all(REPLICA_SETS)


def _asking(cpu: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu}}
