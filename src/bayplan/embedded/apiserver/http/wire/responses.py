"""Responses: content negotiation, and sending."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from bayplan.embedded.apiserver.errors import PageNotFound, StatusError, not_acceptable
from bayplan.embedded.apiserver.jsontypes import JsonObject, encode

Send = Callable[[Any], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

JSON = b"application/json"
STALLED_SECONDS = 60.0
"""How long a client may read nothing of a stream before it is disconnected."""


@dataclass(slots=True)
class Response:
    """A complete response."""

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
    """A streamed response."""

    chunks: AsyncIterator[bytes]
    content_type: bytes = JSON
    headers: Headers = field(default_factory=list)
    code: int = 200

    async def send(self, send: Send) -> None:
        """Send it piece by piece; an error becomes the stream's last event."""
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
        except StatusError as error:
            last = encode({"type": "ERROR", "object": error.status()}) + b"\n"
            await send({"type": "http.response.body", "body": last, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def json_response(document: JsonObject, code: int = 200) -> Response:
    """Return a JSON response."""
    return Response(encode(document), code)


def error_response(error: StatusError) -> Response:
    """Return the response of an error."""
    if isinstance(error, PageNotFound):
        return Response(error.message.encode(), error.code, b"text/plain; charset=utf-8")
    response = json_response(error.status(), error.code)
    if error.retry_after is not None:
        response.headers.append((b"retry-after", b"%d" % error.retry_after))
    if error.code == 401:
        response.headers.append((b"www-authenticate", b'Bearer realm="bayplan"'))
    return response


OFFERED = ("application/json", "application/yaml")
_NAMED = (*OFFERED, "application/vnd.kubernetes.protobuf")
"""Media types that an error names; clients that accept the last one accept others, too."""
_VERSIONS = ("v1", "v1beta1")
_TRANSFORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


class ResponseFormat(NamedTuple):
    """The media type and the transformation of a response."""

    media_type: str = "application/json"
    transform: str = ""
    version: str = "v1"

    @property
    def meta_version(self) -> str:
        """Return the apiVersion of the transformed object."""
        return f"meta.k8s.io/{self.version}"

    @property
    def content_type(self) -> bytes:
        """Return the Content-Type header."""
        if not self.transform:
            return self.media_type.encode()
        return f"{self.media_type};as={self.transform};v={self.version};g=meta.k8s.io".encode()


PLAIN = ResponseFormat()


@lru_cache(maxsize=256)
def negotiate(accept: bytes | None) -> ResponseFormat:
    """Return the first acceptable format that is supported; 406 if there is none."""
    if not accept:
        return PLAIN
    choices = [_parse(part) for part in accept.decode("latin-1").split(",")]
    for _, form in sorted(choices, key=lambda choice: -choice[0]):
        if form is not None:
            return form
    raise not_acceptable(_NAMED)


def _parse(part: str) -> tuple[float, ResponseFormat | None]:
    media_type, *pairs = (piece.strip() for piece in part.split(";"))
    parameters = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    try:
        quality = float(parameters.get("q", "1"))
    except ValueError:
        quality = 0.0
    return quality, _form(media_type.lower(), parameters)


def _form(media_type: str, parameters: dict[str, str]) -> ResponseFormat | None:
    if media_type in ("*/*", "application/*"):
        media_type = "application/json"
    if media_type not in OFFERED:
        return None
    transform = parameters.get("as", "")
    if not transform:
        return ResponseFormat(media_type)
    known = transform in _TRANSFORMS and parameters.get("g") == "meta.k8s.io"
    version = parameters.get("v", "")
    return (
        ResponseFormat(media_type, transform, version) if known and version in _VERSIONS else None
    )
