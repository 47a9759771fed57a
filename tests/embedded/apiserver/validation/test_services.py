"""Services: what they are given, what they keep, and what is refused of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.apiserver.http_client import MERGE, Http

SERVICES = "/api/v1/namespaces/default/services"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


def service(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def test_a_service_keeps_its_address_whoever_writes_it_back(http: Http) -> None:
    made = (await http.post(SERVICES, service())).body
    assert made["spec"]["clusterIPs"] == [made["spec"]["clusterIP"]]
    again = service(ports=[{"port": 81}])
    again["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    kept = (await http.put(f"{SERVICES}/a", again)).body
    assert kept["spec"]["clusterIP"] == made["spec"]["clusterIP"]
    assert kept["spec"]["ports"][0]["port"] == 81


async def test_a_services_address_cannot_be_changed(http: Http) -> None:
    await http.post(SERVICES, service())
    other = {"spec": {"clusterIP": "10.96.9.9", "clusterIPs": ["10.96.9.9"]}}
    refused = await http.patch(f"{SERVICES}/a", other, MERGE)
    assert refused.code == 422
    assert "spec.clusterIPs[0]: Invalid value" in refused.body["message"]
    assert "may not change once set" in refused.body["message"]


async def test_ports_of_nodes_are_given_once_and_kept(http: Http) -> None:
    ports = [{"name": "x", "port": 80}, {"name": "y", "port": 81}]
    made = (await http.post(SERVICES, service(type="NodePort", ports=ports))).body
    given = [port["nodePort"] for port in made["spec"]["ports"]]
    assert len(set(given)) == 2
    assert all(30000 <= number < 32768 for number in given)
    patched = await http.patch(f"{SERVICES}/a", {"spec": {"ports": ports}}, MERGE)
    assert [port["nodePort"] for port in patched.body["spec"]["ports"]] == given


async def test_a_service_that_is_opened_on_nodes_gets_its_ports_then(http: Http) -> None:
    await http.post(SERVICES, service())
    opened = await http.patch(f"{SERVICES}/a", {"spec": {"type": "NodePort"}}, MERGE)
    assert opened.body["spec"]["ports"][0]["nodePort"] >= 30000


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"ports": []}, "spec.ports: Required value"),
        ({"ports": [{"port": 0}]}, "spec.ports[0].port: Invalid value: 0"),
        ({"ports": [{"port": 1}, {"port": 2}]}, "spec.ports[0].name: Required value"),
        ({"ports": [{"port": 1, "nodePort": 30000}]}, "may not be used when `type` is 'ClusterIP'"),
        ({"ports": [{"port": 1, "protocol": "X"}]}, 'supported values: "SCTP", "TCP", "UDP"'),
        ({"type": "X"}, "spec.type: Unsupported value"),
        ({"type": "ExternalName", "ports": []}, "spec.externalName: Required value"),
        ({"type": "NodePort", "clusterIP": "None"}, "may not be set to 'None' for NodePort"),
        ({"clusterIP": "10.0.0.999"}, "spec.clusterIPs[0]: Invalid value"),
        ({"sessionAffinity": "X"}, "spec.sessionAffinity: Unsupported value"),
    ],
)
async def test_a_service_that_cannot_be_served_is_refused(
    http: Http, spec: dict[str, Any], words: str
) -> None:
    refused = await http.post(SERVICES, service(**spec))
    assert refused.code == 422
    assert words in refused.body["message"]


async def test_a_deleted_jobs_pods_are_left_alone_unless_said_otherwise(http: Http) -> None:
    container = {"name": "c", "image": "i"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {"metadata": {"name": "j", "finalizers": ["example.com/stay"]}}
    await http.post(JOBS, {**job, "spec": {"template": template}})
    going = (await http.delete(f"{JOBS}/j")).body
    assert going["metadata"]["finalizers"] == ["example.com/stay", "orphan"]
