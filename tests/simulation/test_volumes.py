"""Claims get volumes, volumes get attached, and a machine attaches no more than it really can."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.embedded.control.view import ATTACHMENTS, CLAIMS, CSI_NODES, VOLUMES
from tests.simulation.worlds import CLUSTER, DRIVER, claim, pod, world

pytestmark = pytest.mark.whole


async def test_a_claim_waits_until_its_pod_is_bound_by_hand() -> None:
    async with world() as w:
        await w.create(claim("data"), pod("p", claims=("data",)))
        await w.forward(60)
        assert w.claim_phase("data") == "Pending"
        assert w.events("WaitForFirstConsumer")
        await w.bind("p", "workers-2")
        await w.forward(30)
        assert w.claim_phase("data") == "Bound"
        assert w.pod("p").phase == "Running"


async def test_a_waiting_claim_is_provisioned_where_the_scheduler_chose() -> None:
    async with world() as w:
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
    async with world() as w:
        await w.create(claim("data", "at-once"))
        await w.forward(10)
        assert w.claim_phase("data") == "Bound"


async def test_a_choice_of_a_node_without_the_driver_is_taken_back() -> None:
    text = CLUSTER + "  - {name: bare, instanceType: large, count: 1}\n"
    async with world(text) as w:
        await w.create(claim("data"))

        def select(obj: Any) -> Any:
            obj["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": "bare-1"}
            return obj

        await w.edit(CLAIMS, "data", select)
        await w.forward(10)
        assert w.claim_phase("data") == "Pending"
        assert not w.get(CLAIMS, "data")["metadata"].get("annotations")
        assert w.events("ProvisioningFailed")


async def test_a_machine_over_its_real_limit_fails_to_attach_and_recovers() -> None:
    text = CLUSTER.replace("limit: 8", "limit: 20\n        realLimit: 3")
    async with world(text) as w:
        for number in range(4):
            await w.create(claim(f"c{number}"), pod(f"p{number}", claims=(f"c{number}",)))
            await w.bind(f"p{number}", "workers-1")
        await w.forward(120)
        assert w.phases() == {"Running": 3, "Pending": 1}
        stuck = next(key.name for key, one in w.view.pods.items() if one.phase == "Pending")
        told = w.events("FailedAttachVolume")
        assert {one["involvedObject"]["name"] for one in told} == {stuck}
        assert told[0]["count"] > 2
        await w.delete("pods", "p0" if stuck != "p0" else "p1")
        await w.forward(60)
        assert w.pod(stuck).phase == "Running"


async def test_a_volume_moves_only_when_its_first_node_has_let_it_go() -> None:
    # One zone, so that the volume may be used on both nodes.
    async with world(CLUSTER.replace("zones: [zone-a, zone-b]", "zones: [zone-a]")) as w:
        await w.create(claim("c"), pod("one", claims=("c",)))
        await w.bind("one", "workers-1")
        await w.forward(30)
        await w.create(pod("two", claims=("c",)))
        await w.bind("two", "workers-2")
        await w.forward(30)
        assert w.pod("two").phase == "Pending"
        assert "Multi-Attach" in w.events("FailedAttachVolume")[0]["message"]
        await w.delete("pods", "one")
        await w.forward(60)
        assert w.pod("two").phase == "Running"
        attached = [one["spec"]["nodeName"] for one in w.view.all(ATTACHMENTS)]
        assert attached == ["workers-2"]


async def test_a_deleted_claim_takes_its_volume_along_once_it_is_detached() -> None:
    async with world() as w:
        await w.create(claim("c"), pod("p", claims=("c",)))
        await w.bind("p", "workers-1")
        await w.forward(30)
        assert len(w.view.all(VOLUMES)) == 1
        await w.delete("pods", "p")
        await w.delete(CLAIMS, "c")
        await w.forward(30)
        assert w.view.all(VOLUMES) == []
        assert w.view.all(ATTACHMENTS) == []


async def test_a_deleted_claim_stays_while_a_pod_on_a_node_uses_it() -> None:
    async with world() as w:
        await w.create(claim("c"), pod("p", claims=("c",)))
        await w.bind("p", "workers-1")
        await w.forward(30)
        await w.delete(CLAIMS, "c")
        await w.forward(600)
        assert w.get(CLAIMS, "c")["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
        assert w.view.all(VOLUMES)[0]["status"]["phase"] == "Bound"
        await w.delete("pods", "p")
        await w.forward(60)
        assert w.view.all(CLAIMS) == []
        assert w.view.all(VOLUMES) == []


async def test_a_deleted_claim_that_no_pod_uses_goes_at_once() -> None:
    async with world() as w:
        await w.create(claim("c"), pod("p", claims=("c",)))
        await w.delete(CLAIMS, "c")
        await w.forward(1)
        assert w.view.all(CLAIMS) == []


async def test_a_deleted_volume_stays_while_it_is_bound() -> None:
    async with world() as w:
        await w.create(claim("c"), pod("p", claims=("c",)))
        await w.bind("p", "workers-1")
        await w.forward(30)
        name = w.view.all(VOLUMES)[0]["metadata"]["name"]
        await w.delete(VOLUMES, name)
        await w.forward(600)
        assert w.get(VOLUMES, name)["status"]["phase"] == "Bound"
        await w.delete("pods", "p")
        await w.delete(CLAIMS, "c")
        await w.forward(60)
        assert w.view.all(VOLUMES) == []


async def test_a_driver_registers_with_its_limit_or_with_none() -> None:
    text = (
        CLUSTER
        + f"""
  - name: endless
    instanceType: large
    count: 1
    drivers: [{{name: {DRIVER}, limit: none, delay: 100s}}]
