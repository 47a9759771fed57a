"""Disruption budgets count."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.embedded.control.view import (
    BUDGETS,
    DEPLOYMENTS,
)
from bayplan.embedded.nodes.kubelet import EXIT_CODE, RUNS_FOR
from tests.embedded.simulation.virtual_clusters import virtual_cluster, workload
from tests.embedded.workloads.edits import new_image

pytestmark = pytest.mark.whole


async def test_a_budget_says_how_many_pods_may_be_disrupted() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(
            workload("Deployment", "web", replicas=4), _budget("web", minAvailable="50%")
        )
        await w.forward(30)
        status = w.get(BUDGETS, "web")["status"]
        assert (status["currentHealthy"], status["desiredHealthy"]) == (4, 2)
        assert status["disruptionsAllowed"] == 2
        w.inject(kind="node-dies", node=w.view.pods[next(iter(w.view.pods))].node)
        await w.forward(60)
        assert w.get(BUDGETS, "web")["status"]["disruptionsAllowed"] == 0


async def test_a_budget_by_unavailability_counts_the_wanted_replicas() -> None:
    async with virtual_cluster() as w:
        await w.create(workload("ReplicaSet", "rs", replicas=3), _budget("rs", maxUnavailable=1))
        await w.forward(5)
        status = w.get(BUDGETS, "rs")["status"]
        assert (status["expectedPods"], status["desiredHealthy"]) == (3, 2)
        assert status["disruptionsAllowed"] == 0


async def test_a_budget_of_a_rolling_deployment_counts_its_replicas_once() -> None:
    async with virtual_cluster(placing=True) as w:
        web = workload("Deployment", "web", replicas=4, minReadySeconds=20)
        await w.create(web, _budget("web", maxUnavailable=1))
        await w.forward(60)
        await w.edit(DEPLOYMENTS, "web", new_image)
        await w.forward(10)
        assert len(w.view.pods) == 5
        assert w.get(BUDGETS, "web")["status"]["expectedPods"] == 4


async def test_a_budget_of_pods_that_nobody_scales_allows_nothing_and_says_why() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(_job("sum", "10m"), _budget("sum", maxUnavailable=1))
        await w.forward(30)
        status = w.get(BUDGETS, "sum")["status"]
        assert status["disruptionsAllowed"] == 0
        assert status["conditions"][0]["reason"] == "SyncFailed"
        assert "scale" in status["conditions"][0]["message"]


def _job(name: str, runs_for: str, exit_code: str = "0", **spec: Any) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = workload("Job", name, template=pod, **spec)
    notes = {RUNS_FOR: runs_for, EXIT_CODE: exit_code}
    job["spec"]["template"]["metadata"]["annotations"] = notes
    return job


def _budget(app: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }
