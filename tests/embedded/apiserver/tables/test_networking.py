"""Kinds that are kept and shown, and that nothing acts on."""

from __future__ import annotations

from tests.embedded.apiserver.http_client import Http

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
HPAS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"


async def test_an_autoscaler_of_pods_is_shown_as_kubectl_shows_it(http: Http) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"scaleTargetRef": target, "maxReplicas": 5}
    made = await http.post(HPAS, {"metadata": {"name": "a"}, "spec": spec})
    assert made.code == 201
    assert made.body["spec"]["minReplicas"] == 1
    (row,) = (await http.get(HPAS, Accept=TABLE)).body["rows"]
    assert row["cells"][:6] == ["a", "Deployment/d", "cpu: <unknown>/80%", "1", 5, 0]


async def test_a_network_policy_says_what_it_is_about(http: Http) -> None:
    spec = {"podSelector": {"matchLabels": {"app": "a"}}, "egress": [{"ports": [{"port": 53}]}]}
    made = await http.post(POLICIES, {"metadata": {"name": "a"}, "spec": spec})
    assert made.body["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert made.body["spec"]["egress"][0]["ports"] == [{"port": 53, "protocol": "TCP"}]
    (row,) = (await http.get(POLICIES, Accept=TABLE)).body["rows"]
    assert row["cells"][:2] == ["a", "app=a"]


async def test_an_ingress_shows_its_hosts_and_ports(http: Http) -> None:
    spec = {"rules": [{"host": "a.example.com"}], "tls": [{"hosts": ["a.example.com"]}]}
    made = await http.post(INGRESSES, {"metadata": {"name": "a"}, "spec": spec})
    assert (made.code, made.body["status"]) == (201, {"loadBalancer": {}})
    (row,) = (await http.get(INGRESSES, Accept=TABLE)).body["rows"]
    assert row["cells"][:5] == ["a", "<none>", "a.example.com", "", "80, 443"]
