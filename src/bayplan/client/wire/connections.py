"""A connection pool for requests that write: HTTP/1.1, kept alive, one request at a time.

A scheduler sends a few small requests for every pod, and the HTTP library would take most of the
time of each. These connections support no proxies, redirects, cookies or compression. Responses are
parsed by httptools, as in the server.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, cast

import httptools

from bayplan.client.errors import (
    DisconnectedError,
    MalformedError,
    TransportError,
    UnreachableError,
    UntrustedError,
)
from bayplan.client.wire.transport import Headers, Request

MAX_IDLE_SECONDS = 30.0
"""How long an unused connection is kept; the server may close it after that."""


@dataclass(frozen=True, slots=True)
class Address:
    """A server's host, port and TLS."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_name: str | None = None

    @property
    def authority(self) -> str:
        """Host and port, as in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Connection(asyncio.Protocol):
    """A connection, and the response that is being received on it."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._problem: TransportError | None = None
        self._last_used = self._loop.time()
        self.status = 0
        self.headers: dict[str, str] = {}
        self._chunks: deque[bytes] = deque()
        self._complete = True
        self._is_kept_alive = False

    # -- callbacks of asyncio ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Parse more of the response."""
        if self._complete:
            self._fail("unexpected data from the server")
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._problem = MalformedError("not an HTTP answer")
            self.close()
        self._wake()

    def eof_received(self) -> None:
        """Fail: the server closed the connection."""
        self._fail("the server closed it")

    def connection_lost(self, error: Exception | None) -> None:
        """Fail: the connection is closed."""
        self._fail(getattr(error, "strerror", None) or "the server closed it")

    # -- callbacks of the parser ---------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Keep the status once the head is complete."""
        status = self._parser.get_status_code()
        if status >= 200:
            self.status = status
            # The parser drops this at the end of the response.
            self._is_kept_alive = self._parser.should_keep_alive()
        else:
            self.headers.clear()

    def on_body(self, chunk: bytes) -> None:
        """Keep a chunk of the body."""
        self._chunks.append(chunk)

    def on_message_complete(self) -> None:
        """Note that the response is complete."""
        if self.status:
            self._complete = True
            self._last_used = self._loop.time()

    # -- methods of the client -----------------------------------------------------------------

    @property
    def is_usable(self) -> bool:
        """Whether another request can be sent on it."""
        is_fresh = self._loop.time() - self._last_used < MAX_IDLE_SECONDS
        return self._complete and self._problem is None and is_fresh and not self._closing

    @property
    def can_be_reused(self) -> bool:
        """Whether it is usable and the server keeps it alive."""
        return self.is_usable and self._is_kept_alive

    @property
    def _closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    async def send(self, head: bytes, body: bytes) -> None:
        """Send a request, and wait for the head of its response."""
        if self._transport is None:
            raise DisconnectedError("the connection was never made")
        self.status, self._complete, self.headers = 0, False, {}
        self._chunks.clear()
        self._transport.write(head + body)
        while not self.status:
            await self._more()
        if "content-encoding" in self.headers:
            raise MalformedError("a Content-Encoding that was not requested")

    async def next_chunk(self) -> bytes:
        """Return the next chunk of the body; empty at its end."""
        while not self._chunks:
            if self._complete:
                return b""
            await self._more()
        return self._chunks.popleft()

    def close(self) -> None:
        """Let it go, whatever is still to come."""
        if self._transport is not None:
            self._transport.abort()

    async def _more(self) -> None:
        if self._problem is not None:
            raise self._problem
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _fail(self, problem: str) -> None:
        if self._problem is None:
            self._problem = DisconnectedError(f"the connection was cut: {problem}")
        self.close()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class PooledResponse:
    """A response on a pooled connection; entering it sends the request, leaving it ends it."""

    def __init__(self, pool: ConnectionPool, request: Request, headers: Headers) -> None:
        self._pool = pool
        self._request = request
        self._headers = headers
        self._connection: Connection

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._connection.status

    def header(self, name: str) -> str | None:
        """Return the value of a header."""
        return self._connection.headers.get(name.lower())

    async def next_chunk(self) -> bytes:
        """Return the next chunk of the body; empty at its end."""
        try:
            return await self._connection.next_chunk()
        except TransportError as error:
            raise _about(self._request, error) from None

    async def __aenter__(self) -> Self:
        try:
            self._connection = await self._pool.acquire()
        except TransportError as error:
            raise _about(self._request, error) from None
        try:
            head = _head(self._request, self._connection.address, self._pool.root, self._headers)
            await self._connection.send(head, self._request.body or b"")
        except TransportError as error:
            self._pool.drop(self._connection)
            raise _about(self._request, error) from None
        except BaseException:
            self._pool.drop(self._connection)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._pool.release(self._connection)


class ConnectionPool:
    """The open connections to one server."""

    def __init__(self, address: Callable[[], Address], root: str, connect_seconds: float) -> None:
        self._address = address
        self._connect_seconds = connect_seconds
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self.root = root

    def open(self, request: Request, headers: Headers) -> PooledResponse:
        """Send a request; leaving the context drops the rest of the response."""
        return PooledResponse(self, request, headers)

    async def acquire(self) -> Connection:
        """Return an idle connection, or a new one."""
        address = self._address()
        while self._idle:
            connection = self._idle.pop()
            if connection.address == address and connection.is_usable:
                break
            connection.close()
        else:
            connection = await _connect(address, self._connect_seconds)
        self._busy.add(connection)
        return connection

    def release(self, connection: Connection) -> None:
        """Keep a connection for the next request, if its response was read to the end."""
        if connection.can_be_reused:
            self._busy.discard(connection)
            self._idle.append(connection)
        else:
            self.drop(connection)

    def drop(self, connection: Connection) -> None:
        """Close a connection."""
        self._busy.discard(connection)
        connection.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in (*self._idle, *self._busy):
            connection.close()
        self._idle.clear()


async def _connect(address: Address, seconds: float) -> Connection:
    loop = asyncio.get_running_loop()
    hostname = (address.server_name or address.host) if address.tls is not None else None
    try:
        async with asyncio.timeout(seconds):
            _, connection = await loop.create_connection(
                lambda: Connection(address),
                address.host,
                address.port,
                ssl=address.tls,
                server_hostname=hostname,
            )
    except ssl.SSLCertVerificationError:
        raise UntrustedError("the server's certificate is not to be trusted") from None
    except TimeoutError:
        raise UnreachableError("no connection: it took too long") from None
    except OSError as error:
        raise UnreachableError(f"no connection: {error.strerror or type(error).__name__}") from None
    return connection


def _head(request: Request, address: Address, root: str, headers: Headers) -> bytes:
    lines = [f"{request.method} {root}{request.target} HTTP/1.1", f"Host: {address.authority}"]
    lines += [f"{name}: {value}" for name, value in headers]
    lines.append(f"Content-Length: {len(request.body or b'')}\r\n\r\n")
    if any("\n" in line or "\r" in line for line in lines[:-1]):
        raise ValueError(f"{request}: a header has more than one line")
    return "\r\n".join(lines).encode()


def _about(request: Request, error: TransportError) -> TransportError:
    return type(error)(f"{request}: {error}")
