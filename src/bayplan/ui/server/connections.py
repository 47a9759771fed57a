"""Limits of connections: their number, and how long one may stay without a request.

A connection with an accepted request stays for as long as the browser keeps it. Others are
unauthenticated: one without a complete request in time is closed, and at the limit the oldest of
them is closed, so that connections without a token cannot lock out those with one. A client that
reads no byte of its response for long is closed, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

log = logging.getLogger(__name__)
MAX_CONNECTIONS = 512
HEAD_SECONDS = 20.0
"""Seconds in which the first request must be complete."""
STALLED_SECONDS = 30.0
"""Seconds after which a client that reads nothing is disconnected."""


class ConnectionLimiter:
    """All connections of the server."""

    def __init__(
        self,
        limit: int = MAX_CONNECTIONS,
        head_seconds: float = HEAD_SECONDS,
        stalled_seconds: float = STALLED_SECONDS,
    ) -> None:
        self._limit = limit
        self._head_seconds = head_seconds
        self.stalled_seconds = stalled_seconds
        self._unauthenticated: dict[PageConnection, None] = {}
        self._accepted: set[PageConnection] = set()

    def __len__(self) -> int:
        return len(self._unauthenticated) + len(self._accepted)

    def protocol_factory(self, server: web.Server) -> Callable[[], PageConnection]:
        """Return the factory of the connections of a server."""
        loop = asyncio.get_running_loop()
        return lambda: PageConnection(self, server, loop)

    def add(self, connection: PageConnection) -> None:
        """Add a new connection; at the limit, close the oldest unauthenticated one."""
        self._unauthenticated[connection] = None
        if len(self) > self._limit:
            next(iter(self._unauthenticated)).abort()

    def start_timer(self, connection: PageConnection) -> asyncio.TimerHandle:
        """Close a connection that sends no complete request in time."""
        loop = asyncio.get_running_loop()
        return loop.call_later(self._head_seconds, connection.abort)

    def accept(self, request: web.Request) -> None:
        """Keep the connection of an accepted request."""
        connection = request.protocol
        if isinstance(connection, PageConnection) and connection in self._unauthenticated:
            del self._unauthenticated[connection]
            self._accepted.add(connection)

    def remove(self, connection: PageConnection) -> None:
        """Remove a closed connection."""
        self._unauthenticated.pop(connection, None)
        self._accepted.discard(connection)


class PageConnection(web.RequestHandler):
    """A connection of a client."""

    __slots__ = ("_head_timer", "_limiter", "_stall_timer", "_unread")

    def __init__(
        self, limiter: ConnectionLimiter, server: web.Server, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(server, loop=loop, access_log=None, keepalive_timeout=75)  # type: ignore[arg-type]
        self._limiter = limiter
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._unread = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection."""
        super().connection_made(transport)
        self._head_timer = self._limiter.start_timer(self)
        self._limiter.add(self)

    def data_received(self, data: bytes) -> None:
        """Stop the timer once a request is complete."""
        super().data_received(data)
        if self._request_count and self._head_timer is not None:
            self._head_timer.cancel()

    def pause_writing(self) -> None:
        """Watch a client that reads too slowly."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """Stop watching the client."""
        super().resume_writing()
        if self._stall_timer is not None:
            self._stall_timer.cancel()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Remove the connection."""
        for timer in (self._head_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        self._limiter.remove(self)
        super().connection_lost(exc)

    def abort(self) -> None:
        """Close the connection at once."""
        self._limiter.remove(self)
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log our own errors only; an invalid request may have sensitive data."""
        if not isinstance(kw.get("exc_info"), HttpProcessingError):
            super().log_exception(*args, **kw)

    def _watch(self) -> None:
        if isinstance(self.transport, asyncio.WriteTransport):
            self._unread = self.transport.get_write_buffer_size()
            self._stall_timer = self._loop.call_later(
                self._limiter.stalled_seconds, self._check_progress
            )

    def _check_progress(self) -> None:
        transport = self.transport
        if isinstance(transport, asyncio.WriteTransport):
            if transport.get_write_buffer_size() >= self._unread:
                self.abort()
            else:
                self._watch()
