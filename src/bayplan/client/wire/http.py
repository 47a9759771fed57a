"""Requests over HTTP: connections, TLS, and errors with their right class.

A watch can be silent for minutes, so a peer that vanished without a goodbye (a pulled plug, a
firewall that forgot us) would not be missed. Keep-alive probes find out within a minute.

Reads, watches and whatever goes through a proxy are aiohttp's; requests that write have connections
of our own (`connections`), because a scheduler sends so many.

Nothing here tries again; that is `sending`'s decision. What matters here is to know *how* a request
failed: a connection that was never made is `UnreachableError`, anything after that may have reached
the server. Redirects are not followed, because they would carry our credentials elsewhere.
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
from bayplan.client.wire.connections import Address, Connections, Exchange
from bayplan.client.wire.transport import Headers, Request

_NOT_CONNECTED = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
)
_UNTRUSTED = (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError)
HTTP_FAULTS = (aiohttp.ClientError, OSError)
"""What the HTTP library raises."""
_CUT = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError)


def ours(request: object, error: Exception) -> TransportError:
    """Whatever the HTTP library raised, as one of our own.

    The order matters: the library's classes inherit from each other criss-cross.
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
    """The operating system's words for it; the library's own may quote what was sent."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return (isinstance(cause, OSError) and cause.strerror) or type(error).__name__


IDLE, INTERVAL, PROBES = 30, 10, 3
_OPTIONS = {"TCP_KEEPIDLE": IDLE, "TCP_KEEPINTVL": INTERVAL, "TCP_KEEPCNT": PROBES}


def lively_socket(address: AddrInfoType) -> socket.socket:
    """A TCP socket that probes a silent peer, where the platform can."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


class HttpReply:
    """An answer over HTTP; entering it sends the request, leaving it gives up what has not come.

    A class, not a generator: there is one for every request.
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
        """The value of a header."""
        return self._response.headers.get(name)

    async def next_chunk(self) -> bytes:
        """The next piece of the body, as it comes; empty at its end."""
        try:
            return await self._response.content.readany()
        except HTTP_FAULTS as error:
            raise ours(self._request, error) from None

    async def __aenter__(self) -> Self:
        try:
            self._response = await self._sending
        except HTTP_FAULTS as error:
            raise ours(self._request, error) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        self._response.close()


class HttpTransport:
    """The connections to one server."""

    def __init__(self, access: Access, connect_seconds: float) -> None:
        self._access = access
        self._tls = TlsContexts(access.tls)
        self._base = URL(access.server)
        self._root = self._base.raw_path.rstrip("/")
        # Only connecting has a limit of its own; what comes after that is the caller's to bound.
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)
        self._session = aiohttp.ClientSession(
            # The request budget bounds what is in flight; watches hold theirs for long.
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=30, socket_factory=lively_socket
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._writing = Connections(self._address, self._root, connect_seconds)
        # Left to itself aiohttp repeats a PUT or DELETE whose kept-alive connection was cut.
        self._session._retry_connection = False  # noqa: SLF001

    async def close(self) -> None:
        """Let go of the connections."""
        self._writing.close()
        await self._session.close()

    def open(self, request: Request, headers: Headers) -> HttpReply | Exchange:
        """Send a request; leaving the context gives up what has not come yet."""
        if request.body is not None and self._access.proxy is None:
            return self._writing.open(request, headers)
        return HttpReply(request, self._send(request, headers))

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
