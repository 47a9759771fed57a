"""The rules about pods that everything above rests on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.http_client import Http

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str = "a", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "example/app:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def asking(**requests: str) -> dict[str, Any]:
    resources = {"requests": requests}
    return pod(containers=[{"name": "main", "image": "example/app", "resources": resources}])


def binding(node: str = "n1", **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", **meta}, "target": {"kind": "Node", "name": node}}


GATED: dict[str, Any] = {
    "schedulingGates": [{"name": "example.com/wait"}, {"name": "example.com/other"}]
}


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


async def test_priority_is_resolved_from_its_class(http: Http) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await http.post(classes, {"metadata": {"name": "high"}, "value": 100})
    made = (await http.post(PODS, pod(priorityClassName="high"))).body
    assert made["spec"]["priority"] == 100
    unknown = await http.post(PODS, pod("b", priorityClassName="nope"))
    assert (unknown.code, unknown.body["reason"]) == (403, "Forbidden")
    own = await http.post(PODS, pod("c", priorityClassName="high", priority=5))
    assert own.code == 403
    default = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True}
    await http.post(classes, default)
    assert (await http.post(PODS, pod("d"))).body["spec"]["priority"] == 7


async def test_a_runtime_class_brings_overhead_and_placement(http: Http) -> None:
    runtime = {
        "metadata": {"name": "sandbox"},
        "handler": "sandboxed",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"sandbox": "yes"}},
    }
    await http.post("/apis/node.k8s.io/v1/runtimeclasses", runtime)
    spec = (await http.post(PODS, pod(runtimeClassName="sandbox"))).body["spec"]
    assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "250m"}, {"sandbox": "yes"})
    assert (await http.post(PODS, pod("b", runtimeClassName="nope"))).code == 403


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
