"""Jobs run pods until enough have succeeded or too many have failed."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.embedded.control.view import (
    JOBS,
)
from bayplan.embedded.nodes.kubelet import EXIT_CODE, RUNS_FOR
from tests.embedded.simulation.virtual_clusters import virtual_cluster, workload

pytestmark = pytest.mark.whole


async def test_a_job_completes_when_enough_pods_have_succeeded() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(_job("sum", "30s", completions=5, parallelism=2))
        await w.forward(20)
        assert w.get(JOBS, "sum")["status"]["active"] == 2
        await w.forward(200)
        status = w.get(JOBS, "sum")["status"]
        assert status["succeeded"] == 5
        assert status["conditions"][0]["type"] == "Complete"
        assert status["completionTime"]


async def test_an_indexed_job_has_each_index_once() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(_job("ix", "5s", completions=3, parallelism=3, completionMode="Indexed"))
        await w.forward(60)
        indices = sorted(
            pod.annotation("batch.kubernetes.io/job-completion-index")
            for pod in w.view.pods.values()
        )
        assert indices == ["0", "1", "2"]


async def test_a_job_fails_when_too_many_pods_have_failed() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(_job("bad", "5s", backoffLimit=2, exit_code="1"))
        await w.forward(200)
        status = w.get(JOBS, "bad")["status"]
        assert status["failed"] == 3
        assert status["conditions"][0]["reason"] == "BackoffLimitExceeded"


async def test_a_job_past_its_deadline_fails_and_ends_its_pods() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(_job("late", "1h", activeDeadlineSeconds=60))
        await w.forward(100)
        assert w.get(JOBS, "late")["status"]["conditions"][0]["reason"] == "DeadlineExceeded"
        assert not w.view.pods


async def test_a_finished_job_goes_after_its_time_to_live() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(_job("brief", "5s", ttlSecondsAfterFinished=100))
        await w.forward(60)
        assert w.get(JOBS, "brief")["status"]["succeeded"] == 1
        await w.forward(100)
        assert w.get(JOBS, "brief") is None
        assert not w.view.pods


def _job(name: str, runs_for: str, exit_code: str = "0", **spec: Any) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = workload("Job", name, template=pod, **spec)
    notes = {RUNS_FOR: runs_for, EXIT_CODE: exit_code}
    job["spec"]["template"]["metadata"]["annotations"] = notes
    return job
