"""Wait until a watch shows that an object is gone."""

from __future__ import annotations

from tests.embedded.apiserver.http_client import Http


async def gone(http: Http, path: str, name: str) -> None:
    """Return once an object is gone."""
    async with http.watch(f"{path}?fieldSelector=metadata.name%3D{name}") as events:
        if (await http.get(f"{path}/{name}")).code == 404:
            return
        async for event in events:
            if event["type"] == "DELETED":
                return
