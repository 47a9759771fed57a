"""Claims get volumes: provisioned or bound."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.embedded.control.view import CLAIMS, VOLUMES
from tests.embedded.csi.volumes import volume_by_hand
from tests.embedded.simulation.virtual_clusters import CLUSTER, claim, pod, virtual_cluster

pytestmark = pytest.mark.whole


async def test_a_claim_waits_until_its_pod_is_bound_by_hand() -> None:
    async with virtual_cluster() as w:
        await w.create(claim("data"), pod("p", claims=("data",)))
        await w.forward(60)
        assert w.claim_phase("data") == "Pending"
        assert w.events("WaitForFirstConsumer")
        await w.bind("p", "workers-2")
        await w.forward(30)
        assert w.claim_phase("data") == "Bound"
        assert w.pod("p").phase == "Running"


async def test_a_waiting_claim_is_provisioned_where_the_scheduler_chose() -> None:
    async with virtual_cluster() as w:
        await w.create(claim("data"))
        await w.forward(10)

        def select(obj: Any) -> Any:
            notes = {"volume.kubernetes.io/selected-node": "workers-2"}
            obj["metadata"]["annotations"] = notes
            return obj

        await w.edit(CLAIMS, "data", select)
        await w.forward(10)
        found = w.get(CLAIMS, "data")
        volume = w.get(VOLUMES, found["spec"]["volumeName"])
        term = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
        assert term["matchExpressions"][0]["values"] == ["zone-b"]
        assert found["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
        assert volume["status"]["phase"] == "Bound"


async def test_an_immediate_claim_is_bound_without_a_pod() -> None:
    async with virtual_cluster() as w:
        await w.create(claim("data", "at-once"))
        await w.forward(10)
        assert w.claim_phase("data") == "Bound"


async def test_a_choice_of_a_node_without_the_driver_is_taken_back() -> None:
    text = CLUSTER + "  - {name: bare, instanceType: large, count: 1}\n"
    async with virtual_cluster(text) as w:
        await w.create(claim("data"))

        def select(obj: Any) -> Any:
            obj["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": "bare-1"}
            return obj

        await w.edit(CLAIMS, "data", select)
        await w.forward(10)
        assert w.claim_phase("data") == "Pending"
        assert not w.get(CLAIMS, "data")["metadata"].get("annotations")
        assert w.events("ProvisioningFailed")


_BY_HAND = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "by-hand"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}


async def test_a_claim_of_no_driver_takes_the_smallest_volume_that_suits_it() -> None:
    async with virtual_cluster() as w:
        await w.create(
            volume_by_hand("big", "5Gi"),
            volume_by_hand("small", "500Mi"),
            volume_by_hand("fine", "2Gi"),
        )
        await w.create(claim("c", "by-hand"))
        await w.forward(5)
        assert w.get(CLAIMS, "c")["spec"]["volumeName"] == "fine"
        assert w.claim_phase("c") == "Bound"
        assert w.get(VOLUMES, "fine")["status"]["phase"] == "Bound"
        assert w.get(VOLUMES, "big")["status"]["phase"] == "Available"


async def test_two_claims_never_share_a_volume_and_one_that_comes_later_serves_the_other() -> None:
    async with virtual_cluster() as w:
        await w.create(volume_by_hand("one"), claim("a", "by-hand"), claim("b", "by-hand"))
        await w.forward(5)
        assert sorted(w.claim_phase(name) for name in "ab") == ["Bound", "Pending"]
        await w.create(volume_by_hand("two"))
        await w.forward(5)
        assert {w.get(CLAIMS, name)["spec"]["volumeName"] for name in "ab"} == {"one", "two"}


async def test_a_waiting_claim_takes_a_volume_that_its_pods_node_can_use() -> None:
    async with virtual_cluster() as w:
        await w.create(
            _BY_HAND, volume_by_hand("a", zone="zone-a"), volume_by_hand("b", "2Gi", zone="zone-b")
        )
        await w.create(claim("c", "by-hand"), pod("p", claims=("c",)))
        await w.forward(5)
        assert w.claim_phase("c") == "Pending"
        await w.bind("p", "workers-2")
        await w.forward(10)
        assert w.get(CLAIMS, "c")["spec"]["volumeName"] == "b"
        assert w.pod("p").phase == "Running"


async def test_a_volume_that_a_scheduler_reserved_is_the_claims() -> None:
    async with virtual_cluster() as w:
        reserved = {"namespace": "default", "name": "c", "kind": "PersistentVolumeClaim"}
        await w.create(_BY_HAND, claim("c", "by-hand"), volume_by_hand("v", claimRef=reserved))
        await w.forward(5)
        assert w.claim_phase("c") == "Bound"
        assert w.get(VOLUMES, "v")["spec"]["claimRef"]["uid"]
