"""Strangers cannot keep readers out, nor fill the server's memory or its log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from yarl import URL

from bayplan.ui.server import Guard, PageServerOptions, serve
from bayplan.ui.server.connections import ConnectionLimiter
from bayplan.ui.server.files import read_files
from tests.patience import PATIENCE
from tests.ui.pages import page_of

TOKEN = "a-token-that-is-long-enough"
LETS_IN = {"Authorization": f"Bearer {TOKEN}"}
Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def served(connections: ConnectionLimiter) -> AsyncIterator[URL]:
    page = page_of()
    async with (
        page.running(),
        serve(page, PageServerOptions(guard=Guard(TOKEN), connections=connections)) as url,
    ):
        yield URL(url)


async def knock(url: URL, sent: bytes = b"") -> Pipe:
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(sent)
    await writer.drain()
    return reader, writer


async def rest(pipe: Pipe) -> bytes:
    """What still comes until the server ends the connection."""
    try:
        return await pipe[0].read()
    except ConnectionError:
        return b""
    finally:
        pipe[1].close()


async def test_connections_that_ask_for_nothing_make_room_for_readers() -> None:
    connections = ConnectionLimiter(limit=4)
    async with served(connections) as url, aiohttp.ClientSession(url, headers=LETS_IN) as reader:
        async with reader.get("api/state") as first:
            assert first.status == 200
        strangers = [await knock(url, b"GET / HTTP/1.1\r\nX: ") for _ in range(12)]
        gone = [asyncio.create_task(rest(one)) for one in strangers]
        await asyncio.gather(*gone[:8])
        assert len(connections) <= 4
        async with reader.get("api/state") as again:
            assert again.status == 200
        for one in strangers:
            one[1].close()


async def test_a_head_that_is_never_whole_is_not_waited_for() -> None:
    connections = ConnectionLimiter(head_seconds=0.05)
    async with served(connections) as url:
        assert await rest(await knock(url)) == b""
        assert await rest(await knock(url, b"GET / HTTP/1.1\r\nHost: localhost\r\n")) == b""


async def test_an_answered_reader_may_take_longer_than_a_head() -> None:
    connections = ConnectionLimiter(head_seconds=1.0)  # enough for a reader on a busy machine
    async with served(connections) as url, aiohttp.ClientSession(url, headers=LETS_IN) as reader:
        async with reader.get("api/state") as state:
            seq = (await state.json())["seq"]
        async with reader.get("api/stream", params={"after": seq}) as stream:
            assert await rest(await knock(url)) == b""  # which took as long
            assert await stream.content.readline() == b": here\n"
            assert not stream.content.at_eof()


async def test_a_reader_that_takes_nothing_of_its_answers_is_gone() -> None:
    connections = ConnectionLimiter(stalled_seconds=0.05)
    head = f"Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    script = next(name for name in read_files() if name.endswith(".js"))
    async with served(connections) as url:
        reader, writer = await knock(url, f"GET /{script} HTTP/1.1\r\n{head}".encode() * 400)
        assert await reader.readexactly(12) == b"HTTP/1.1 200"
        async with asyncio.timeout(PATIENCE):
            while len(connections):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.01)
        writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: " + b"secret" * 5000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"\x16\x03\x01 nonsense\r\n\r\n",
    ],
)
async def test_what_is_no_request_is_refused_without_a_word_in_the_log(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with served(ConnectionLimiter()) as url:
        assert (await rest(await knock(url, sent))).startswith(b"HTTP/1.0 400")
    assert not caplog.records
