"""Answers, and how they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from bayplan.embedded.apiserver.errors import ApiError, PageNotFound
from bayplan.embedded.apiserver.jsontypes import JsonObject, encode

Send = Callable[[Any], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

JSON = b"application/json"
STALLED_SECONDS = 60.0
"""How long a client may take none of a stream before it is given up."""


@dataclass(slots=True)
class Response:
    """A whole answer."""

    body: bytes
    code: int = 200
    content_type: bytes = JSON
    headers: Headers = field(default_factory=list)

    async def send(self, send: Send) -> None:
        """Send it."""
        headers = [
            (b"content-type", self.content_type),
            (b"content-length", b"%d" % len(self.body)),
            (b"cache-control", b"no-cache, private"),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": self.code, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


@dataclass(slots=True)
class Stream:
    """An answer without a known end."""

    chunks: AsyncIterator[bytes]
    content_type: bytes = JSON
    headers: Headers = field(default_factory=list)
    code: int = 200

    async def send(self, send: Send) -> None:
        """Send it piece by piece; an error on the way becomes the stream's last event."""
        headers = [
            (b"content-type", self.content_type),
            (b"cache-control", b"no-cache, private"),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": self.code, "headers": headers})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        try:
            async for chunk in self.chunks:
                async with asyncio.timeout(STALLED_SECONDS):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except ApiError as error:
            last = encode({"type": "ERROR", "object": error.status()}) + b"\n"
            await send({"type": "http.response.body", "body": last, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def json_response(document: JsonObject, code: int = 200) -> Response:
    """A document as JSON."""
    return Response(encode(document), code)


def error_response(error: ApiError) -> Response:
    """A refusal."""
    if isinstance(error, PageNotFound):
        return Response(error.message.encode(), error.code, b"text/plain; charset=utf-8")
    response = json_response(error.status(), error.code)
    if error.retry_after is not None:
        response.headers.append((b"retry-after", b"%d" % error.retry_after))
    if error.code == 401:
        response.headers.append((b"www-authenticate", b'Bearer realm="bayplan"'))
    return response
