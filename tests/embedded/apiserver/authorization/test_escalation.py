"""Nobody gains rights by granting them: escalation checks."""

from __future__ import annotations

from tests.embedded.apiserver.authorization.grants import RBAC, grant, rule
from tests.embedded.apiserver.http_client import Http


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
