"""Calls of an ASGI application in the same process, without sockets.

The application runs in a task of its own, as under a server. A slow reader makes it wait after a
few chunks (backpressure); a caller that leaves before the end cancels it (a disconnect). An
application that ends, fails or aborts before its response is complete cuts the response short.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import unquote

Message: TypeAlias = dict[str, Any]
Scope: TypeAlias = dict[str, Any]
App: TypeAlias = Callable[
    [Scope, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]
]
PIECES = 16
"""Limit of chunks between the application and a slow reader."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AsgiRequest:
    """A request; its path is percent-encoded."""

    method: str
    path: str
    query: str = ""
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    state: Mapping[str, object] = field(default_factory=dict)

    def scope(self) -> Scope:
        """Return the ASGI scope."""
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "https",
            "method": self.method,
            "path": unquote(self.path),
            "raw_path": self.path.encode("latin-1"),
            "root_path": "",
            "query_string": self.query.encode("latin-1"),
            "headers": [
                (name.lower().encode("latin-1"), value.encode("latin-1"))
                for name, value in self.headers
            ],
            "client": None,
            "server": None,
            "state": dict(self.state),
        }


class ResponseCutShort(Exception):  # noqa: N818 - an outcome that callers handle
    """The application did not complete its response."""


class AsgiResponse:
    """A response whose head has arrived and whose body is being received."""

    def __init__(self, body: bytes) -> None:
        self.status = 0
        self.complete = False
        """Whether the application has sent its whole response."""
        self._headers: dict[str, str] = {}
        self._body: bytes | None = body
        self._begun = asyncio.Event()
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(PIECES)
        self._ended = False

    def header(self, name: str) -> str | None:
        """Return the value of a header."""
        return self._headers.get(name.lower())

    async def next_chunk(self) -> bytes:
        """Return the next chunk of the body; empty at its end; ResponseCutShort if it was cut."""
        if self._ended:
            return b""
        piece = await self._pieces.get()
        if piece is None:
            raise ResponseCutShort
        self._ended = not piece
        return piece

    async def begun(self) -> None:
        """Return when the head has arrived; ResponseCutShort if it never does."""
        await self._begun.wait()
        if not self.status:
            raise ResponseCutShort

    async def receive(self) -> Message:
        """Return the next ASGI message for the application: the whole body, then wait."""
        if self._body is None:
            await asyncio.get_running_loop().create_future()  # waits until the task is cancelled
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        """Process an ASGI message of the application."""
        if message["type"] == "http.response.start":
            pairs: Iterable[tuple[bytes, bytes]] = message.get("headers", ())
            self._headers = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs
            }
            self.status = message["status"]
            self._begun.set()
            return
        if message.get("body"):
            await self._pieces.put(message["body"])
        if not message.get("more_body"):
            self.complete = True
            await self._pieces.put(b"")

    def abort(self) -> None:
        """Cut the response short; unread chunks are dropped."""
        while not self._pieces.empty():
            self._pieces.get_nowait()
        self._pieces.put_nowait(None)
        self._begun.set()


async def _run(app: App, scope: Scope, reply: AsgiResponse) -> None:
    try:
        await app(scope, reply.receive, reply.send)
    except Exception:
        log.exception("%s %s failed", scope["method"], scope["path"])
    finally:
        if not reply.complete:
            reply.abort()


@asynccontextmanager
async def call_app(app: App, requested: AsgiRequest) -> AsyncIterator[AsgiResponse]:
    """Send a request; leaving the context cancels the application's task."""
    reply = AsgiResponse(requested.body)
    scope = requested.scope()
    scope["state"]["abort"] = reply.abort
    name = f"answering {requested.method} {requested.path}"
    task = asyncio.create_task(_run(app, scope, reply), name=name)
    try:
        await reply.begun()
        yield reply
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
