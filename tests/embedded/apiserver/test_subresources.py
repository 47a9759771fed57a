"""Binding and eviction."""

from __future__ import annotations

import pytest

from tests.embedded.apiserver.http_client import Http
from tests.embedded.apiserver.pods import GATED, PODS, binding, pod


async def test_a_gated_pod_cannot_be_bound(http: Http) -> None:
    await http.post(PODS, pod(**GATED))
    refused = await http.post(f"{PODS}/a/binding", binding())
    assert (refused.code, refused.body["reason"]) == (409, "Conflict")
    assert "pod a has non-empty .spec.schedulingGates" in refused.body["message"]


async def test_binding_gives_a_pod_its_node_once(http: Http) -> None:
    await http.post(PODS, pod())
    bound = await http.post(f"{PODS}/a/binding", binding(annotations={"by": "test"}))
    found = (await http.get(f"{PODS}/a")).body
    assert (bound.code, bound.body["status"]) == (201, "Success")
    assert found["spec"]["nodeName"] == "n1"
    assert found["metadata"]["annotations"] == {"by": "test"}
    assert found["status"]["conditions"][0]["status"] == "True"
    again = await http.post(f"{PODS}/a/binding", binding("n2"))
    assert (again.code, again.body["reason"]) == (409, "Conflict")


async def test_binding_another_pod_of_the_same_name_is_a_conflict(http: Http) -> None:
    await http.post(PODS, pod())
    assert (await http.post(f"{PODS}/a/binding", binding(uid="other"))).code == 409


async def test_the_old_bindings_path_binds_too(http: Http) -> None:
    await http.post(PODS, pod())
    await http.post("/api/v1/namespaces/default/bindings", binding())
    assert (await http.get(f"{PODS}/a")).body["spec"]["nodeName"] == "n1"


async def test_an_eviction_respects_the_disruption_budget(http: Http) -> None:
    await _guarded(http, ready="True")
    refused = await http.post(f"{PODS}/a/eviction", EVICTION)
    assert (refused.code, refused.body["reason"]) == (429, "TooManyRequests")
    (cause,) = refused.body["details"]["causes"]
    assert "needs 1 healthy pods and has 1 currently" in cause["message"]
    await http.patch(f"{BUDGETS}/b/status", {"status": {"disruptionsAllowed": 1}})
    assert (await http.post(f"{PODS}/a/eviction", EVICTION)).code == 201
    going = (await http.get(f"{PODS}/a")).body
    assert "deletionTimestamp" in going["metadata"]
    assert going["status"]["conditions"][-1]["reason"] == "EvictionByEvictionAPI"
    left = (await http.get(f"{BUDGETS}/b")).body["status"]
    assert left["disruptionsAllowed"] == 0
    assert "a" in left["disruptedPods"]


async def test_an_eviction_waits_until_the_budget_is_counted(http: Http) -> None:
    await _guarded(http, ready="True", observedGeneration=0)
    refused = await http.post(f"{PODS}/a/eviction", EVICTION)
    assert (refused.code, refused.headers["Retry-After"]) == (429, "10")


@pytest.mark.parametrize(
    ("policy", "healthy", "desired", "code"),
    [
        ("AlwaysAllow", 0, 1, 201),
        ("AlwaysAllow", 0, 0, 201),
        ("IfHealthyBudget", 1, 1, 201),
        ("IfHealthyBudget", 0, 1, 429),
        ("IfHealthyBudget", 0, 0, 429),
        (None, 1, 1, 201),
        (None, 0, 1, 429),
    ],
)
async def test_a_pod_that_is_not_ready_is_evicted_as_the_policy_says(
    http: Http, policy: str | None, healthy: int, desired: int, code: int
) -> None:
    await _guarded(http, policy, ready="False", currentHealthy=healthy, desiredHealthy=desired)
    assert (await http.post(f"{PODS}/a/eviction", EVICTION)).code == code
    assert "disruptedPods" not in (await http.get(f"{BUDGETS}/b")).body["status"]


@pytest.mark.parametrize("policy", ["AlwaysAllow", "IfHealthyBudget"])
async def test_a_ready_pod_is_guarded_whatever_the_policy_says(http: Http, policy: str) -> None:
    await _guarded(http, policy, ready="True")
    assert (await http.post(f"{PODS}/a/eviction", EVICTION)).code == 429


async def test_a_pending_pod_is_evicted_whatever_its_budgets_say(http: Http) -> None:
    await _guarded(http, ready="False", phase="Pending", desiredHealthy=5)
    assert (await http.post(f"{PODS}/a/eviction", EVICTION)).code == 201


async def test_a_pod_with_two_budgets_cannot_be_evicted(http: Http) -> None:
    await _guarded(http, ready="True")
    selector = {"matchLabels": {"app": "a"}}
    await http.post(BUDGETS, {"metadata": {"name": "c"}, "spec": {"selector": selector}})
    refused = await http.post(f"{PODS}/a/eviction", EVICTION)
    assert refused.code == 500
    assert "more than one PodDisruptionBudget" in refused.body["message"]


BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}


async def _guarded(
    http: Http, policy: str | None = None, *, ready: str, phase: str = "Running", **counts: int
) -> None:
    """A pod on a node, and its budget, of which nothing is left."""
    labelled = pod()
    labelled["metadata"]["labels"] = {"app": "a"}
    await http.post(PODS, labelled)
    await http.post(f"{PODS}/a/binding", binding())
    conditions = [{"type": "Ready", "status": ready}]
    await http.patch(f"{PODS}/a/status", {"status": {"phase": phase, "conditions": conditions}})
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    if policy is not None:
        spec["unhealthyPodEvictionPolicy"] = policy
    await http.post(BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
    status = {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, **counts}
    await http.patch(f"{BUDGETS}/b/status", {"status": {"disruptionsAllowed": 0, **status}})
