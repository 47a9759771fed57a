"""Owners, dependents and namespaces: what goes when something goes."""

from __future__ import annotations

from typing import Any

from tests.embedded.apiserver.configmaps import CMS, config_map
from tests.embedded.apiserver.http_client import Http
from tests.embedded.apiserver.watches import gone


async def owned(http: Http, name: str, *owners: dict[str, Any], block: bool = False) -> Any:
    body = config_map(name)
    body["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": block,
        }
        for owner in owners
    ]
    return (await http.post(CMS, body)).body


async def test_dependents_follow_their_owner(http: Http) -> None:
    owner = (await http.post(CMS, config_map("owner"))).body
    child = await owned(http, "child", owner)
    await owned(http, "grandchild", child)
    await http.delete(f"{CMS}/owner", {"propagationPolicy": "Background"})
    await gone(http, CMS, "child")
    await gone(http, CMS, "grandchild")


async def test_a_dependent_stays_while_one_owner_is_left(http: Http) -> None:
    first = (await http.post(CMS, config_map("first"))).body
    second = (await http.post(CMS, config_map("second"))).body
    await owned(http, "child", first, second)
    await owned(http, "only-first", first)
    await http.delete(f"{CMS}/first")
    await gone(http, CMS, "only-first")
    assert (await http.get(f"{CMS}/child")).code == 200


async def test_orphans_stay_and_forget_their_owner(http: Http) -> None:
    owner = (await http.post(CMS, config_map("owner"))).body
    await owned(http, "child", owner)
    await http.delete(f"{CMS}/owner", {"propagationPolicy": "Orphan"})
    await gone(http, CMS, "owner")
    assert "ownerReferences" not in (await http.get(f"{CMS}/child")).body["metadata"]


async def test_in_the_foreground_the_owner_goes_last(http: Http) -> None:
    owner = (await http.post(CMS, config_map("owner"))).body
    await owned(http, "child", owner, block=True)
    await http.patch(f"{CMS}/child", {"metadata": {"finalizers": ["example.com/hold"]}})
    await http.delete(f"{CMS}/owner", {"propagationPolicy": "Foreground"})
    async with http.watch(f"{CMS}?fieldSelector=metadata.name%3Dchild") as events:
        async for event in events:
            if "deletionTimestamp" in event["object"]["metadata"]:
                break
    waiting = (await http.get(f"{CMS}/owner")).body["metadata"]
    assert waiting["finalizers"] == ["foregroundDeletion"]
    await http.patch(f"{CMS}/child", {"metadata": {"finalizers": None}})
    await gone(http, CMS, "owner")
    assert (await http.get(f"{CMS}/child")).code == 404


async def test_an_object_of_an_owner_that_never_was_is_collected(http: Http) -> None:
    ghost = {"metadata": {"name": "ghost", "uid": "no-such-uid"}}
    await owned(http, "child", ghost)
    await gone(http, CMS, "child")


async def test_a_namespace_goes_with_everything_in_it(http: Http) -> None:
    await http.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await http.post("/api/v1/namespaces/team/configmaps", config_map("free"))
    await http.post("/api/v1/namespaces/team/configmaps", held)
    going = (await http.delete("/api/v1/namespaces/team")).body
    assert going["status"]["phase"] == "Terminating"
    refused = await http.post("/api/v1/namespaces/team/configmaps", config_map("late"))
    assert refused.code == 403
    assert refused.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    await gone(http, "/api/v1/namespaces/team/configmaps", "free")
    release = {"metadata": {"finalizers": None}}
    await http.patch("/api/v1/namespaces/team/configmaps/held", release)
    await gone(http, "/api/v1/namespaces", "team")


async def test_the_systems_namespaces_stay(http: Http) -> None:
    refused = await http.delete("/api/v1/namespaces/kube-system")
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")


async def test_what_its_last_owner_gave_up_is_anybody_s(http: Http) -> None:
    path, apply = "/api/v1/nodes/n?fieldManager=", "application/apply-patch+yaml"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    tainted = {**node, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    await http.patch(f"{path}one", tainted, apply)
    given_up = await http.patch(f"{path}one", node, apply)
    assert "managedFields" not in given_up.body["metadata"]
    other = {**node, "spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}}
    assert (await http.patch(f"{path}two", other, apply)).code == 200
