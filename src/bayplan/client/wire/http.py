"""Requests over HTTP: connections, TLS, and errors with their right class.

Nothing here tries again; that is `sending`'s decision. What matters here is to know *how* a request
failed: a connection that was never made is `UnreachableError`, anything after that may have reached
the server. Redirects are not followed, because they would carry our credentials elsewhere.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from bayplan.client.config.access import Access
from bayplan.client.config.tls import TlsContexts
from bayplan.client.wire.faults import translated
from bayplan.client.wire.requests import Request
from bayplan.client.wire.sockets import lively_socket
from bayplan.client.wire.transport import Headers


class HttpReply:
    """An answer over HTTP."""

    def __init__(self, request: Request, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self._request = request
        self._response = response

    def header(self, name: str) -> str | None:
        """The value of a header."""
        return self._response.headers.get(name)

    async def next_chunk(self) -> bytes:
        """The next piece of the body, as it comes; empty at its end."""
        with translated(self._request):
            return await self._response.content.readany()


class HttpTransport:
    """The connections to one server."""

    def __init__(self, access: Access, connect_seconds: float) -> None:
        self._access = access
        self._tls = TlsContexts(access.tls)
        self._base = URL(access.server)
        # Only connecting has a limit of its own; what comes after that is the caller's to bound.
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)
        self._session = aiohttp.ClientSession(
            # The request budget bounds what is in flight; watches hold theirs for long.
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=30, socket_factory=lively_socket
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        # Left to itself aiohttp repeats a PUT or DELETE whose kept-alive connection was cut.
        self._session._retry_connection = False  # noqa: SLF001

    async def close(self) -> None:
        """Let go of the connections."""
        await self._session.close()

    @asynccontextmanager
    async def open(self, request: Request, headers: Headers) -> AsyncIterator[HttpReply]:
        """Send a request; leaving the context gives up what has not come yet."""
        with translated(request):
            response = await self._send(request, headers)
        try:
            yield HttpReply(request, response)
        finally:
            response.close()

    async def _send(self, request: Request, headers: Headers) -> aiohttp.ClientResponse:
        return await self._session.request(
            request.method,
            self._url(request),
            data=request.body,
            headers=CIMultiDict(headers),
            ssl=self._ssl(),
            server_hostname=self._access.tls.server_name,
            proxy=self._access.proxy,
            timeout=self._timeout,
            allow_redirects=False,
        )

    def _ssl(self) -> ssl.SSLContext | bool:
        if self._base.scheme != "https":
            return True
        return self._tls.current(self._access.credentials.certificate())

    def _url(self, request: Request) -> URL:
        path = self._base.raw_path.rstrip("/") + request.path
        return self._base.with_path(path, encoded=True).with_query(request.query)
