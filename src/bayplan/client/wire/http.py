"""One request to the server, once: headers, TLS, bounds, and errors with their right class.

Nothing here tries again; that is `sending`'s decision. What matters here is to know *how* a request
failed: a connection that was never made is `UnreachableError`, anything after that may have reached
the server. Redirects are not followed, because they would carry our credentials elsewhere, and no
answer is read beyond its bound, however it was compressed.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from bayplan.client.config.access import Access
from bayplan.client.config.tls import TlsContexts
from bayplan.client.errors import ApiError, TooLargeError, error_from, status_from
from bayplan.client.wire.faults import translated
from bayplan.client.wire.requests import Limits, Request
from bayplan.client.wire.sockets import lively_socket

LARGEST_ERROR = 1 << 20


class Answer:
    """An answer whose head is here and whose body is still coming."""

    def __init__(self, request: Request, response: aiohttp.ClientResponse) -> None:
        self.request = request
        self._content = response.content

    async def next_chunk(self) -> bytes:
        """The next piece of the body, as it comes; empty at its end."""
        with translated(self.request):
            return await self._content.readany()

    async def read(self, bound: int) -> bytes:
        """The whole body, if it is no bigger than that."""
        parts, size = [], 0
        while chunk := await self.next_chunk():
            size += len(chunk)
            if size > bound:
                raise TooLargeError(f"{self.request}: the answer is bigger than {bound} bytes")
            parts.append(chunk)
        return b"".join(parts)


class Transport:
    """The connections to one server."""

    def __init__(self, access: Access, limits: Limits, user_agent: str) -> None:
        self._access = access
        self._limits = limits
        self._tls = TlsContexts(access.tls)
        self._base = URL(access.server)
        self._session = aiohttp.ClientSession(
            # The request budget bounds what is in flight; watches hold theirs for long.
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=30, socket_factory=lively_socket
            ),
            headers={"User-Agent": user_agent},
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        # Left to itself aiohttp repeats a PUT or DELETE whose kept-alive connection was cut.
        self._session._retry_connection = False  # noqa: SLF001

    async def close(self) -> None:
        """Let go of the connections."""
        await self._session.close()

    async def fetch(self, request: Request) -> bytes:
        """The whole answer."""
        async with self.open(request, total=self._limits.answer) as answer:
            return await answer.read(self._limits.largest_answer)

    @asynccontextmanager
    async def open(
        self, request: Request, *, total: float | None = None, silence: float | None = None
    ) -> AsyncIterator[Answer]:
        """The answer as it comes: at most `total` seconds in all, `silence` between two parts."""
        authorization = await self._access.credentials.authorization()
        limits = aiohttp.ClientTimeout(
            total=total, sock_connect=self._limits.connect, sock_read=silence
        )
        with translated(request):
            async with asyncio.timeout(self._limits.answer):  # also where the body may last
                response = await self._send(request, authorization, limits)
        answer = Answer(request, response)
        try:
            if response.status >= 300:
                raise await _refusal(answer, response, authorization)
            yield answer
        finally:
            response.close()

    async def _send(
        self, request: Request, authorization: str | None, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        return await self._session.request(
            request.method,
            self._url(request),
            data=request.body,
            headers=self._headers(request, authorization),
            ssl=self._ssl(),
            server_hostname=self._access.tls.server_name,
            proxy=self._access.proxy,
            timeout=limits,
            allow_redirects=False,
        )

    def reject_credentials(self) -> bool:
        """Tell the source of credentials that the server did not take them."""
        return self._access.credentials.reject()

    def _ssl(self) -> ssl.SSLContext | bool:
        if self._base.scheme != "https":
            return True
        return self._tls.current(self._access.credentials.certificate())

    def _url(self, request: Request) -> URL:
        path = self._base.raw_path.rstrip("/") + request.path
        return self._base.with_path(path, encoded=True).with_query(request.query)

    def _headers(self, request: Request, authorization: str | None) -> CIMultiDict[str]:
        headers = CIMultiDict(self._access.impersonation)
        headers["Accept"] = request.accept
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if authorization is not None:
            headers["Authorization"] = authorization
        return headers


async def _refusal(
    answer: Answer, response: aiohttp.ClientResponse, authorization: str | None
) -> ApiError:
    body = await answer.read(LARGEST_ERROR)
    secrets = tuple((authorization or "").split()[1:])
    status = status_from(response.status, body, secrets)
    return error_from(status, str(answer.request), _seconds(response.headers.get("Retry-After")))


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.isascii() and header.isdigit() else None
