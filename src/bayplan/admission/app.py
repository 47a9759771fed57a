"""The webhook as an ASGI application over HTTPS: reviews in, reviews out, within bounds.

What can be read as a review is answered by one, refusals and objects that make no sense included.
What cannot be read gets a plain sentence and a status of 4xx or 503: never a 500.

The rules need the existing queues. Until those are known, requests that depend on them wait a
little, and then get a 503: the failure policy decides what follows.

Open connections keep the certificate that they began with; API servers check it only when they
connect. Stopping finishes what is being answered.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias

from bayplan.admission.metrics import AdmissionMetrics
from bayplan.admission.review import (
    FieldFault,
    ReviewError,
    ReviewRequest,
    ReviewResponse,
    encode_review,
    read_review,
)
from bayplan.admission.rules import NEED_QUEUES, AdmissionRules
from bayplan.client.serving.sockets import UvicornServer, https_config

Receive: TypeAlias = Callable[[], Awaitable[Any]]

MOST_BYTES = 8 * 1024 * 1024
"""The maximum size of a review: it has an object twice, and objects have at most 3 MiB."""
MOST_AT_ONCE = 32 * MOST_BYTES
"""The maximum of bytes that all unfinished request bodies may have together."""
BODY_SECONDS = 5.0
JSON = b"application/json"
TEXT = b"text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response."""

    status: int
    body: bytes
    kind: bytes = TEXT


class RejectedRequest(Exception):  # noqa: N818 - an outcome
    """A request that is not a valid AdmissionReview, with the HTTP response to it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.reply = Reply(status, f"{text}\n".encode())


class BodyReader:
    """Reads request bodies, within limits on size, time and total memory."""

    def __init__(self, most_at_once: int = MOST_AT_ONCE) -> None:
        self._most = most_at_once
        self._held = 0

    async def read(self, scope: dict[str, Any], receive: Receive) -> bytes:
        """Read the whole body; RejectedRequest if it is too large, too slow, or over the total."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if not headers.get(b"content-type", JSON).startswith(JSON):
            raise RejectedRequest(415, "the content type must be application/json")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > MOST_BYTES:
            raise _too_large()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await self._received(receive)
        except TimeoutError:
            raise RejectedRequest(
                408, f"the request body was not received within {BODY_SECONDS:.0f} s"
            ) from None

    async def _received(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        size, more = 0, True
        try:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RejectedRequest(400, "the request body is incomplete")
                part = message.get("body", b"")
                size += len(part)
                self._held += len(part)
                self._check(size)
                parts.append(part)
                more = message.get("more_body", False)
        finally:
            self._held -= size
        return b"".join(parts)

    def _check(self, size: int) -> None:
        if size > MOST_BYTES:
            raise _too_large()
        if self._held > self._most:
            raise RejectedRequest(503, "too many requests at once")


def _too_large() -> RejectedRequest:
    return RejectedRequest(413, f"the request body is larger than {MOST_BYTES} bytes")


Send: TypeAlias = Callable[[Any], Awaitable[None]]

QUEUES_SECONDS = 2.0

log = logging.getLogger(__name__)


class AdmissionApp:
    """The ASGI application that answers admission reviews."""

    def __init__(self, rules: AdmissionRules, metrics: AdmissionMetrics) -> None:
        self._rules = rules.by_path
        self._metrics = metrics
        self._bodies = BodyReader()
        self.knows_queues = asyncio.Event()
        """Set once the index has all queues."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""
        if scope["type"] != "http":
            return
        began = perf_counter()
        try:
            reply = await self._answer(scope, receive)
        except RejectedRequest as rejected:
            reply = rejected.reply
        path = scope["path"] if scope["path"] in self._rules else "other"
        self._metrics.answered(path, reply.status, perf_counter() - began)
        await _send(reply, send)

    async def _answer(self, scope: dict[str, Any], receive: Receive) -> Reply:
        path = scope["path"]
        if path not in self._rules:
            raise RejectedRequest(404, "unknown path; known paths: " + ", ".join(self._rules))
        if scope["method"] != "POST":
            raise RejectedRequest(405, "the method must be POST")
        body = await self._bodies.read(scope, receive)
        try:
            request = read_review(body)
        except ReviewError as error:
            raise RejectedRequest(400, str(error)) from None
        await self._queues_known(path)
        response = self._review(path, request)
        self._metrics.judged(path, request.operation, response)
        return Reply(200, encode_review(request, response), JSON)

    async def _queues_known(self, path: str) -> None:
        if path in NEED_QUEUES and not self.knows_queues.is_set():
            try:
                async with asyncio.timeout(QUEUES_SECONDS):
                    await self.knows_queues.wait()
            except TimeoutError:
                raise RejectedRequest(503, "queues are not loaded yet") from None

    def _review(self, path: str, request: ReviewRequest) -> ReviewResponse:
        try:
            response = self._rules[path](request)
        except ReviewError as error:
            response = ReviewResponse((FieldFault("", str(error)),))
        except Exception:
            log.exception("%s: review %s failed", path, request.uid)
            raise RejectedRequest(503, "the review failed; see the log of the webhook") from None
        if not response.allowed:
            what = f"{request.operation} {request.namespace}/{request.name}"
            log.info("%s: rejected %s: %s", path, what, "; ".join(map(str, response.faults)))
        return response


async def _send(reply: Reply, send: Send) -> None:
    headers = [
        (b"content-type", reply.kind),
        (b"content-length", str(len(reply.body)).encode()),
    ]
    if reply.status in {408, 413}:
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


_GRACE_SECONDS = 5
_MOST_AT_ONCE = 1024


@asynccontextmanager
async def serving(
    app: AdmissionApp, listener: socket.socket, tls: ssl.SSLContext
) -> AsyncIterator[None]:
    """Serve the app over HTTPS while the context is open."""
    server = UvicornServer(
        https_config(app, tls, grace_seconds=_GRACE_SECONDS, most_at_once=_MOST_AT_ONCE)
    )
    task = await server.begin(listener, "webhook")
    try:
        yield
    finally:
        server.end()
        await task
