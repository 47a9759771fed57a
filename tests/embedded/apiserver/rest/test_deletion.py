"""Objects over HTTP: deleted, one and many."""

from __future__ import annotations

from tests.embedded.apiserver.configmaps import CMS, config_map
from tests.embedded.apiserver.http_client import Http


async def test_a_deleted_object_is_gone(http: Http) -> None:
    await http.post(CMS, config_map("a"))
    gone = await http.delete(f"{CMS}/a")
    assert (gone.code, gone.body["status"]) == (200, "Success")
    missing = await http.get(f"{CMS}/a")
    assert (missing.code, missing.body["message"]) == (404, 'configmaps "a" not found')


async def test_finalizers_hold_an_object_until_they_are_removed(http: Http) -> None:
    body = config_map("a")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    await http.post(CMS, body)
    marked = await http.delete(f"{CMS}/a")
    assert marked.body["metadata"]["deletionTimestamp"]
    await http.patch(f"{CMS}/a", {"metadata": {"finalizers": None}})
    assert (await http.get(f"{CMS}/a")).code == 404


async def test_a_collection_can_be_deleted(http: Http) -> None:
    for name in "abc":
        await http.post(CMS, config_map(name))
    await http.delete(f"{CMS}?fieldSelector=metadata.name!%3Db")
    left = (await http.get(CMS)).body["items"]
    assert [item["metadata"]["name"] for item in left] == ["b"]