"""
    )
    async with world(text) as w:
        limited = w.get(CSI_NODES, "workers-1")["spec"]["drivers"]
        assert limited[0]["allocatable"] == {"count": 8}
        assert not w.get(CSI_NODES, "endless-1")["spec"]["drivers"]
        await w.forward(100)
        late = w.get(CSI_NODES, "endless-1")["spec"]["drivers"]
        assert late[0]["name"] == DRIVER
        assert "allocatable" not in late[0]


async def test_an_ephemeral_volume_comes_and_goes_with_its_pod() -> None:
    template = {"spec": claim("x")["spec"]}
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    async with world() as w:
        await w.create(pod("p", volumes=[volume]))
        await w.bind("p", "workers-1")
        await w.forward(30)
        assert w.claim_phase("p-scratch") == "Bound"
        assert w.pod("p").phase == "Running"
        await w.delete("pods", "p")
        await w.forward(30)
        assert w.get(CLAIMS, "p-scratch") is None


def _volume(name: str, size: str = "1Gi", zone: str = "", **spec: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "storageClassName": "by-hand",
        "hostPath": {"path": "/"},
        **spec,
    }
    if zone:
        wanted = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
        terms = [{"matchExpressions": [wanted]}]
        made["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": made}


_BY_HAND = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "by-hand"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}


async def test_a_claim_of_no_driver_takes_the_smallest_volume_that_suits_it() -> None:
    async with world() as w:
        await w.create(_volume("big", "5Gi"), _volume("small", "500Mi"), _volume("fine", "2Gi"))
        await w.create(claim("c", "by-hand"))
        await w.forward(5)
        assert w.get(CLAIMS, "c")["spec"]["volumeName"] == "fine"
        assert w.claim_phase("c") == "Bound"
        assert w.get(VOLUMES, "fine")["status"]["phase"] == "Bound"
        assert w.get(VOLUMES, "big")["status"]["phase"] == "Available"


async def test_two_claims_never_share_a_volume_and_one_that_comes_later_serves_the_other() -> None:
    async with world() as w:
        await w.create(_volume("one"), claim("a", "by-hand"), claim("b", "by-hand"))
        await w.forward(5)
        assert sorted(w.claim_phase(name) for name in "ab") == ["Bound", "Pending"]
        await w.create(_volume("two"))
        await w.forward(5)
        assert {w.get(CLAIMS, name)["spec"]["volumeName"] for name in "ab"} == {"one", "two"}


async def test_a_waiting_claim_takes_a_volume_that_its_pods_node_can_use() -> None:
    async with world() as w:
        await w.create(_BY_HAND, _volume("a", zone="zone-a"), _volume("b", "2Gi", zone="zone-b"))
        await w.create(claim("c", "by-hand"), pod("p", claims=("c",)))
        await w.forward(5)
        assert w.claim_phase("c") == "Pending"
        await w.bind("p", "workers-2")
        await w.forward(10)
        assert w.get(CLAIMS, "c")["spec"]["volumeName"] == "b"
        assert w.pod("p").phase == "Running"


async def test_a_volume_that_a_scheduler_reserved_is_the_claims() -> None:
    async with world() as w:
        reserved = {"namespace": "default", "name": "c", "kind": "PersistentVolumeClaim"}
        await w.create(_BY_HAND, claim("c", "by-hand"), _volume("v", claimRef=reserved))
        await w.forward(5)
        assert w.claim_phase("c") == "Bound"
        assert w.get(VOLUMES, "v")["spec"]["claimRef"]["uid"]


async def test_a_retained_volume_is_released_and_serves_nobody_else() -> None:
    async with world() as w:
        await w.create(_volume("v"), claim("a", "by-hand"))
        await w.forward(5)
        await w.delete(CLAIMS, "a")
        await w.create(claim("b", "by-hand"))
        await w.forward(5)
        assert w.get(VOLUMES, "v")["status"]["phase"] == "Released"
        assert w.claim_phase("b") == "Pending"
