"""Objects that a client may store but nobody expects stop neither the server nor the cluster."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from bayplan.embedded.apiserver.errors import StatusError
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.control.controller import Update
from tests.embedded.simulation.virtual_clusters import (
    VirtualCluster,
    claim,
    pod,
    virtual_cluster,
    workload,
)

pytestmark = pytest.mark.whole


NULLS: dict[str, Any] = {
    "volumes": None,
    "tolerations": None,
    "nodeSelector": None,
    "affinity": None,
}
ODD: dict[str, dict[str, Any]] = {
    "a pod with nulls": pod("odd", **NULLS),
    "a pod with odd annotations": pod(
        "odd",
        restartPolicy="Never",
        annotations={
            "simulation.bayplan.io/runs-for": "for ever",
            "simulation.bayplan.io/exit-code": "-1",
        },
    ),
    "a pod on a node that is not there": pod("odd", nodeName="nowhere"),
    "a pod with a claim that is not there": pod("odd", claims=("none",), nodeName="workers-1"),
    "an attachment of nothing": {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": "odd"},
        "spec": {"attacher": "x", "nodeName": "workers-1", "source": {}},
    },
    "a bare node": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "odd"}},
    "an empty CSINode": {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "odd"},
        "spec": {"drivers": []},
    },
    "a claim of a class that is not there": claim("odd", "none"),
    "a volume without a driver": {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "odd"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/"},
        },
    },
    "a deployment of none": workload("Deployment", "odd", replicas=0),
    "a budget without a selector": {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "odd"},
        "spec": {"minAvailable": "many"},
    },
    "a job of nothing": workload(
        "Job",
        "odd",
        parallelism=0,
        template={"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    ),
}


@pytest.mark.parametrize("what", ODD)
async def test_the_cluster_goes_on(what: str) -> None:
    async with virtual_cluster(placing=True) as w:
        with contextlib.suppress(StatusError):  # it may be refused, too
            await w.create(ODD[what])
        await w.forward(120)
        await _goes_on(w)
        assert w.simulation.engine.failures == 0


async def test_a_status_that_somebody_emptied_is_written_anew() -> None:
    async with virtual_cluster() as w:
        await w.create(pod("p"))
        await w.bind("p", "workers-1")
        await w.forward(30)
        await _empty_status(w, "pods", "p")
        await w.forward(60)
        await _goes_on(w)
        assert w.pod("p").phase == "Running"


async def _empty_status(w: VirtualCluster, storage: str, name: str) -> None:
    def emptied(obj: Any) -> Any:
        obj["status"] = {"conditions": None}
        return obj

    await w.simulation.sink.apply(Update(ObjectKey(storage, "default", name), emptied, "status"))


async def _goes_on(w: VirtualCluster) -> None:
    await w.create(pod("after"))
    if not w.pod("after").node:
        await w.bind("after", "workers-2")
    await w.forward(30)
    assert w.pod("after").phase == "Running"
