"""The HTTP transport: connections, TLS, and errors of the right class.

A watch can be silent for minutes, so a lost peer (a power failure, a dropped firewall entry) would
not be noticed. TCP keep-alive probes detect it within a minute.

Reads, watches and requests through a proxy use aiohttp; requests that write use a connection pool
of our own (`connections`), because a scheduler sends so many.

Nothing is retried here; that is decided in `calls`. The class of an error shows *how* a request
failed: a connection that was never made is `UnreachableError`, any later failure may have reached
the server. Redirects are not followed, because they would send our credentials elsewhere.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable
from typing import Self

import aiohttp
from aiohttp import AddrInfoType
from multidict import CIMultiDict
from yarl import URL

from bayplan.client.config.access import Access, TlsContexts
from bayplan.client.errors import (
    DisconnectedError,
    MalformedError,
    TimedOutError,
    TransportError,
    UnreachableError,
    UntrustedError,
)
from bayplan.client.wire.connections import Address, ConnectionPool, PooledResponse
from bayplan.client.wire.transport import Headers, Request

_NOT_CONNECTED = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
)
_UNTRUSTED = (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError)
HTTP_FAULTS = (aiohttp.ClientError, OSError)
"""Errors of the HTTP library."""
_CUT = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError)


def as_transport_error(request: object, error: Exception) -> TransportError:
    """Return an error of the HTTP library as one of ours.

    The order matters, because the library's classes inherit from each other.
    """
    if isinstance(error, _UNTRUSTED) or isinstance(error.__cause__, _UNTRUSTED):
        return UntrustedError(f"{request}: the server's certificate is not to be trusted")
    if isinstance(error, _NOT_CONNECTED):
        return UnreachableError(f"{request}: no connection: {_reason(error)}")
    if isinstance(error, TimeoutError):
        return TimedOutError(f"{request}: no answer in time")
    if isinstance(error, _CUT):
        return DisconnectedError(f"{request}: the connection was cut: {_reason(error)}")
    return MalformedError(f"{request}: not an HTTP answer ({type(error).__name__})")


def _reason(error: Exception) -> str:
    """Return the operating system's reason; the library's text may quote what was sent."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return (isinstance(cause, OSError) and cause.strerror) or type(error).__name__


IDLE, INTERVAL, PROBES = 30, 10, 3
_OPTIONS = {"TCP_KEEPIDLE": IDLE, "TCP_KEEPINTVL": INTERVAL, "TCP_KEEPCNT": PROBES}


def keepalive_socket(address: AddrInfoType) -> socket.socket:
    """Return a TCP socket with keep-alive probes, where the platform supports them."""
    family, kind, protocol, _, _ = address
    created = socket.socket(family, kind, protocol)
    created.setblocking(False)
    created.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        if hasattr(socket, name):
            created.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return created


class AiohttpResponse:
    """A response of aiohttp; entering it sends the request, leaving it drops the rest.

    A class and not a generator for speed: there is one for every request.
    """

    def __init__(self, request: Request, sending: Awaitable[aiohttp.ClientResponse]) -> None:
        self._request = request
        self._sending = sending
        self._response: aiohttp.ClientResponse

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status

    def header(self, name: str) -> str | None:
        """Return the value of a header."""
        return self._response.headers.get(name)

    async def next_chunk(self) -> bytes:
        """Return the next chunk of the body; empty at its end."""
        try:
            return await self._response.content.readany()
        except HTTP_FAULTS as error:
            raise as_transport_error(self._request, error) from None

    async def __aenter__(self) -> Self:
        try:
            self._response = await self._sending
        except HTTP_FAULTS as error:
            raise as_transport_error(self._request, error) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        self._response.close()


class HttpTransport:
    """A transport over HTTP to one server."""

    def __init__(self, access: Access, connect_seconds: float) -> None:
        self._access = access
        self._tls = TlsContexts(access.tls)
        self._base = URL(access.server)
        self._root = self._base.raw_path.rstrip("/")
        # Only connecting has a time limit here; the caller limits the rest.
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)
        self._session = aiohttp.ClientSession(
            # The rate limiter bounds requests in flight; watches keep their connections for long.
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=30, socket_factory=keepalive_socket
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._pool = ConnectionPool(self._address, self._root, connect_seconds)
        # By default aiohttp repeats a PUT or DELETE whose kept-alive connection was cut.
        self._session._retry_connection = False  # noqa: SLF001

    async def close(self) -> None:
        """Close all connections."""
        self._pool.close()
        await self._session.close()

    def open(self, request: Request, headers: Headers) -> AiohttpResponse | PooledResponse:
        """Send a request; leaving the context drops the rest of the response."""
        if request.body is not None and self._access.proxy is None:
            return self._pool.open(request, headers)
        return AiohttpResponse(request, self._send(request, headers))

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

    def _address(self) -> Address:
        base, tls = self._base, self._ssl()
        port = base.port or (443 if base.scheme == "https" else 80)
        context = tls if isinstance(tls, ssl.SSLContext) else None
        return Address(base.host or "", port, context, self._access.tls.server_name)

    def _ssl(self) -> ssl.SSLContext | bool:
        if self._base.scheme != "https":
            return True
        return self._tls.current(self._access.credentials.certificate())

    def _url(self, request: Request) -> URL:
        url = self._base.with_path(self._root + request.path, encoded=True)
        return url.with_query(request.query) if request.query else url
