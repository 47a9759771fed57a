"""What a request may say beside its body, and which changes must say which version they change."""

from __future__ import annotations

from tests.embedded.apiserver.http_client import Http

CMS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


async def test_built_in_objects_do_not_repeat_their_kind_in_lists(http: Http) -> None:
    await http.post(CMS, {"metadata": {"name": "a"}})
    reply = await http.get(CMS)
    assert reply.body["kind"] == "ConfigMapList"
    assert [sorted(item) for item in reply.body["items"]] == [["metadata"]]


async def test_some_kinds_are_changed_only_by_who_names_the_version(http: Http) -> None:
    made = (await http.post(LEASES, {"metadata": {"name": "a"}})).body
    blind = await http.put(f"{LEASES}/a", {"metadata": {"name": "a"}})
    assert (blind.code, blind.body["details"]["causes"][0]["field"]) == (
        422,
        "metadata.resourceVersion",
    )
    assert (await http.put(f"{LEASES}/a", made)).code == 200
    await http.post(CMS, {"metadata": {"name": "a"}})
    assert (await http.put(f"{CMS}/a", {"metadata": {"name": "a"}})).code == 200


async def test_a_deletion_says_one_thing_about_dependents(http: Http) -> None:
    await http.post(CMS, {"metadata": {"name": "a"}})
    both = {"orphanDependents": True, "propagationPolicy": "Background"}
    reply = await http.delete(f"{CMS}/a", both)
    assert (reply.code, reply.body["details"]["kind"]) == (422, "DeleteOptions")
    other = await http.delete(f"{CMS}/a", {"preconditions": {"uid": "x"}})
    assert "the UID in the precondition (x) does not match" in other.body["message"]


async def test_an_owner_that_is_named_twice_is_named_once(http: Http) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    made = await http.post(CMS, {"metadata": {"name": "a", "ownerReferences": [owner, owner]}})
    assert made.body["metadata"]["ownerReferences"] == [owner]
    assert "duplicate UID(s) observed: u" in made.headers["Warning"]
    broken = {**owner, "apiVersion": "a/b/c"}
    refused = await http.post(CMS, {"metadata": {"name": "b", "ownerReferences": [broken]}})
    assert refused.body["details"]["causes"][0]["field"] == "metadata.ownerReferences.apiVersion"


async def test_nobody_but_the_server_says_when_an_object_goes(http: Http) -> None:
    await http.post(CMS, {"metadata": {"name": "a"}})
    going = {"name": "a", "deletionTimestamp": "2020-01-01T00:00:00Z"}
    reply = await http.put(f"{CMS}/a", {"metadata": going})
    assert (reply.code, reply.body["details"]["causes"][0]["field"]) == (
        422,
        "metadata.deletionTimestamp",
    )


async def test_keys_of_config_maps_can_be_file_names(http: Http) -> None:
    for data in ({"bad key": "x"}, {"..": "x"}, {"..x": "x"}):
        reply = await http.post(CMS, {"metadata": {"name": "a"}, "data": data})
        assert (reply.code, reply.body["details"]["causes"][0]["reason"]) == (
            422,
            "FieldValueInvalid",
        )
    both = {"metadata": {"name": "a"}, "data": {"a": "x"}, "binaryData": {"a": "eA=="}}
    assert (await http.post(CMS, both)).code == 422


async def test_an_apply_says_only_what_its_kind_has(http: Http) -> None:
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "bogus": 1}
    apply = "application/apply-patch+yaml"
    reply = await http.patch(f"{CMS}/a?fieldManager=m", wanted, apply)
    assert reply.body["message"] == (
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): "
        ".bogus: field not declared in schema"
    )
    other = await http.patch(f"{CMS}/a?fieldManager=m", {**wanted, "kind": "Foo"}, apply)
    assert other.body["message"] == "invalid object type: /v1, Kind=Foo"


async def test_a_method_that_nobody_knows_is_not_allowed(http: Http) -> None:
    for _ in range(2):
        reply = await http("FOO", CMS)
        assert (reply.code, reply.body["reason"]) == (405, "MethodNotAllowed")
    assert (await http.get(CMS)).code == 200
