"""Roles, classes, budgets, leases, configuration: what is refused, kept and filled in."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.embedded.apiserver.backends import new_backend
from tests.embedded.apiserver.http_client import Http
from tests.embedded.apiserver.refusals import (
    NOTHING,
    changed,
    made,
    refusal_of_change,
    refusal_of_new,
    short_causes,
    with_changes,
)

RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
REFERENCE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
OBJECTS: dict[str, dict[str, Any]] = {
    "roles.rbac.authorization.k8s.io": {"metadata": {"name": "r"}, "rules": [RULE]},
    "clusterroles.rbac.authorization.k8s.io": {"metadata": {"name": "r"}, "rules": [RULE]},
    "rolebindings.rbac.authorization.k8s.io": {"metadata": {"name": "b"}, "roleRef": REFERENCE},
    "clusterrolebindings.rbac.authorization.k8s.io": {
        "metadata": {"name": "b"},
        "roleRef": REFERENCE,
    },
    "priorityclasses.scheduling.k8s.io": {"metadata": {"name": "p"}, "value": 5},
    "runtimeclasses.node.k8s.io": {"metadata": {"name": "r"}, "handler": "h"},
    "poddisruptionbudgets.policy": {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}},
    "leases.coordination.k8s.io": {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}},
    "configmaps": {"metadata": {"name": "c"}, "data": {"a": "b"}},
    "secrets": {"metadata": {"name": "s"}, "data": {"a": "Yg=="}},
    "namespaces": {"metadata": {"name": "n"}},
}
ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS, PRIORITIES, RUNTIMES, BUDGETS, *_ = OBJECTS
LEASES, CONFIG_MAPS, SECRETS, NAMESPACES = list(OBJECTS)[7:]


def subjects(**subject: str) -> dict[str, Any]:
    return {"subjects": [subject]}


@pytest.mark.parametrize(
    ("resource", "changes", "causes"),
    [
        (
            ROLES,
            {"rules": [{}]},
            [
                "rules[0].apiGroups: required",
                "rules[0].resources: required",
                "rules[0].verbs: required",
            ],
        ),
        (
            ROLES,
            {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]},
            ["rules[0].nonResourceURLs: invalid"],
        ),
        (CLUSTER_ROLES, {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}, []),
        (CLUSTER_ROLES, {"rules.0.nonResourceURLs": ["/x"]}, ["rules[0].nonResourceURLs: invalid"]),
        (
            CLUSTER_ROLES,
            {"aggregationRule": {}},
            ["aggregationRule.clusterRoleSelectors: required"],
        ),
        (
            CLUSTER_ROLES,
            {
                "aggregationRule.clusterRoleSelectors": [
                    {"matchExpressions": [{"key": "a", "operator": "Is"}]}
                ]
            },
            [
                "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: invalid",
                "aggregationRule.clusterRoleSelectors[0]: invalid",
            ],
        ),
        (BINDINGS, {"metadata.name": "a%b"}, ["metadata.name: invalid"]),
        (BINDINGS, {"roleRef": {}}, ["roleRef.kind: unsupported", "roleRef.name: required"]),
        (BINDINGS, {"roleRef.apiGroup": "x"}, ["roleRef.apiGroup: unsupported"]),
        (BINDINGS, {"roleRef.name": "a/b"}, ["roleRef.name: invalid"]),
        (CLUSTER_BINDINGS, {"roleRef.kind": "Role"}, ["roleRef.kind: unsupported"]),
        (BINDINGS, subjects(kind="Robot", name="x"), ["subjects[0].kind: unsupported"]),
        (BINDINGS, subjects(kind="User", name=""), ["subjects[0].name: required"]),
        (
            BINDINGS,
            subjects(kind="ServiceAccount", name="A", apiGroup="x"),
            ["subjects[0].apiGroup: unsupported", "subjects[0].name: invalid"],
        ),
        (BINDINGS, subjects(kind="ServiceAccount", name="a"), []),
        (
            CLUSTER_BINDINGS,
            subjects(kind="ServiceAccount", name="a"),
            ["subjects[0].namespace: required"],
        ),
        (PRIORITIES, {"value": 1_000_000_001}, ["value: forbidden"]),
        (PRIORITIES, {"metadata.name": "system-own"}, ["metadata.name: forbidden"]),
        (PRIORITIES, {"preemptionPolicy": "Always"}, ["preemptionPolicy: unsupported"]),
        (PRIORITIES, {"preemptionPolicy": ""}, ["preemptionPolicy: required"]),
        (RUNTIMES, {"handler": ""}, ["handler: required"]),
        (RUNTIMES, {"handler": "A.b"}, ["handler: invalid"]),
        (
            RUNTIMES,
            {"overhead": {"podFixed": {"cpu": "-1", "nonsense": "1"}}},
            ["overhead.limits[cpu]: invalid", "overhead.limits[nonsense]: invalid"],
        ),
        (
            RUNTIMES,
            {
                "scheduling.tolerations": [{"key": "k", "operator": "Exists"}] * 2,
                "scheduling.nodeSelector": {"a b": "c"},
            },
            ["scheduling.nodeSelector: invalid", "scheduling.tolerations[1]: duplicate"],
        ),
        (BUDGETS, {"spec.maxUnavailable": 1}, ["spec: invalid"]),
        (BUDGETS, {"spec.minAvailable": -1}, ["spec.minAvailable: invalid"]),
        (BUDGETS, {"spec.minAvailable": "120%"}, ["spec.minAvailable: invalid"]),
        (
            BUDGETS,
            {"spec.unhealthyPodEvictionPolicy": "Never"},
            ["spec.unhealthyPodEvictionPolicy: unsupported"],
        ),
        (BUDGETS, {"metadata.name": "a%b"}, ["metadata.name: invalid"]),
        (
            BUDGETS,
            {"metadata.name": "a%b", "spec.minAvailable": -1},
            ["spec.minAvailable: invalid"],
        ),
        (LEASES, {"spec.leaseDurationSeconds": 0}, ["spec.leaseDurationSeconds: invalid"]),
        (LEASES, {"spec.leaseTransitions": -1}, ["spec.leaseTransitions: invalid"]),
        (CONFIG_MAPS, {"data": {"a b": "c"}}, ["data[a b]: invalid"]),
        (CONFIG_MAPS, {"binaryData": {"a": "Yg=="}}, ["data[a]: invalid"]),
        (CONFIG_MAPS, {"data": {"a": "b" * 1048577}}, [": too long"]),
        (SECRETS, {"data": {"..": "Yg=="}}, ["data[..]: invalid"]),
        (
            SECRETS,
            {"type": "kubernetes.io/tls"},
            ["data[tls.crt]: required", "data[tls.key]: required"],
        ),
        (
            SECRETS,
            {"type": "kubernetes.io/basic-auth"},
            ["data[password]: required", "data[username]: required"],
        ),
        (SECRETS, {"type": "kubernetes.io/ssh-auth"}, ["data[ssh-privatekey]: required"]),
        (
            SECRETS,
            {"type": "kubernetes.io/service-account-token"},
            ["metadata.annotations[kubernetes.io/service-account.name]: required"],
        ),
        (
            SECRETS,
            {"type": "kubernetes.io/dockerconfigjson"},
            ["data[.dockerconfigjson]: required"],
        ),
        (
            SECRETS,
            {"type": "kubernetes.io/dockercfg", "data": {".dockercfg": "Yg=="}},
            ["data[.dockercfg]: invalid"],
        ),
        (NAMESPACES, {"metadata.name": "a.b"}, ["metadata.name: invalid"]),
        (NAMESPACES, {"spec": {"finalizers": ["mine"]}}, ["spec.finalizers: invalid"]),
    ],
)
async def test_what_a_kind_cannot_be_is_refused_at_its_field(
    resource: str, changes: dict[str, Any], causes: list[str]
) -> None:
    refused = await refusal_of_new(resource, with_changes(OBJECTS[resource], changes))
    assert short_causes(refused) == sorted(causes)


@pytest.mark.parametrize(
    ("resource", "changes", "causes"),
    [
        (BINDINGS, {"roleRef.name": "x"}, ["roleRef: invalid"]),
        (BINDINGS, subjects(kind="User", name="u"), []),
        (PRIORITIES, {"value": 6}, ["value: forbidden"]),
        (PRIORITIES, {"preemptionPolicy": "Never"}, ["preemptionPolicy: invalid"]),
        (PRIORITIES, {"description": "d", "globalDefault": True}, []),
        (RUNTIMES, {"handler": "other"}, ["handler: invalid"]),
        (SECRETS, {"type": "example.com/own"}, ["type: invalid"]),
        (BUDGETS, {"spec.minAvailable": 2}, []),
    ],
)
async def test_what_a_kind_was_said_to_be_stays(
    resource: str, changes: dict[str, Any], causes: list[str]
) -> None:
    assert short_causes(await refusal_of_change(resource, OBJECTS[resource], changes)) == causes


@pytest.mark.parametrize("resource", [CONFIG_MAPS, SECRETS])
async def test_what_is_immutable_stays(resource: str) -> None:
    frozen = {**OBJECTS[resource], "immutable": True}
    more = {"data.x": "Yg=="}
    assert short_causes(await refusal_of_change(resource, frozen, more)) == ["data: forbidden"]
    thawed = {"immutable": NOTHING}
    assert short_causes(await refusal_of_change(resource, frozen, thawed)) == [
        "immutable: forbidden"
    ]
    labelled = {"metadata.labels": {"a": "b"}}
    assert short_causes(await refusal_of_change(resource, frozen, labelled)) == []


@pytest.mark.parametrize(
    ("resource", "changes", "causes"),
    [
        (BUDGETS, {"status.currentHealthy": -1}, ["status.currentHealthy: invalid"]),
        (
            BUDGETS,
            {"status.conditions": [{"type": "a b", "status": "Maybe", "reason": "no way"}]},
            [
                "status.conditions[0].lastTransitionTime: required",
                "status.conditions[0].reason: invalid",
                "status.conditions[0].status: unsupported",
                "status.conditions[0].type: invalid",
            ],
        ),
        (NAMESPACES, {"status.phase": "Terminating"}, ["status.Phase: invalid"]),
    ],
)
async def test_what_controllers_say_is_checked(
    resource: str, changes: dict[str, Any], causes: list[str]
) -> None:
    refused = await refusal_of_change(resource, OBJECTS[resource], changes, "status")
    assert short_causes(refused) == causes


async def test_subjects_get_the_group_that_goes_without_saying() -> None:
    given = [{"kind": kind, "name": "a"} for kind in ("User", "Group", "ServiceAccount")]
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": given,
    }
    found = await made(await new_backend(), BINDINGS, binding)
    groups = [subject.get("apiGroup") for subject in found["subjects"]]
    assert groups == ["rbac.authorization.k8s.io", "rbac.authorization.k8s.io", None]
    assert found["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"


async def test_a_namespace_is_active_protected_and_found_by_its_name() -> None:
    backend = await new_backend()
    found = await made(backend, NAMESPACES, {"metadata": {"name": "n"}, "spec": {"finalizers": []}})
    assert (found["spec"], found["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    kept = await changed(backend, NAMESPACES, "n", {"metadata.labels": {}, "spec.finalizers": []})
    assert kept["spec"] == {"finalizers": ["kubernetes"]}
    assert kept["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}


async def test_plain_words_of_a_secret_are_kept_as_data() -> None:
    secret = {"metadata": {"name": "s"}, "stringData": {"a": "ä"}}
    found = await made(await new_backend(), SECRETS, secret)
    assert found["data"] == {"a": base64.b64encode("ä".encode()).decode()}
    assert ("stringData" in found, found["type"]) == (False, "Opaque")


async def test_a_lease_leaves_out_what_no_election_here_reads() -> None:
    lease = with_changes(OBJECTS[LEASES], {"spec.strategy": "Oldest", "spec.preferredHolder": "x"})
    found = await made(await new_backend(), LEASES, lease)
    assert found["spec"] == {"holderIdentity": "me"}


async def test_one_priority_class_can_be_the_default(http: Http) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    for name in ("a", "b"):
        await http.post(classes, {"metadata": {"name": name}, "value": 1})
    assert (await http.patch(f"{classes}/a", {"globalDefault": True})).code == 200
    refused = await http.patch(f"{classes}/b", {"globalDefault": True})
    assert (refused.code, "already marked as default" in refused.body["message"]) == (403, True)
    new = {"metadata": {"name": "c"}, "value": 1, "globalDefault": True}
    assert (await http.post(classes, new)).code == 403
    assert (await http.patch(f"{classes}/a", {"description": "d"})).code == 200


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("configmaps", {"binaryData": {"a": None}}),
        ("secrets", {"data": {"a": None}}),
        ("secrets", {"type": "kubernetes.io/dockercfg", "data": {".dockercfg": None}}),
    ],
)
async def test_bytes_that_are_null_are_no_bytes(http: Http, path: str, said: Any) -> None:
    answer = await http.post(
        f"/api/v1/namespaces/default/{path}", {"metadata": {"name": "x"}, **said}
    )
    assert answer.code in (201, 422)
