"""What a new pod is given, and which part of it a write changes."""

from __future__ import annotations

import pytest

from tests.embedded.apiserver.http_client import Http
from tests.embedded.apiserver.pods import GATED, PODS, asking, binding, pod


async def test_a_gated_pod_says_so_from_the_beginning(http: Http) -> None:
    made = (await http.post(PODS, pod(**GATED))).body
    (condition,) = made["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert condition["reason"] == "SchedulingGated"


async def test_gates_can_only_be_removed(http: Http) -> None:
    await http.post(PODS, pod(**GATED))
    more = [*GATED["schedulingGates"], {"name": "example.com/new"}]
    refused = await http.patch(f"{PODS}/a", {"spec": {"schedulingGates": more}})
    assert refused.code == 422
    assert "only deletion is allowed" in refused.body["message"]
    fewer = await http.patch(
        f"{PODS}/a", {"spec": {"schedulingGates": GATED["schedulingGates"][:1]}}
    )
    assert fewer.code == 200


async def test_a_pod_cannot_be_created_with_gates_and_a_node(http: Http) -> None:
    refused = await http.post(PODS, pod(nodeName="n1", **GATED))
    assert refused.code == 422
    assert "cannot be set until all schedulingGates have been cleared" in refused.body["message"]


async def test_a_node_comes_by_binding_only(http: Http) -> None:
    await http.post(PODS, pod())
    refused = await http.patch(f"{PODS}/a", {"spec": {"nodeName": "n1"}})
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")


@pytest.mark.parametrize(
    "name",
    ["attachable-volumes-aws-ebs", "attachable-volumes-csi-x.y", "storage-attach-limits-gce-pd"],
)
async def test_attach_limits_cannot_be_asked_for(http: Http, name: str) -> None:
    refused = await http.post(PODS, asking(**{name: "1"}))
    assert refused.code == 422
    assert refused.body["details"]["causes"][0]["field"].endswith(f"requests[{name}]")


@pytest.mark.parametrize("quantity", ["", "abc", "1Q", "--1", "1e", "0x5"])
async def test_quantities_must_parse(http: Http, quantity: str) -> None:
    refused = await http.post(PODS, asking(cpu=quantity))
    assert (refused.code, refused.body["reason"]) == (400, "BadRequest")


async def test_quantities_are_kept_as_kubernetes_prints_them(http: Http) -> None:
    made = (await http.post(PODS, asking(cpu="0.5", memory="1024Mi"))).body
    requests = made["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "500m", "memory": "1Gi"}


async def test_requests_default_to_limits(http: Http) -> None:
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}}
    body = pod(containers=[{"name": "main", "image": "i", "resources": resources}])
    made = (await http.post(PODS, body)).body
    assert made["spec"]["containers"][0]["resources"]["requests"] == resources["limits"]
    assert made["status"]["qosClass"] == "Guaranteed"


async def test_status_and_spec_are_written_apart(http: Http) -> None:
    await http.post(PODS, pod())
    change = {"status": {"phase": "Running"}, "metadata": {"labels": {"x": "y"}}}
    plain = (await http.patch(f"{PODS}/a", change)).body
    assert (plain["status"]["phase"], plain["metadata"]["labels"]) == ("Pending", {"x": "y"})
    both = {"status": {"phase": "Running"}, "spec": {"nodeName": "n1"}}
    status = (await http.patch(f"{PODS}/a/status", both)).body
    assert status["status"]["phase"] == "Running"
    assert "nodeName" not in status["spec"]


async def test_a_running_pod_gets_time_to_end(http: Http) -> None:
    await http.post(PODS, pod(terminationGracePeriodSeconds=20))
    await http.post(f"{PODS}/a/binding", binding())
    going = (await http.delete(f"{PODS}/a")).body
    assert going["metadata"]["deletionGracePeriodSeconds"] == 20
    assert (await http.get(f"{PODS}/a")).code == 200
    await http.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert (await http.get(f"{PODS}/a")).code == 404


async def test_a_pod_without_a_node_goes_at_once(http: Http) -> None:
    await http.post(PODS, pod())
    await http.delete(f"{PODS}/a")
    assert (await http.get(f"{PODS}/a")).code == 404


async def test_pods_of_a_node_can_be_selected(http: Http) -> None:
    for name in ("a", "b"):
        await http.post(PODS, pod(name))
    await http.post(f"{PODS}/a/binding", binding())
    found = (await http.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1")).body["items"]
    unbound = (await http.get("/api/v1/pods?fieldSelector=spec.nodeName%3D")).body["items"]
    assert [item["metadata"]["name"] for item in found] == ["a"]
    assert [item["metadata"]["name"] for item in unbound] == ["b"]
