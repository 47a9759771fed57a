"""Who clients are, and what RBAC lets them do."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.identity import TokenFileError, Tokens
from bayplan.embedded.apiserver.server import ApiServer
from tests.embedded.http_client import Http

RBAC = "/apis/rbac.authorization.k8s.io/v1"
TOKENS = """
ann-token,ann,u1,"dev,ops"
sa-token,system:serviceaccount:default:robot,u2
"""


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[ApiServer]:
    """A server where RBAC decides."""
    path = tmp_path / "tokens.csv"
    path.write_text(TOKENS)
    async with ApiServer(ServerConfig(tokens=path, authorization="rbac")) as running:
        yield running


@pytest.fixture
async def admin(guarded: ApiServer) -> AsyncIterator[Http]:
    async with Http(guarded) as client:
        yield client


@pytest.fixture
async def ann(guarded: ApiServer) -> AsyncIterator[Http]:
    async with Http(guarded, "ann-token") as client:
        yield client


def rule(*verbs: str, resources: str = "pods", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": resources.split(), "verbs": list(verbs), **more}


async def grant(
    admin: Http, subject: dict[str, str], *rules: dict[str, Any], name: str = "r"
) -> None:
    where = f"{RBAC}/namespaces/default"
    await admin.post(f"{where}/roles", {"metadata": {"name": name}, "rules": list(rules)})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    body = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    assert (await admin.post(f"{where}/rolebindings", body)).code == 201


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


async def test_a_client_certificate_says_who_somebody_is(
    guarded: ApiServer, tmp_path: Path
) -> None:
    pair = guarded.client_certificate("eve", ("system:masters",))
    path = tmp_path / "client.pem"
    path.write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(cadata=guarded.authority.pair.certificate.decode())
    context.load_cert_chain(path)
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(guarded.url, connector=connector) as session:
        async with session.get("/api/v1/secrets") as response:
            assert response.status == 200
        reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        async with session.post(reviews, json={}) as response:
            info = (await response.json())["status"]["userInfo"]
        wrong = {"Authorization": "Bearer nope"}
        async with session.get("/api/v1/secrets", headers=wrong) as response:
            assert response.status == 401
    assert (info["username"], info["groups"]) == ("eve", ["system:masters", "system:authenticated"])


@pytest.mark.parametrize("line", ["just-a-token", ",user,uid", "token,,uid"])
def test_a_token_file_with_a_bad_line_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text(f"fine,user,1\n{line}\n")
    with pytest.raises(TokenFileError, match=":2: needs at least"):
        Tokens().load(path)


async def test_credentials_and_identity_survive_a_restart(tmp_path: Path) -> None:
    config = ServerConfig(data=tmp_path / "data.db")
    async with ApiServer(config) as first:
        known = (first.admin_token, first.authority.pair.certificate)
    async with ApiServer(config) as second:
        assert (second.admin_token, second.authority.pair.certificate) == known
    assert (tmp_path / "data.db").stat().st_mode & 0o077 == 0


async def test_nobody_grants_what_they_do_not_have(admin: Http, ann: Http) -> None:
    await grant(
        admin,
        {"kind": "User", "name": "ann"},
        {
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["roles", "rolebindings"],
            "verbs": ["create", "update", "patch"],
        },
        rule("list"),
    )
    roles = f"{RBAC}/namespaces/default/roles"
    bindings = f"{RBAC}/namespaces/default/rolebindings"
    more = await ann.post(roles, {"metadata": {"name": "x"}, "rules": [rule("*", resources="*")]})
    assert more.code == 403
    assert "not currently held" in more.body["message"]
    same = await ann.post(roles, {"metadata": {"name": "y"}, "rules": [rule("list")]})
    assert same.code == 201
    raised = await ann.patch(f"{roles}/y", {"rules": [rule("list", resources="secrets")]})
    assert raised.code == 403
    subjects = [{"kind": "User", "name": "ann"}]
    reference = {"kind": "ClusterRole", "name": "cluster-admin"}
    own = {"metadata": {"name": "x"}, "roleRef": reference, "subjects": subjects}
    assert (await ann.post(bindings, own)).code == 403
    fine = {**own, "roleRef": {"kind": "Role", "name": "y"}}
    assert (await ann.post(bindings, fine)).code == 201


async def test_the_administrator_can_act_as_somebody_else(admin: Http, ann: Http) -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    as_bob = {"Impersonate-User": "bob", "Impersonate-Group": "dev"}
    who = (await admin("POST", path, {}, as_bob)).body["status"]["userInfo"]
    assert (who["username"], who["groups"]) == ("bob", ["dev", "system:authenticated"])
    secrets = "/api/v1/secrets"
    assert (await admin("GET", secrets, headers=as_bob)).code == 403
    as_admin = {"Impersonate-User": "system:admin", "Impersonate-Group": "system:masters"}
    assert (await ann("GET", secrets, headers=as_admin)).code == 403
    assert (await admin("GET", secrets, headers={"Impersonate-Uid": "5"})).code == 400


async def test_a_role_that_does_not_exist_is_bound_only_by_who_may_bind_it(
    admin: Http, ann: Http
) -> None:
    bindings = f"{RBAC}/namespaces/default/rolebindings"
    may_write = {
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["rolebindings"],
        "verbs": ["create", "update", "patch"],
    }
    await grant(admin, {"kind": "User", "name": "ann"}, may_write)
    reference = {"kind": "Role", "name": "later"}
    own = {
        "metadata": {"name": "x"},
        "roleRef": reference,
        "subjects": [{"kind": "User", "name": "ann"}],
    }
    refused = await ann.post(bindings, own)
    assert (refused.code, refused.body["details"]["name"]) == (404, "later")
    assert (await admin.post(bindings, own)).code == 201
    assert (await ann.patch(f"{bindings}/x", {"metadata": {"finalizers": ["a.b/c"]}})).code == 200
    assert (await ann.patch(f"{bindings}/x", {"metadata": {"labels": {"a": "b"}}})).code == 404
    may_bind = {**may_write, "resources": ["roles"], "verbs": ["bind"], "resourceNames": ["later"]}
    await grant(admin, {"kind": "User", "name": "ann"}, may_bind, name="binder")
    assert (await ann.post(bindings, {**own, "metadata": {"name": "y"}})).code == 201


async def test_service_accounts_are_impersonated_as_service_accounts(
    admin: Http, ann: Http
) -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    as_robot = {"Impersonate-User": "system:serviceaccount:default:robot"}
    refused = await ann("POST", path, {}, as_robot)
    assert (refused.code, refused.body["details"]["kind"]) == (403, "serviceaccounts")
    impersonate = rule("impersonate", resources="serviceaccounts", resourceNames=["robot"])
    await grant(admin, {"kind": "User", "name": "ann"}, impersonate)
    who = (await ann("POST", path, {}, as_robot)).body["status"]["userInfo"]
    assert who["groups"] == [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ]
    elsewhere = {"Impersonate-User": "system:serviceaccount:kube-system:robot"}
    assert (await ann("POST", path, {}, elsewhere)).code == 403
    users = rule("impersonate", resources="users")
    await grant(admin, {"kind": "User", "name": "ann"}, users, name="users")
    assert (await ann("POST", path, {}, elsewhere)).code == 403


async def test_what_else_is_known_of_a_user_is_impersonated_too(admin: Http) -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    headers = {"Impersonate-User": "bob", "Impersonate-Uid": "7", "Impersonate-Extra-a%2fb": "c"}
    who = (await admin("POST", path, {}, headers)).body["status"]["userInfo"]
    assert (who["uid"], who["extra"]) == ("7", {"a/b": ["c"]})


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
