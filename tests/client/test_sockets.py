"""A server of ours ends when it is told to; who is being answered gets the answer first."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from bayplan.client.serving.certificates import CertificateAuthority
from bayplan.client.serving.sockets import UvicornServer, address_of, https_config, listening_socket
from bayplan.embedded.apiserver.identity import server_context
from tests.patience import PATIENCE


@dataclass
class SlowApplication:
    """An application that answers when it may."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, _scope: Any, _receive: Any, send: Any) -> None:
        self.asked.set()
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"answered"})


@dataclass
class ServedApplication:
    """An application, its server, and somebody who waits for its answer."""

    app: SlowApplication
    server: UvicornServer
    task: asyncio.Task[None]
    answer: asyncio.Task[str]


@asynccontextmanager
async def served(*, grace_seconds: int) -> AsyncIterator[ServedApplication]:
    authority, now, app = (
        CertificateAuthority.create(datetime.now(UTC)),
        datetime.now(UTC),
        SlowApplication(),
    )
    tls = server_context(authority, ["127.0.0.1"], now)
    trust = ssl.create_default_context(cadata=authority.pair.certificate.decode())
    server = UvicornServer(https_config(app, tls, grace_seconds=grace_seconds))
    with listening_socket("127.0.0.1", 0) as listener:
        url = f"https://{address_of(listener)}/"
        task = await server.begin(listener, "served")
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as session:
            answer = asyncio.create_task(_text(session, url, trust))
            await app.asked.wait()
            yield ServedApplication(app, server, task, answer)


async def _text(session: aiohttp.ClientSession, url: str, trust: ssl.SSLContext) -> str:
    async with session.get(url, ssl=trust) as reply:
        return await reply.text()


async def test_who_is_being_answered_gets_the_answer() -> None:
    async with served(grace_seconds=int(PATIENCE)) as one:
        one.server.end()
        await asyncio.sleep(0)
        assert not one.task.done()
        one.app.may_answer.set()
        assert await one.answer == "answered"
        await one.task


async def test_who_takes_longer_than_the_grace_is_left() -> None:
    async with served(grace_seconds=0) as one:
        one.server.end()
        await one.task
        assert await one.answer == "Internal Server Error"  # and not held for ever


async def test_told_to_end_at_once_it_waits_for_nobody() -> None:
    async with served(grace_seconds=int(PATIENCE)) as one:
        one.server.end(at_once=True)
        await one.task
        one.app.may_answer.set()
        await one.answer


async def test_a_start_that_is_cut_off_leaves_no_server() -> None:
    authority = CertificateAuthority.create(datetime.now(UTC))
    tls = server_context(authority, ["127.0.0.1"], datetime.now(UTC))
    server = UvicornServer(https_config(SlowApplication(), tls, grace_seconds=0))
    with listening_socket("127.0.0.1", 0) as listener:
        starting = asyncio.create_task(server.begin(listener, "served"))
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "served"]
