"""Killed with -9, or out of room on its disk: nothing acknowledged is lost, no version goes back.

Each round starts the server on the same file, checks that everything that was ever acknowledged is
there at its version or a newer one, watches on from where the last round's watcher was, writes from
several clients, which deal with their connections in different ways, and kills the server in the
middle of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.embedded.apiserver.processes import (
    CONNECTION_MODES,
    ConnectionMode,
    Process,
    RawClient,
    ServerAddress,
    ServerGone,
)
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


ROUNDS, LONG_ROUNDS = 6, 50
WRITERS = 6
WRITES_BEFORE_THE_KILL = 12
CMS = "/api/v1/namespaces/default/configmaps"
UNWRITABLE = 74
ROOM = 1024 * 1024
FILLING = "x" * 20_000


class AcknowledgedWrites:
    """What the server has acknowledged, and what a watcher has seen."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, int] = {}
        self.seen: dict[str, int] = {}
        self.newest = 0
        self.watched = 0
        self._news = asyncio.Event()

    def acknowledge(self, meta: dict[str, Any]) -> None:
        version = int(meta["resourceVersion"])
        assert version > self.acknowledged.get(meta["name"], 0)
        self.acknowledged[meta["name"]] = version
        self.newest = max(self.newest, version)

    def see(self, meta: dict[str, Any]) -> None:
        version = int(meta["resourceVersion"])
        assert version > self.watched, "an event came twice, or out of order"
        self.watched = version
        self.seen[meta["name"]] = version
        self._news.set()

    async def has_watched(self, version: int) -> None:
        while self.watched < version:
            self._news.clear()
            await self._news.wait()


async def check(address: ServerAddress, ledger: AcknowledgedWrites) -> None:
    ask = RawClient(address)
    _, listed = await ask("GET", CMS)
    ask.hang_up()
    versions = {
        item["metadata"]["name"]: int(item["metadata"]["resourceVersion"])
        for item in listed["items"]
    }
    assert int(listed["metadata"]["resourceVersion"]) >= ledger.newest
    for name, version in ledger.acknowledged.items():
        assert versions.get(name, 0) >= version, f"{name} was acknowledged at {version}"


async def write(
    ask: RawClient,
    ledger: AcknowledgedWrites,
    writer: str,
    *,
    filling: str = "",
    wrote: Callable[[int], None],
) -> None:
    """Write until the server is gone."""
    number = 0
    try:
        while True:
            number += 1
            name = f"w{writer}-{number % 40}"
            data = {"n": str(number), "v": str(ledger.newest), "x": filling}
            body = {"metadata": {"name": name}, "data": data}
            known = name in ledger.acknowledged
            path = f"{CMS}/{name}" if known else CMS
            code, answer = await ask("PUT" if known else "POST", path, body)
            if code in (200, 201):
                ledger.acknowledge(answer["metadata"])
            wrote(number)
    except ServerGone:
        return
    finally:
        ask.hang_up()


async def lines(address: ServerAddress, query: str) -> AsyncIterator[bytes]:
    async with (
        aiohttp.ClientSession(
            f"https://{address.host}:{address.port}",
            headers={"Authorization": f"Bearer {address.token}"},
            connector=aiohttp.TCPConnector(ssl=address.tls),
        ) as session,
        session.get(CMS + query, timeout=aiohttp.ClientTimeout(total=60)) as response,
    ):
        assert response.status == 200, "the watch could not be resumed"
        async for line in response.content:
            yield line


async def follow(address: ServerAddress, ledger: AcknowledgedWrites) -> None:
    query = f"?watch=true&resourceVersion={ledger.watched}" if ledger.watched else "?watch=true"
    try:
        async for line in lines(address, query):
            ledger.see(json.loads(line)["object"]["metadata"])
    except aiohttp.ClientError:
        return


async def one_round(process: Process, ledger: AcknowledgedWrites) -> None:
    address = await process.start()
    await check(address, ledger)
    enough = asyncio.Event()

    def wrote(number: int) -> None:
        if number >= WRITES_BEFORE_THE_KILL:
            enough.set()

    work = [asyncio.create_task(follow(address, ledger))]
    for number in range(WRITERS):
        ask = RawClient(address, CONNECTION_MODES[number % len(CONNECTION_MODES)])
        work.append(asyncio.create_task(write(ask, ledger, str(number), wrote=wrote)))
    await asyncio.wait_for(enough.wait(), PATIENCE)
    await process.kill()
    await asyncio.gather(*work)


@pytest.mark.xdist_group("killed")
async def test_nothing_acknowledged_is_lost_when_the_server_is_killed(
    tmp_path: Path, long: bool
) -> None:
    ledger, process = AcknowledgedWrites(), Process(tmp_path)
    for _ in range(LONG_ROUNDS if long else ROUNDS):
        await one_round(process, ledger)
    address = await process.start()
    await check(address, ledger)
    following = asyncio.create_task(follow(address, ledger))
    ask = RawClient(address)
    _, last = await ask("POST", CMS, {"metadata": {"name": "last"}})
    await ledger.has_watched(int(last["metadata"]["resourceVersion"]))
    ask.hang_up()
    await process.kill()
    await following
    missed = {
        name: version
        for name, version in ledger.acknowledged.items()
        if ledger.seen.get(name, 0) < version
    }
    assert not missed, "the watcher did not see every acknowledged write"


@pytest.mark.xdist_group("killed")
@pytest.mark.parametrize("mode", CONNECTION_MODES)
async def test_nothing_acknowledged_is_lost_when_the_disk_is_full(
    tmp_path: Path, mode: ConnectionMode, long: bool
) -> None:
    for number in range(LONG_ROUNDS // len(CONNECTION_MODES) + 1 if long else 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        ledger, process = AcknowledgedWrites(), Process(folder)
        address = await process.start(ROOM)
        clients = [RawClient(address, mode) for _ in range(3)]
        await asyncio.gather(
            *(
                write(ask, ledger, str(which), filling=FILLING, wrote=lambda _: None)
                for which, ask in enumerate(clients)
            )
        )
        assert await process.ended() == UNWRITABLE
        assert ledger.acknowledged, "there was room for nothing"
        await check(await process.start(), ledger)
        await process.kill()
