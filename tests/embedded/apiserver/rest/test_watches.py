"""Watches: what clients see, from where they can resume, and who is dropped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from tests.embedded.apiserver.configmaps import CMS, config_map
from tests.embedded.apiserver.http_client import Http
from tests.patience import PATIENCE


async def take(events: AsyncIterator[Any], count: int) -> list[tuple[str, str]]:
    """The next events as (type, name)."""
    found = []
    async for event in events:
        found.append((event["type"], event["object"]["metadata"].get("name", "")))
        if len(found) == count:
            break
    return found


async def test_a_watch_shows_what_is_there_and_what_happens(http: Http) -> None:
    await http.post(CMS, config_map("a"))
    async with http.watch(CMS) as events:
        assert await take(events, 1) == [("ADDED", "a")]
        await http.post(CMS, config_map("b"))
        await http.patch(f"{CMS}/b", {"data": {"x": "1"}})
        await http.delete(f"{CMS}/b")
        assert await take(events, 3) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "b")]


async def test_a_watch_whose_client_is_gone_is_not_kept(server: ApiServer, http: Http) -> None:
    await http.post(CMS, config_map("a"))
    async with http.watch(CMS) as events:
        await take(events, 1)
        assert server.plane.metrics.in_flight == 1
    async with asyncio.timeout(PATIENCE):
        while server.plane.metrics.in_flight:
            await http.get(CMS)  # each a turn in which the server can notice


async def test_a_watch_resumes_after_a_resource_version(http: Http) -> None:
    first = (await http.post(CMS, config_map("a"))).body["metadata"]["resourceVersion"]
    await http.post(CMS, config_map("b"))
    async with http.watch(f"{CMS}?resourceVersion={first}") as events:
        assert await take(events, 1) == [("ADDED", "b")]


async def test_an_object_that_leaves_the_selection_is_deleted_for_the_watcher(http: Http) -> None:
    async with http.watch(f"{CMS}?labelSelector=x%3D1") as events:
        await http.post(CMS, config_map("a"))
        await http.patch(f"{CMS}/a", {"metadata": {"labels": {"x": "1"}}})
        await http.patch(f"{CMS}/a", {"metadata": {"labels": {"x": "2"}}})
        assert await take(events, 2) == [("ADDED", "a"), ("DELETED", "a")]


async def test_streaming_lists_end_with_a_bookmark(http: Http) -> None:
    await http.post(CMS, config_map("a"))
    query = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    async with http.watch(f"{CMS}?{query}") as events:
        await take(events, 1)
        bookmark = await anext(events)
    assert bookmark["type"] == "BOOKMARK"
    meta = bookmark["object"]["metadata"]
    assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(meta["resourceVersion"]) > 0


async def test_a_watch_ends_in_time_with_a_last_bookmark(http: Http) -> None:
    query = "timeoutSeconds=1&allowWatchBookmarks=true"
    async with http.watch(f"{CMS}?{query}") as events:
        assert [event["type"] async for event in events] == ["BOOKMARK"]


async def test_a_version_older_than_the_journal_is_gone(tmp_path: Path) -> None:
    config = ServerConfig(data=tmp_path / "data.db", watch_cache_capacity=4)
    async with ApiServer(config) as server, Http(server) as http:
        first = (await http.post(CMS, config_map("a"))).body["metadata"]["resourceVersion"]
        for number in range(10):
            await http.patch(f"{CMS}/a", {"data": {"n": str(number)}})
        async with http.watch(f"{CMS}?resourceVersion={first}") as events:
            event = await anext(events)
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


async def test_watches_resume_across_a_restart(tmp_path: Path) -> None:
    config = ServerConfig(data=tmp_path / "data.db")
    async with ApiServer(config) as server, Http(server) as http:
        first = (await http.post(CMS, config_map("a"))).body["metadata"]["resourceVersion"]
        await http.post(CMS, config_map("b"))
        await http.delete(f"{CMS}/b")
    async with (
        ApiServer(config) as server,
        Http(server) as http,
        http.watch(f"{CMS}?resourceVersion={first}") as events,
    ):
        assert await take(events, 2) == [("ADDED", "b"), ("DELETED", "b")]


async def test_a_slow_watcher_is_dropped_and_others_see_everything(tmp_path: Path) -> None:
    config = ServerConfig(data=tmp_path / "data.db", watch_cache_capacity=8)
    writes, padding = 60, "x" * 400_000
    async with (
        ApiServer(config) as server,
        Http(server) as http,
        Http(server) as other,
        http.session.get(f"{CMS}?watch=1") as slow,
        other.watch(CMS) as quick,
    ):
        await http.post(CMS, config_map("a", pad=padding))
        seen = [await anext(quick)]
        for number in range(writes):
            await http.patch(f"{CMS}/a", {"data": {"n": str(number)}})
            seen.append(await anext(quick))
        lines = [line async for line in _lines(slow)]
    assert [event["object"]["data"].get("n") for event in seen[1:]] == [
        str(number) for number in range(writes)
    ]
    last = json.loads(lines[-1])
    assert (last["type"], last["object"]["code"]) == ("ERROR", 410)
    assert len(lines) < writes


async def test_a_stopping_server_sends_whoever_comes_late_away(
    server: ApiServer, http: Http
) -> None:
    await http.post(CMS, config_map("a"))
    server.store.release()
    for path in (CMS, f"{CMS}?watch=1"):
        reply = await http("GET", path)
        assert (reply.code, reply.headers["Retry-After"]) == (503, "1")
        assert reply.headers["Connection"] == "close"


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    pending = b""
    async for chunk in response.content.iter_any():
        *whole, pending = (pending + chunk).split(b"\n")
        for line in whole:
            yield line
