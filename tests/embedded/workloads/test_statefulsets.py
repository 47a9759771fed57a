"""Stateful sets make the pods that Kubernetes would make."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.embedded.control.view import (
    CLAIMS,
    STATEFUL_SETS,
)
from tests.embedded.simulation.virtual_clusters import virtual_cluster, workload
from tests.embedded.workloads.edits import names, new_image, scaled

pytestmark = pytest.mark.whole


async def test_an_ordered_set_makes_one_pod_after_the_other_and_ends_the_last_first() -> None:
    async with virtual_cluster() as w:
        await w.create(_stateful("db", replicas=3))
        await w.forward(5)
        assert names(w) == ["db-0"]
        await w.bind("db-0", "workers-1")
        await w.forward(30)
        assert names(w) == ["db-0", "db-1"]
        await w.bind("db-1", "workers-1")
        await w.forward(30)
        await w.bind("db-2", "workers-1")
        await w.forward(30)
        assert w.get(STATEFUL_SETS, "db")["status"]["readyReplicas"] == 3
        await w.edit(STATEFUL_SETS, "db", lambda obj: scaled(obj, 1))
        await w.forward(0.5)
        assert w.pod("db-2").is_terminating
        assert not w.pod("db-1").is_terminating
        await w.forward(30)
        assert names(w) == ["db-0"]
        # Claims outlive their pods.
        assert w.get(CLAIMS, "data-db-2") is not None


async def test_a_parallel_set_makes_all_its_pods_with_a_claim_each() -> None:
    async with virtual_cluster(placing=True) as w:
        await w.create(_stateful("db", replicas=5, podManagementPolicy="Parallel"))
        await w.forward(60)
        assert names(w) == [f"db-{number}" for number in range(5)]
        assert {w.claim_phase(f"data-db-{number}") for number in range(5)} == {"Bound"}
        assert w.pod("db-3").metadata.labels["apps.kubernetes.io/pod-index"] == "3"


async def test_a_set_that_says_so_deletes_the_claims_of_what_it_scales_down() -> None:
    async with virtual_cluster(placing=True) as w:
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
        await w.edit(STATEFUL_SETS, "db", lambda obj: scaled(obj, 1))
        await w.forward(60)
        assert [one["metadata"]["name"] for one in w.view.all(CLAIMS)] == ["data-db-0"]


async def test_an_updated_set_replaces_its_pods_from_the_last_one_down_to_the_partition() -> None:
    async with virtual_cluster(placing=True) as w:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
        await w.create(_stateful("db", replicas=3, updateStrategy=rolling))
        await w.forward(120)
        first = {name: w.pod(name).uid for name in names(w)}
        await w.edit(STATEFUL_SETS, "db", new_image)
        await w.forward(120)
        replaced = {name for name in names(w) if w.pod(name).uid != first[name]}
        assert replaced == {"db-1", "db-2"}
        assert w.get(STATEFUL_SETS, "db")["status"]["readyReplicas"] == 3


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
