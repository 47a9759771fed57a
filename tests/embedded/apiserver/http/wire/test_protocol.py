"""Requests that come together are answered one after the other, and none waits for a slow one."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bayplan.embedded.apiserver.server import ApiServer

CMS = "/api/v1/namespaces/default/configmaps"


@asynccontextmanager
async def connected(
    server: ApiServer,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    context = ssl.create_default_context(cadata=server.authority.pair.certificate.decode())
    host, port = server.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def asking(server: ApiServer, line: str, body: bytes = b"") -> bytes:
    head = [f"{line} HTTP/1.1", "Host: x", f"Authorization: Bearer {server.admin_token}"]
    if body:
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*head, "\r\n"]).encode() + body


def creating(server: ApiServer, name: str) -> bytes:
    return asking(server, f"POST {CMS}", b'{"metadata":{"name":"%b"}}' % name.encode())


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
    return int(lines[0].split()[1]), await reader.readexactly(int(headers["content-length"]))


async def test_answers_come_in_the_order_of_the_requests(server: ApiServer) -> None:
    names = [f"c{number}" for number in range(50)]
    async with connected(server) as (reader, writer):
        writer.write(b"".join(creating(server, name) for name in (*names, "c7")))
        for name in names:
            code, body = await answer_of(reader)
            assert (code, b'"name":"%b"' % name.encode() in body) == (201, True)
        assert (await answer_of(reader))[0] == 409


async def test_an_answer_does_not_wait_for_a_request_that_never_ends(server: ApiServer) -> None:
    async with connected(server) as (reader, writer):
        watch = asking(server, f"GET {CMS}?watch=true")
        row = (creating(server, "a"), watch, creating(server, "b"))
        writer.write(b"".join(row))
        assert (await answer_of(reader))[0] == 201
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        assert b'"name":"a"' in await reader.readuntil(b"}\n")
