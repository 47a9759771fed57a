"""One request, once, as somebody: credentials, time limits, size bounds, refusals.

Whatever carries it, every request is under the same bounds: so long until the answer begins, so
long (or so much silence between two pieces) until it ends, so many bytes however it was compressed.
A refusal becomes the exception of its class, without the token that a server may echo.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

from bayplan.client.config.access import Access
from bayplan.client.errors import ApiError, TimedOutError, TooLargeError, error_from, status_from
from bayplan.client.wire.requests import Limits, Request
from bayplan.client.wire.transport import Headers, Reply, Transport

LARGEST_ERROR = 1 << 20


class Answer:
    """An answer that is not a refusal; its body is still coming."""

    def __init__(self, request: Request, reply: Reply, silence: float | None = None) -> None:
        self.request = request
        self._reply = reply
        self._silence = silence

    async def next_chunk(self) -> bytes:
        """The next piece of the body, as it comes; empty at its end."""
        if self._silence is None:
            return await self._reply.next_chunk()
        try:
            async with asyncio.timeout(self._silence):
                return await self._reply.next_chunk()
        except TimeoutError:
            raise _too_late(self.request) from None

    async def read(self, bound: int) -> bytes:
        """The whole body, if it is no bigger than that."""
        parts: list[bytes] = []
        size = 0
        while chunk := await self.next_chunk():
            size += len(chunk)
            if size > bound:
                raise TooLargeError(f"{self.request}: the answer is bigger than {bound} bytes")
            parts.append(chunk)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class Caller:
    """Asks one server as one user."""

    def __init__(
        self, access: Access, transport: Transport, limits: Limits, user_agent: str
    ) -> None:
        self._access = access
        self._transport = transport
        self._limits = limits
        self._own_headers = (*access.impersonation, ("User-Agent", user_agent))

    async def fetch(self, request: Request) -> bytes:
        """The whole answer."""
        headers = await self._headers(request)
        try:
            async with (
                asyncio.timeout(self._limits.answer),
                self._transport.open(request, headers) as reply,
            ):
                if reply.status >= 300:
                    raise await _refusal(request, reply, headers)
                return await Answer(request, reply).read(self._limits.largest_answer)
        except TimeoutError:
            raise _too_late(request) from None

    @asynccontextmanager
    async def stream(self, request: Request, silence: float) -> AsyncIterator[Answer]:
        """The answer as it comes, with at most that many seconds between two pieces."""
        headers = await self._headers(request)
        async with AsyncExitStack() as stack:
            with _in_time(request):
                async with asyncio.timeout(self._limits.answer):
                    opening = self._open(request, headers, silence)
                    answer = await stack.enter_async_context(opening)
            yield answer

    def reject_credentials(self) -> bool:
        """Tell the source of credentials that the server did not take them."""
        return self._access.credentials.reject()

    @asynccontextmanager
    async def _open(
        self, request: Request, headers: Headers, silence: float | None
    ) -> AsyncIterator[Answer]:
        async with self._transport.open(request, headers) as reply:
            if reply.status >= 300:
                raise await _refusal(request, reply, headers)
            yield Answer(request, reply, silence)

    async def _headers(self, request: Request) -> Headers:
        headers = [*self._own_headers, ("Accept", request.accept)]
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        authorization = await self._access.credentials.authorization()
        if authorization is not None:
            headers.append(("Authorization", authorization))
        return headers


@contextmanager
def _in_time(request: Request) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise _too_late(request) from None


def _too_late(request: Request) -> TimedOutError:
    return TimedOutError(f"{request}: no answer in time")


async def _refusal(request: Request, reply: Reply, headers: Headers) -> ApiError:
    body = await Answer(request, reply).read(LARGEST_ERROR)
    secrets = tuple(dict(headers).get("Authorization", "").split()[1:])
    status = status_from(reply.status, body, secrets)
    return error_from(status, str(request), _seconds(reply.header("Retry-After")))


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.isascii() and header.isdigit() else None
