"""Workloads make the pods that Kubernetes would make."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.embedded.control.view import (
    BUDGETS,
    CLAIMS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from bayplan.embedded.nodes.kubelet import EXIT_CODE, RUNS_FOR, STOPS_IN
from tests.simulation.worlds import CLUSTER, World, workload, world

pytestmark = pytest.mark.whole


async def test_a_deployment_runs_its_replicas() -> None:
    async with world(placing=True) as w:
        await w.create(workload("Deployment", "web", replicas=3))
        await w.forward(30)
        status = w.get(DEPLOYMENTS, "web")["status"]
        assert (status["availableReplicas"], status["updatedReplicas"]) == (3, 3)
        conditions = {one["type"]: one["status"] for one in status["conditions"]}
        assert conditions == {"Available": "True", "Progressing": "True"}


async def test_a_rolling_update_keeps_enough_pods_available() -> None:
    async with world(placing=True) as w:
        await w.create(workload("Deployment", "web", replicas=4))
        await w.forward(30)
        await w.edit(DEPLOYMENTS, "web", _new_image)
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
    async with world(placing=True) as w:
        recreate = workload("Deployment", "web", replicas=2, strategy={"type": "Recreate"})
        await w.create(recreate)
        await w.forward(30)
        await w.edit(DEPLOYMENTS, "web", _new_image)
        for _ in range(40):
            await w.forward(0.25)
            images = [
                w.get("pods", key.name)["spec"]["containers"][0]["image"] for key in w.view.pods
            ]
            assert len(set(images)) <= 1
        assert images == ["new", "new"]


async def test_recreate_does_not_wait_for_pods_that_have_ended() -> None:
    async with world() as w:
        huge = {"containers": [{"name": "c", "image": "i", "resources": _asking("100")}]}
        recreate = {"strategy": {"type": "Recreate"}, "template": huge}
        await w.create(workload("Deployment", "web", replicas=1, **recreate))
        await w.forward(1)
        await w.bind(_names(w)[0], "workers-1")
        await w.forward(5)
        assert w.phases() == {"Failed": 1, "Pending": 1}
        await w.edit(DEPLOYMENTS, "web", _new_image)
        await w.forward(30)
        images = {
            w.get("pods", key.name)["spec"]["containers"][0]["image"]
            for key, pod in w.view.pods.items()
            if pod.phase == "Pending"
        }
        assert images == {"new"}


async def test_a_scaled_down_replica_set_spares_those_that_run() -> None:
    async with world() as w:
        await w.create(workload("ReplicaSet", "rs", replicas=4))
        await w.forward(1)
        bound = sorted(key.name for key in w.view.pods)[:2]
        for name in bound:
            await w.bind(name, "workers-1")
        await w.forward(10)
        await w.edit(REPLICA_SETS, "rs", lambda obj: _scaled(obj, 2))
        await w.forward(10)
        assert sorted(key.name for key in w.view.pods) == bound


async def test_a_deleted_deployment_leaves_nothing() -> None:
    async with world(placing=True) as w:
        await w.create(workload("Deployment", "web", replicas=3))
        await w.forward(30)
        await w.delete(DEPLOYMENTS, "web")
        await w.forward(60)
        assert not w.view.pods
        assert not w.view.all(REPLICA_SETS)


async def test_an_ordered_set_makes_one_pod_after_the_other_and_ends_the_last_first() -> None:
    async with world() as w:
        await w.create(_stateful("db", replicas=3))
        await w.forward(5)
        assert _names(w) == ["db-0"]
        await w.bind("db-0", "workers-1")
        await w.forward(30)
        assert _names(w) == ["db-0", "db-1"]
        await w.bind("db-1", "workers-1")
        await w.forward(30)
        await w.bind("db-2", "workers-1")
        await w.forward(30)
        assert w.get(STATEFUL_SETS, "db")["status"]["readyReplicas"] == 3
        await w.edit(STATEFUL_SETS, "db", lambda obj: _scaled(obj, 1))
        await w.forward(0.5)
        assert w.pod("db-2").deleting
        assert not w.pod("db-1").deleting
        await w.forward(30)
        assert _names(w) == ["db-0"]
        # Claims outlive their pods.
        assert w.get(CLAIMS, "data-db-2") is not None


async def test_a_parallel_set_makes_all_its_pods_with_a_claim_each() -> None:
    async with world(placing=True) as w:
        await w.create(_stateful("db", replicas=5, podManagementPolicy="Parallel"))
        await w.forward(60)
        assert _names(w) == [f"db-{number}" for number in range(5)]
        assert {w.claim_phase(f"data-db-{number}") for number in range(5)} == {"Bound"}
        assert w.pod("db-3").metadata.labels["apps.kubernetes.io/pod-index"] == "3"


async def test_a_set_that_says_so_deletes_the_claims_of_what_it_scales_down() -> None:
    async with world(placing=True) as w:
        policy = {"whenScaled": "Delete"}
        await w.create(
            _stateful(
                "db",
                replicas=3,
                podManagementPolicy="Parallel",
                persistentVolumeClaimRetentionPolicy=policy,
            )
        )
        await w.forward(60)
        await w.edit(STATEFUL_SETS, "db", lambda obj: _scaled(obj, 1))
        await w.forward(60)
        assert [one["metadata"]["name"] for one in w.view.all(CLAIMS)] == ["data-db-0"]


async def test_an_updated_set_replaces_its_pods_from_the_last_one_down_to_the_partition() -> None:
    async with world(placing=True) as w:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
        await w.create(_stateful("db", replicas=3, updateStrategy=rolling))
        await w.forward(120)
        first = {name: w.pod(name).uid for name in _names(w)}
        await w.edit(STATEFUL_SETS, "db", _new_image)
        await w.forward(120)
        replaced = {name for name in _names(w) if w.pod(name).uid != first[name]}
        assert replaced == {"db-1", "db-2"}
        assert w.get(STATEFUL_SETS, "db")["status"]["readyReplicas"] == 3


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
    async with world(text) as w:
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
    async with world() as w:
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
    async with world() as w:
        await w.create(workload("DaemonSet", "agent"))
        await w.forward(5)
        for key in list(w.view.pods):
            await w.bind(key.name, _daemon_target(w.get("pods", key.name)))
        await w.forward(10)
        w.inject(kind="node-dies", node="workers-1")
        await w.forward(1000)
        assert not any(pod.deleting for pod in w.view.pods.values())


async def test_a_job_completes_when_enough_pods_have_succeeded() -> None:
    async with world(placing=True) as w:
        await w.create(_job("sum", "30s", completions=5, parallelism=2))
        await w.forward(20)
        assert w.get(JOBS, "sum")["status"]["active"] == 2
        await w.forward(200)
        status = w.get(JOBS, "sum")["status"]
        assert status["succeeded"] == 5
        assert status["conditions"][0]["type"] == "Complete"
        assert status["completionTime"]


async def test_an_indexed_job_has_each_index_once() -> None:
    async with world(placing=True) as w:
        await w.create(_job("ix", "5s", completions=3, parallelism=3, completionMode="Indexed"))
        await w.forward(60)
        indices = sorted(
            pod.annotation("batch.kubernetes.io/job-completion-index")
            for pod in w.view.pods.values()
        )
        assert indices == ["0", "1", "2"]


async def test_a_job_fails_when_too_many_pods_have_failed() -> None:
    async with world(placing=True) as w:
        await w.create(_job("bad", "5s", backoffLimit=2, exit_code="1"))
        await w.forward(200)
        status = w.get(JOBS, "bad")["status"]
        assert status["failed"] == 3
        assert status["conditions"][0]["reason"] == "BackoffLimitExceeded"


async def test_a_job_past_its_deadline_fails_and_ends_its_pods() -> None:
    async with world(placing=True) as w:
        await w.create(_job("late", "1h", activeDeadlineSeconds=60))
        await w.forward(100)
        assert w.get(JOBS, "late")["status"]["conditions"][0]["reason"] == "DeadlineExceeded"
        assert not w.view.pods


async def test_a_finished_job_goes_after_its_time_to_live() -> None:
    async with world(placing=True) as w:
        await w.create(_job("brief", "5s", ttlSecondsAfterFinished=100))
        await w.forward(60)
        assert w.get(JOBS, "brief")["status"]["succeeded"] == 1
        await w.forward(100)
        assert w.get(JOBS, "brief") is None
        assert not w.view.pods


async def test_a_budget_says_how_many_pods_may_be_disrupted() -> None:
    async with world(placing=True) as w:
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
    async with world() as w:
        await w.create(workload("ReplicaSet", "rs", replicas=3), _budget("rs", maxUnavailable=1))
        await w.forward(5)
        status = w.get(BUDGETS, "rs")["status"]
        assert (status["expectedPods"], status["desiredHealthy"]) == (3, 2)
        assert status["disruptionsAllowed"] == 0


async def test_a_budget_of_a_rolling_deployment_counts_its_replicas_once() -> None:
    async with world(placing=True) as w:
        web = workload("Deployment", "web", replicas=4, minReadySeconds=20)
        await w.create(web, _budget("web", maxUnavailable=1))
        await w.forward(60)
        await w.edit(DEPLOYMENTS, "web", _new_image)
        await w.forward(10)
        assert len(w.view.pods) == 5
        assert w.get(BUDGETS, "web")["status"]["expectedPods"] == 4


async def test_a_budget_of_pods_that_nobody_scales_allows_nothing_and_says_why() -> None:
    async with world(placing=True) as w:
        await w.create(_job("sum", "10m"), _budget("sum", maxUnavailable=1))
        await w.forward(30)
        status = w.get(BUDGETS, "sum")["status"]
        assert status["disruptionsAllowed"] == 0
        assert status["conditions"][0]["reason"] == "SyncFailed"
        assert "scale" in status["conditions"][0]["message"]


async def test_a_daemon_set_is_updated_one_node_after_the_other() -> None:
    async with world(CLUSTER.replace("count: 2", "count: 4"), placing=True) as w:
        agent = workload("DaemonSet", "agent", minReadySeconds=5)
        notes = {STOPS_IN: "15s"}
        agent["spec"]["template"]["metadata"]["annotations"] = notes
        await w.create(agent)
        await w.forward(60)
        await w.edit(DAEMON_SETS, "agent", _new_image)
        least = 4
        for _ in range(400):
            await w.forward(0.5)
            least = min(least, sum(pod.ready and not pod.deleting for pod in w.view.pods.values()))
        assert least == 3
        status = w.get(DAEMON_SETS, "agent")["status"]
        assert (status["updatedNumberScheduled"], status["numberAvailable"]) == (4, 4)


async def test_daemon_pods_are_available_once_they_were_ready_for_long_enough() -> None:
    async with world(placing=True) as w:
        await w.create(workload("DaemonSet", "agent", minReadySeconds=60))
        await w.forward(20)
        status = w.get(DAEMON_SETS, "agent")["status"]
        assert (status["numberReady"], status["numberAvailable"]) == (2, 0)
        await w.forward(60)
        assert w.get(DAEMON_SETS, "agent")["status"]["numberAvailable"] == 2


async def test_a_cordoned_node_keeps_its_daemon_pods() -> None:
    async with world() as w:
        await w.create(workload("DaemonSet", "agent"))
        await w.forward(5)
        await w.edit(NODES, "workers-1", _cordoned)
        await w.forward(30)
        assert w.get(DAEMON_SETS, "agent")["status"]["desiredNumberScheduled"] == 2


def _stateful(name: str, **spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    wanted = {"serviceName": name, "volumeClaimTemplates": [template], **spec}
    return workload("StatefulSet", name, **wanted)


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


def _asking(cpu: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu}}


def _daemon_target(pod: Any) -> str:
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return str(terms[0]["matchFields"][0]["values"][0])


def _names(w: World) -> list[str]:
    return sorted(key.name for key in w.view.pods)


def _scaled(obj: Any, replicas: int) -> Any:
    obj["spec"]["replicas"] = replicas
    return obj


def _new_image(obj: Any) -> Any:
    obj["spec"]["template"]["spec"]["containers"][0]["image"] = "new"
    return obj


def _cordoned(obj: Any) -> Any:
    obj["spec"]["unschedulable"] = True
    return obj
