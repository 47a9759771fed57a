"""Objects over HTTP: read, selected, listed page by page."""

from __future__ import annotations

from tests.embedded.apiserver.configmaps import CMS, config_map
from tests.embedded.apiserver.http_client import Http


async def test_selectors_narrow_a_list(http: Http) -> None:
    for name, tier in (("a", "web"), ("b", "db"), ("c", "web")):
        body = config_map(name)
        body["metadata"]["labels"] = {"tier": tier}
        await http.post(CMS, body)

    async def names(query: str) -> list[str]:
        items = (await http.get(f"{CMS}?{query}")).body["items"]
        return [item["metadata"]["name"] for item in items]

    assert await names("labelSelector=tier%3Dweb") == ["a", "c"]
    assert await names("labelSelector=tier%20notin%20(web)") == ["b"]
    assert await names("labelSelector=!tier") == []
    assert await names("fieldSelector=metadata.name%3Db") == ["b"]


async def test_pages_show_the_list_as_it_was_at_the_first(http: Http) -> None:
    for name in "abcd":
        await http.post(CMS, config_map(name))
    first = (await http.get(f"{CMS}?limit=2")).body
    await http.delete(f"{CMS}/d")
    rest = (await http.get(f"{CMS}?limit=2&continue={first['metadata']['continue']}")).body
    seen = [item["metadata"]["name"] for item in first["items"] + rest["items"]]
    assert seen == ["a", "b", "c", "d"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
