"""Pods created as cheaply as possible: whole requests, several at a time on a few connections.

The load shares two cores with what it loads, so whatever it spends on a pod is missing elsewhere.
Requests are pipelined as HTTP/1.1 allows, bodies encoded once where they do not differ, and of an
answer only its status and the pod's uid are read. Whatever goes wrong ends the run.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import cast

import httptools
import msgspec
from yarl import URL

from bayplan.client import Client
from bayplan.client.config.access import TlsContexts

CONNECTIONS = 5
IN_A_ROW = 10
"""Requests that are sent together on a connection, and answered one after the other."""
Sent = Callable[[str, float], None]
"""Called with the uid of an object that was created, and when it was requested."""


class PostError(RuntimeError):
    """An object that could not be made."""


class _Meta(msgspec.Struct):
    uid: str


class _Made(msgspec.Struct):
    metadata: _Meta


_read = msgspec.json.Decoder(_Made).decode


class _Line(asyncio.Protocol):
    """One connection: requests that were sent in a row, and their answers as they come."""

    def __init__(self, head: bytes, bodies: Iterator[bytes], sent: Sent) -> None:
        self._head = head
        self._bodies = bodies
        self._sent = sent
        self._parser = httptools.HttpResponseParser(self)
        self._moments: deque[float] = deque()
        self._body = b""
        self._transport: asyncio.Transport
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        """Some answers; when all are there, the next row is sent."""
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, PostError) as error:
            self._end(error)
            return
        if not self._moments:
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        """The server is gone."""
        self._end(error or PostError("the server closed the connection"))

    def on_body(self, chunk: bytes) -> None:
        """A piece of an answer."""
        self._body += chunk

    def on_message_complete(self) -> None:
        """One answer."""
        body, self._body = self._body, b""
        status = self._parser.get_status_code()
        if status != 201:
            raise PostError(f"{status}: {body[:500].decode(errors='replace')}")
        self._sent(_read(body).metadata.uid, self._moments.popleft())

    def _send(self) -> None:
        row = list(islice(self._bodies, IN_A_ROW))
        if not row:
            self._end(None)
            return
        self._moments.extend([time.perf_counter()] * len(row))
        self._transport.write(b"".join(b"%b%d\r\n\r\n%b" % (self._head, len(b), b) for b in row))

    def _end(self, error: Exception | None) -> None:
        if not self.over.done():
            if error is None:
                self.over.set_result(None)
            else:
                self.over.set_exception(error)
        self._transport.close()


async def post(client: Client, path: str, bodies: Iterable[bytes], sent: Sent) -> None:
    """Make an object of each body, in order, at a path."""
    access, server = client.access, URL(client.access.server)
    tls = TlsContexts(access.tls).current(access.credentials.certificate())
    head, left = await _head(client, server, path), iter(bodies)
    loop, lines = asyncio.get_running_loop(), []
    for _ in range(CONNECTIONS):
        _, line = await loop.create_connection(
            lambda: _Line(head, left, sent),
            server.host or "",
            server.port or 443,
            ssl=tls if server.scheme == "https" else None,
        )
        lines.append(line.over)
    await asyncio.gather(*lines)


async def _head(client: Client, server: URL, path: str) -> bytes:
    authorization = await client.access.credentials.authorization()
    headers = {"Host": server.authority, "Content-Type": "application/json"}
    if authorization is not None:
        headers["Authorization"] = authorization
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "Content-Length: "]).encode()
