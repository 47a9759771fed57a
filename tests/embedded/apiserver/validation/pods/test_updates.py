"""How a pod changes: by its author, by the scheduler, by its node and by who wants it gone."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from tests.embedded.apiserver.http_client import Http

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(**spec: Any) -> Json:
    containers = [{"name": "main", "image": "example/app:1"}]
    meta = {"name": "a", "labels": {"app": "web", "hash": "7"}}
    return {"metadata": meta, "spec": {"containers": containers, **spec}}


def on_zones(*zones: str, **more: Any) -> Json:
    wanted = [{"key": "zone", "operator": "In", "values": list(zones)}]
    term = {"matchExpressions": [*wanted, *more.get("also", ())]}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


GATED: Json = {"schedulingGates": [{"name": "example.com/wait"}], "nodeSelector": {"disk": "ssd"}}
ALSO = {"key": "arch", "operator": "Exists"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"nodeSelector": {"disk": "hdd"}}, "spec.nodeSelector"),
        ({"nodeSelector": {"disk": None}}, "spec.nodeSelector"),
        (
            {"affinity": on_zones("b")},
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]",
        ),
        ({"priorityClassName": "other"}, "spec"),
        ({"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "z"}]}}}, "spec"),
    ],
)
async def test_the_choice_of_nodes_of_a_gated_pod_is_not_widened(
    http: Http, change: Json, field: str
) -> None:
    await http.post(PODS, pod(**GATED, affinity=on_zones("a")))
    refused = await http.patch(f"{PODS}/a", {"spec": change})
    assert (refused.code, refused.body["details"]["causes"][0]["field"]) == (422, field)


@pytest.mark.parametrize(
    "change",
    [
        {"nodeSelector": {"arch": "arm"}},
        {"affinity": on_zones("a", also=[ALSO])},
        {"tolerations": [{"operator": "Exists"}]},
        {"activeDeadlineSeconds": 5},
    ],
)
async def test_the_choice_of_nodes_of_a_gated_pod_may_be_narrowed(http: Http, change: Json) -> None:
    made = (await http.post(PODS, pod(**GATED, affinity=on_zones("a")))).body
    if "tolerations" in change:
        change = {"tolerations": made["spec"]["tolerations"] + change["tolerations"]}
    changed = await http.patch(f"{PODS}/a", {"spec": change})
    assert changed.code == 200
    assert changed.body["metadata"]["generation"] == 2


async def test_the_choice_of_nodes_of_a_pod_without_gates_stays(http: Http) -> None:
    await http.post(PODS, pod(nodeSelector={"disk": "ssd"}))
    refused = await http.patch(f"{PODS}/a", {"spec": {"nodeSelector": {"arch": "arm"}}})
    assert refused.code == 422
    assert '+  "arch": "arm",\n' in refused.body["message"]


async def test_a_refused_change_is_shown_line_by_line(http: Http) -> None:
    await http.post(PODS, pod())
    refused = await http.patch(f"{PODS}/a", {"spec": {"hostname": "other"}})
    assert '- "Hostname": "",\n+ "Hostname": "other",\n' in refused.body["message"]


async def test_a_deadline_only_comes_nearer(http: Http) -> None:
    await http.post(PODS, pod(activeDeadlineSeconds=50))
    assert (await http.patch(f"{PODS}/a", {"spec": {"activeDeadlineSeconds": 60}})).code == 422
    assert (await http.patch(f"{PODS}/a", {"spec": {"activeDeadlineSeconds": None}})).code == 422
    assert (await http.patch(f"{PODS}/a", {"spec": {"activeDeadlineSeconds": 40}})).code == 200


async def test_who_does_not_repeat_defaults_does_not_change_them(http: Http) -> None:
    made = (await http.post(PODS, pod())).body
    spec = {
        name: value
        for name, value in made["spec"].items()
        if name not in ("priority", "preemptionPolicy", "tolerations")
    }
    put = await http.put(f"{PODS}/a", {**made, "spec": spec})
    assert (put.code, put.body["spec"]) == (200, made["spec"])


async def test_label_keys_become_part_of_selectors(http: Http) -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["hash", "absent"],
        "mismatchLabelKeys": ["app"],
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
        "matchLabelKeys": ["hash"],
    }
    made = await http.post(
        PODS,
        pod(affinity={"podAntiAffinity": {REQUIRED: [term]}}, topologySpreadConstraints=[spread]),
    )
    same = {"key": "hash", "operator": "In", "values": ["7"]}
    other = {"key": "app", "operator": "NotIn", "values": ["web"]}
    found = made.body["spec"]["affinity"]["podAntiAffinity"][REQUIRED][0]["labelSelector"]
    assert found["matchExpressions"] == [same, other]
    (constraint,) = made.body["spec"]["topologySpreadConstraints"]
    assert constraint["labelSelector"] == {"matchExpressions": [same]}


async def test_a_pod_s_address_is_the_first_of_its_addresses(http: Http) -> None:
    await http.post(PODS, pod(nodeName="n"))
    told = await http.patch(f"{PODS}/a/status", {"status": {"podIP": "10.0.0.5"}})
    assert told.body["status"]["podIPs"] == [{"ip": "10.0.0.5"}]
    two = {"podIP": None, "podIPs": [{"ip": "10.0.0.6"}, {"ip": "fd00::6"}]}
    told = await http.patch(f"{PODS}/a/status", {"status": two})
    assert told.body["status"]["podIP"] == "10.0.0.6"


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"podIPs": [{"ip": "10.0.0.5"}, {"ip": "10.0.0.6"}]}, "status.podIPs"),
        ({"podIP": "10.0.0.500"}, "status.podIPs[0]"),
        ({"hostIPs": [{"ip": "10.0.0.5"}]}, "status.hostIPs[0].ip"),
        ({"qosClass": "Guaranteed"}, "status.qosClass"),
        ({"conditions": [{"type": "a b", "status": "True"}]}, "status.conditions[0].Type"),
        ({"nominatedNodeName": "m"}, "status.nominatedNodeName"),
        (
            {"containerStatuses": [{"name": "main", "state": {"running": {}}}]},
            "status.containerStatuses[0].state",
        ),
        ({"resourceClaimStatuses": [{"name": "x"}]}, "status.resourceClaimStatuses[0].name"),
    ],
)
async def test_a_status_that_cannot_be_is_refused(http: Http, status: Json, field: str) -> None:
    await http.post(PODS, pod(nodeName="n", restartPolicy="Never"))
    ended = {"name": "main", "state": {"terminated": {"exitCode": 0}}}
    await http.patch(f"{PODS}/a/status", {"status": {"containerStatuses": [ended]}})
    refused = await http.patch(f"{PODS}/a/status", {"status": status})
    assert refused.code == 422
    assert [one["field"] for one in refused.body["details"]["causes"]] == [field]


async def test_a_container_that_may_restart_comes_back(http: Http) -> None:
    await http.post(PODS, pod(nodeName="n", restartPolicy="OnFailure"))
    ended = {"name": "main", "state": {"terminated": {"exitCode": 1}}}
    await http.patch(f"{PODS}/a/status", {"status": {"containerStatuses": [ended]}})
    running = {"name": "main", "state": {"running": {}}}
    again = await http.patch(f"{PODS}/a/status", {"status": {"containerStatuses": [running]}})
    assert again.code == 200


def binding(**meta: Any) -> Json:
    return {"metadata": {"name": "a", **meta}, "target": {"kind": "Node", "name": "n1"}}


@pytest.mark.parametrize("meta", [{"resourceVersion": "1"}, {"uid": "other"}])
async def test_a_binding_means_one_pod_as_it_is(http: Http, meta: Json) -> None:
    made = (await http.post(PODS, pod())).body
    refused = await http.post(f"{PODS}/a/binding", binding(**meta))
    assert (refused.code, refused.body["reason"]) == (409, "Conflict")
    assert "Precondition failed" in refused.body["message"]
    version = made["metadata"]["resourceVersion"]
    assert (await http.post(f"{PODS}/a/binding", binding(resourceVersion=version))).code == 201


@pytest.mark.parametrize("meta", [{"name": "b"}, {"name": ""}, {"namespace": "other"}])
@pytest.mark.parametrize("kind", ["binding", "eviction"])
async def test_what_is_made_beside_a_pod_names_that_pod(http: Http, kind: str, meta: Json) -> None:
    await http.post(PODS, pod())
    refused = await http.post(f"{PODS}/a/{kind}", binding(**meta) | _only_meta(kind))
    assert (refused.code, refused.body["reason"]) == (400, "BadRequest")


def _only_meta(kind: str) -> Json:
    return {"target": None} if kind == "eviction" else {}


async def test_a_bound_pod_says_where_its_node_is(http: Http) -> None:
    labels = {"topology.kubernetes.io/zone": "z1", "other": "x"}
    await http.post("/api/v1/nodes", {"metadata": {"name": "n1", "labels": labels}})
    await http.post(PODS, pod())
    await http.post(f"{PODS}/a/binding", binding())
    found = (await http.get(f"{PODS}/a")).body["metadata"]["labels"]
    assert found == {"app": "web", "hash": "7", "topology.kubernetes.io/zone": "z1"}


async def budget(http: Http, **status: int) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    await http.post(BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
    counted = {"observedGeneration": 1, "expectedPods": 1, "currentHealthy": 1, **status}
    await http.patch(f"{BUDGETS}/b/status", {"status": counted})


async def running(http: Http) -> None:
    await http.post(PODS, pod(nodeName="n"))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await http.patch(f"{PODS}/a/status", {"status": ready})


async def test_a_spent_budget_does_not_say_when_to_come_again(http: Http) -> None:
    await running(http)
    await budget(http, desiredHealthy=1, disruptionsAllowed=0)
    refused = await http.post(f"{PODS}/a/eviction", {"metadata": {"name": "a"}})
    assert refused.code == 429
    assert "retryAfterSeconds" not in refused.body["details"]
    assert "Retry-After" not in refused.headers
    (cause,) = refused.body["details"]["causes"]
    assert cause["message"] == "The disruption budget b needs 1 healthy pods and has 1 currently"


async def test_a_budget_that_is_not_counted_yet_says_when_to_come_again(http: Http) -> None:
    await running(http)
    await budget(http, observedGeneration=0)
    refused = await http.post(f"{PODS}/a/eviction", {"metadata": {"name": "a"}})
    assert (refused.code, refused.headers["Retry-After"]) == (429, "10")


async def test_the_last_eviction_that_a_budget_allows_is_told_by_the_budget(http: Http) -> None:
    await running(http)
    await budget(http, disruptionsAllowed=1)
    body = {"metadata": {"name": "a"}}
    assert (await http.post(f"{PODS}/a/eviction", body)).code == 201
    status = (await http.get(f"{BUDGETS}/b")).body["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["a"])
    assert [one["reason"] for one in status["conditions"]] == ["InsufficientPods"]


async def test_who_is_going_can_only_be_told_to_go_sooner(http: Http) -> None:
    await running(http)
    first = (await http.delete(f"{PODS}/a?gracePeriodSeconds=20")).body["metadata"]
    same = (await http.delete(f"{PODS}/a?gracePeriodSeconds=30")).body["metadata"]
    sooner = (await http.delete(f"{PODS}/a?gracePeriodSeconds=5")).body["metadata"]
    assert same["deletionGracePeriodSeconds"] == first["deletionGracePeriodSeconds"] == 20
    assert sooner["deletionGracePeriodSeconds"] == 5
    assert sooner["deletionTimestamp"] < first["deletionTimestamp"]


async def test_templates_are_judged_and_warned_of_as_pods_are(http: Http) -> None:
    spread = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {**pod()["spec"], "topologySpreadConstraints": [spread], "schedulingGroup": {}},
    }
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    path = "/apis/apps/v1/namespaces/default/deployments"
    made = await http.post(path, {"metadata": {"name": "d"}, "spec": spec})
    assert "schedulingGroup" not in made.body["spec"]["template"]["spec"]
    place = "spec.template.spec.topologySpreadConstraints[0].labelSelector"
    assert place in made.headers["Warning"]
    template["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": "much"}
    refused = await http.post(path, {"metadata": {"name": "e"}, "spec": spec})
    assert refused.body["details"]["causes"][0]["message"].endswith("must be a 32bit integer")


@pytest.mark.parametrize(("name", "code"), [("bad", 422), ("orphan", 201), ("a.b/c", 201)])
async def test_a_finalizer_has_a_domain_or_is_a_standard_one(
    http: Http, name: str, code: int
) -> None:
    made = pod()
    made["metadata"]["finalizers"] = [name]
    assert (await http.post(PODS, made)).code == code


SIZED = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}


def sized(resources: Json, **fields: Any) -> Json:
    return {"name": "main", "image": "example/app:1", "resources": resources, **fields}


async def test_a_pod_is_resized_and_nothing_else_of_it_changes(http: Http) -> None:
    await http.post(PODS, pod(containers=[sized(SIZED)]))
    more = {**SIZED, "requests": {"cpu": "1500m", "memory": "2Gi"}}
    change = {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [sized(more, image="b")]}}
    resized = (await http.patch(f"{PODS}/a/resize", change)).body
    (container,) = resized["spec"]["containers"]
    assert (container["resources"], container["image"]) == (more, "example/app:1")
    assert resized["metadata"]["labels"] == {"app": "web", "hash": "7"}
    assert resized["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("resources", "field"),
    [
        (
            {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            "spec.containers[0].resources.requests",
        ),
        (
            {**SIZED, "limits": {"cpu": "2", "ephemeral-storage": "1Gi"}},
            "spec",
        ),
        ({"requests": {"cpu": "3", "memory": "1Gi"}, "limits": {"cpu": "2"}}, None),
    ],
)
async def test_only_processor_and_memory_are_resized(
    http: Http, resources: Json, field: str | None
) -> None:
    await http.post(PODS, pod(containers=[sized(SIZED)]))
    put = await http.get(f"{PODS}/a")
    put.body["spec"]["containers"][0]["resources"] = resources
    refused = await http.put(f"{PODS}/a/resize", put.body)
    assert refused.code == 422
    fields = [one["field"] for one in refused.body["details"]["causes"]]
    assert field is None or field in fields


async def test_a_pod_is_resized_only_within_its_node(http: Http) -> None:
    room = {"status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}}}
    await http.post("/api/v1/nodes", {"metadata": {"name": "n"}} | room)
    await http.post(PODS, pod(containers=[sized({"requests": {"cpu": "1"}})], nodeName="n"))
    change = {"spec": {"containers": [sized({"requests": {"cpu": "3"}})]}}
    refused = await http.patch(f"{PODS}/a/resize", change)
    assert refused.code == 403
    assert "cpu, requested: 3000, allocatable: 2000" in refused.body["message"]


async def test_containers_to_look_into_a_pod_can_be_added_only(http: Http) -> None:
    await http.post(PODS, pod())
    path, look = f"{PODS}/a/ephemeralcontainers", {"name": "look", "image": "busybox:1"}
    added = await http.patch(path, {"spec": {"ephemeralContainers": [look]}})
    assert (added.code, added.body["spec"]["ephemeralContainers"][0]["name"]) == (200, "look")
    other = {"spec": {"ephemeralContainers": [{**look, "image": "busybox:2"}]}}
    assert (await http.patch(path, other)).code == 422
    assert (await http.patch(path, {"spec": {"ephemeralContainers": None}})).code == 422


@pytest.mark.parametrize(("allowed", "code"), [(True, 201), (False, 422)])
async def test_containers_are_privileged_only_where_that_is_allowed(
    allowed: bool, code: int
) -> None:
    made = pod()
    made["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    async with ApiServer(ServerConfig(allow_privileged=allowed)) as server, Http(server) as http:
        assert (await http.post(PODS, made)).code == code
