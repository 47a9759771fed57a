"""What RBAC lets clients do."""

from __future__ import annotations

import pytest

from bayplan.embedded.apiserver.server import ApiServer
from tests.embedded.apiserver.authorization.grants import RBAC, grant, rule
from tests.embedded.apiserver.http_client import Http


async def test_nothing_is_allowed_until_a_binding_says_so(admin: Http, ann: Http) -> None:
    pods = "/api/v1/namespaces/default/pods"
    refused = await ann.get(pods)
    assert refused.code == 403
    assert refused.body["message"] == (
        'pods is forbidden: User "ann" cannot list resource "pods" in API group "" '
        'in the namespace "default"'
    )
    await grant(admin, {"kind": "User", "name": "ann"}, rule("list"))
    assert (await ann.get(pods)).code == 200
    assert (await ann.get("/api/v1/pods")).code == 403
    assert (await ann.get("/api/v1/namespaces/kube-system/pods")).code == 403
    assert (await ann.post(pods, {})).code == 403
    await admin.delete(f"{RBAC}/namespaces/default/rolebindings/r")
    assert (await ann.get(pods)).code == 403


@pytest.mark.parametrize(
    ("subject", "token"),
    [
        ({"kind": "Group", "name": "ops"}, "ann-token"),
        ({"kind": "ServiceAccount", "name": "robot", "namespace": "default"}, "sa-token"),
    ],
)
async def test_groups_and_service_accounts_are_subjects(
    guarded: ApiServer, admin: Http, subject: dict[str, str], token: str
) -> None:
    await grant(admin, subject, rule("get", "list", resources="configmaps"))
    async with Http(guarded, token) as client:
        assert (await client.get("/api/v1/namespaces/default/configmaps")).code == 200


async def test_whoever_may_list_one_object_may_select_it_among_all(admin: Http, ann: Http) -> None:
    names = {"resourceNames": ["mine"]}
    subject = {"kind": "User", "name": "ann"}
    await grant(admin, subject, rule("list", "create", resources="configmaps", **names))
    cms = "/api/v1/namespaces/default/configmaps"
    assert (await ann.get(f"{cms}?fieldSelector=metadata.name%3Dmine")).code == 200
    assert (await ann.get(f"{cms}?fieldSelector=metadata.name%3D%3Dmine")).code == 200
    for selector in (
        "metadata.name%3Dother",
        "metadata.name!%3Dmine",
        "metadata.namespace!%3Da%5C,metadata.name%3Dmine",
    ):
        assert (await ann.get(f"{cms}?fieldSelector={selector}")).code == 403, selector
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
    assert (await ann.post(f"{cms}?fieldSelector=metadata.name%3Dmine", other)).code == 403


async def test_subresources_and_names_are_granted_apart(admin: Http, ann: Http) -> None:
    names = {"resourceNames": ["mine"]}
    await grant(
        admin,
        {"kind": "User", "name": "ann"},
        rule("get", resources="configmaps", **names),
        rule("create", resources="pods/binding"),
    )
    cms = "/api/v1/namespaces/default/configmaps"
    assert (await ann.get(f"{cms}/mine")).code == 404
    assert (await ann.get(f"{cms}/other")).code == 403
    assert (await ann.get(cms)).code == 403
    pods = "/api/v1/namespaces/default/pods"
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    assert (await ann.post(f"{pods}/a/binding", binding)).code == 404
    assert (await ann.post(pods, {})).code == 403
    assert (await ann.patch(f"{pods}/a/status", {})).code == 403


async def test_a_cluster_role_reaches_as_far_as_its_binding(admin: Http, ann: Http) -> None:
    role = {"metadata": {"name": "reader"}, "rules": [rule("*", resources="*")]}
    await admin.post(f"{RBAC}/clusterroles", role)
    reference = {"kind": "ClusterRole", "name": "reader"}
    subjects = [{"kind": "User", "name": "ann"}]
    body = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": subjects}
    await admin.post(f"{RBAC}/namespaces/default/rolebindings", body)
    assert (await ann.get("/api/v1/namespaces/default/secrets")).code == 200
    assert (await ann.get("/api/v1/nodes")).code == 403
    await admin.post(f"{RBAC}/clusterrolebindings", body)
    assert (await ann.get("/api/v1/nodes")).code == 200
    assert (await ann.get("/apis/apps/v1/deployments")).code == 403


async def test_everybody_known_may_discover_and_ask_about_themselves(ann: Http) -> None:
    for path in ("/api", "/apis", "/apis/apps/v1", "/openapi/v3", "/version", "/readyz"):
        assert (await ann.get(path)).code == 200
    assert (await ann.get("/metrics")).code == 403
    review = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert (await ann.post(path, review)).body["status"]["allowed"] is False
    who = await ann.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert who.body["status"]["userInfo"]["groups"] == ["dev", "ops", "system:authenticated"]


async def test_others_access_can_be_reviewed(admin: Http) -> None:
    await grant(admin, {"kind": "User", "name": "ann"}, rule("list"))
    attributes = {"verb": "list", "resource": "pods", "namespace": "default"}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    for user, allowed in (("ann", True), ("bob", False)):
        review = {"spec": {"user": user, "resourceAttributes": attributes}}
        assert (await admin.post(path, review)).body["status"]["allowed"] is allowed


async def test_a_name_among_all_counts_for_looking_not_for_deleting(admin: Http, ann: Http) -> None:
    one = rule("list", "watch", "deletecollection", resourceNames=["a"])
    await grant(admin, {"kind": "User", "name": "ann"}, one)
    pods = "/api/v1/namespaces/default/pods"
    for query in ("?fieldSelector=metadata.name%3Da", "?fieldSelector=metadata.name%3D%3Da"):
        assert (await ann.get(pods + query)).code == 200
    assert (await ann.get(f"{pods}?fieldSelector=metadata.name!%3Da")).code == 403
    assert (await ann.delete(f"{pods}?fieldSelector=metadata.name%3Da")).code == 403


async def test_an_update_or_an_apply_that_would_create_needs_the_right_to(
    admin: Http, ann: Http
) -> None:
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"]}
    await grant(
        admin, {"kind": "User", "name": "ann"}, leases, rule("patch", resources="configmaps")
    )
    lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
    assert (await ann.put(lease, {"metadata": {"name": "l"}})).code == 403
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    path = "/api/v1/namespaces/default/configmaps/c?fieldManager=m"
    applied = await ann.patch(path, wanted, "application/apply-patch+yaml")
    assert (applied.code, applied.body["reason"]) == (403, "Forbidden")
    made = await admin.put(lease, {"metadata": {"name": "l"}})
    assert (made.code, (await ann.put(lease, made.body)).code) == (201, 200)
