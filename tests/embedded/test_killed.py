"""Killed with -9 in a loop under load: nothing acknowledged is lost, no version goes back.

Each round starts the server on the same file, checks that everything that was ever acknowledged is
there at its version or a newer one, watches on from where the last round's watcher was, writes from
several clients, and kills the server in the middle of it.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

ROUNDS = 50
WRITERS = 6
WRITES_BEFORE_THE_KILL = 12
CMS = "/api/v1/namespaces/default/configmaps"


class Process:
    """A server that can be killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def start(self) -> aiohttp.ClientSession:
        config = self._folder / "kubeconfig"
        command = str(Path(sys.executable).with_name("bayplan"))
        self._process = await asyncio.create_subprocess_exec(
            command,
            *("apiserver", "--data", str(self._folder / "data.db"), "--kubeconfig", str(config)),
            stdout=asyncio.subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert (await self._process.stdout.readline()).startswith(b"serving")
        loaded = yaml.safe_load(config.read_text())
        token = loaded["users"][0]["user"]["token"]
        return aiohttp.ClientSession(
            loaded["clusters"][0]["cluster"]["server"],
            headers={"Authorization": f"Bearer {token}"},
            connector=aiohttp.TCPConnector(ssl=False),
        )

    async def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()


class Ledger:
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


async def check(session: aiohttp.ClientSession, ledger: Ledger) -> None:
    async with session.get(CMS) as response:
        listed = await response.json()
    versions = {
        item["metadata"]["name"]: int(item["metadata"]["resourceVersion"])
        for item in listed["items"]
    }
    assert int(listed["metadata"]["resourceVersion"]) >= ledger.newest
    for name, version in ledger.acknowledged.items():
        assert versions.get(name, 0) >= version, f"{name} was acknowledged at {version}"


async def write(
    session: aiohttp.ClientSession, ledger: Ledger, writer: int, enough: asyncio.Event
) -> None:
    number = 0
    try:
        while True:
            number += 1
            name = f"w{writer}-{number % 40}"
            body = {"metadata": {"name": name}, "data": {"n": str(number), "v": str(ledger.newest)}}
            method, path = (
                ("PUT", f"{CMS}/{name}") if name in ledger.acknowledged else ("POST", CMS)
            )
            async with session.request(method, path, json=body) as response:
                answer = await response.json()
                if response.status in (200, 201):
                    ledger.acknowledge(answer["metadata"])
            if number >= WRITES_BEFORE_THE_KILL:
                enough.set()
    except aiohttp.ClientError:
        return


async def follow(session: aiohttp.ClientSession, ledger: Ledger) -> None:
    query = f"?watch=true&resourceVersion={ledger.watched}" if ledger.watched else "?watch=true"
    try:
        async with session.get(CMS + query, timeout=aiohttp.ClientTimeout(total=60)) as response:
            assert response.status == 200, "the watch could not be resumed"
            async for line in response.content:
                ledger.see(json.loads(line)["object"]["metadata"])
    except aiohttp.ClientError:
        return


@pytest.mark.xdist_group("killed")
async def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    ledger, process = Ledger(), Process(tmp_path)
    for _ in range(ROUNDS):
        async with await process.start() as session:
            await check(session, ledger)
            enough = asyncio.Event()
            work = [
                asyncio.create_task(follow(session, ledger)),
                *(asyncio.create_task(write(session, ledger, n, enough)) for n in range(WRITERS)),
            ]
            await asyncio.wait_for(enough.wait(), 30)
            await process.kill()
            await asyncio.gather(*work)
    async with await process.start() as session:
        await check(session, ledger)
        following = asyncio.create_task(follow(session, ledger))
        async with session.post(CMS, json={"metadata": {"name": "last"}}) as response:
            last = int((await response.json())["metadata"]["resourceVersion"])
        await ledger.has_watched(last)
        await process.kill()
        await following
    missed = {
        name: version
        for name, version in ledger.acknowledged.items()
        if ledger.seen.get(name, 0) < version
    }
    assert not missed, "the watcher did not see every acknowledged write"
