"""The door: how many may be connected, and for how long one may hold it open without coming in.

Whoever has been answered as a reader stays for as long as the browser keeps the connection. All
others are strangers: one that sends no whole request in time is sent away, and when the house is
full the stranger that has stood there longest makes room, so that connections without a token
cannot keep out those with one. A client that takes no byte of its answer for long is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

log = logging.getLogger(__name__)
MOST_CONNECTIONS = 512
HEAD_SECONDS = 20.0
"""Seconds in which the first request must be whole."""
STALLED_SECONDS = 30.0
"""Seconds after which a client that has taken nothing of what waits for it is gone."""


class Doors:
    """Everybody who is connected."""

    def __init__(
        self,
        most: int = MOST_CONNECTIONS,
        head_seconds: float = HEAD_SECONDS,
        stalled_seconds: float = STALLED_SECONDS,
    ) -> None:
        self._most = most
        self._head_seconds = head_seconds
        self.stalled_seconds = stalled_seconds
        self._strangers: dict[Connection, None] = {}
        self._readers: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._strangers) + len(self._readers)

    def opener(self, server: web.Server) -> Callable[[], Connection]:
        """Makes the connections of a server."""
        loop = asyncio.get_running_loop()
        return lambda: Connection(self, server, loop)

    def enter(self, one: Connection) -> None:
        """Somebody connects."""
        self._strangers[one] = None
        if len(self) > self._most:
            next(iter(self._strangers)).turn_away()

    def hurry(self, one: Connection) -> asyncio.TimerHandle:
        """Send somebody away who asks for nothing in time."""
        loop = asyncio.get_running_loop()
        return loop.call_later(self._head_seconds, one.turn_away)

    def welcome(self, request: web.Request) -> None:
        """Whoever asked this may read."""
        one = request.protocol
        if isinstance(one, Connection) and one in self._strangers:
            del self._strangers[one]
            self._readers.add(one)

    def leave(self, one: Connection) -> None:
        """Somebody is gone."""
        self._strangers.pop(one, None)
        self._readers.discard(one)


class Connection(web.RequestHandler):
    """One client's connection."""

    __slots__ = ("_doors", "_head_timer", "_left", "_stall_timer")

    def __init__(self, doors: Doors, server: web.Server, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(server, loop=loop, access_log=None, keepalive_timeout=75)  # type: ignore[arg-type]
        self._doors = doors
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody connects."""
        super().connection_made(transport)
        self._head_timer = self._doors.hurry(self)
        self._doors.enter(self)

    def data_received(self, data: bytes) -> None:
        """A request that is whole is enough to wait for its answer."""
        super().data_received(data)
        if self._request_count and self._head_timer is not None:
            self._head_timer.cancel()

    def pause_writing(self) -> None:
        """More waits for the client than it takes."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """The client has taken it."""
        super().resume_writing()
        if self._stall_timer is not None:
            self._stall_timer.cancel()

    def connection_lost(self, exc: BaseException | None) -> None:
        """The client is gone."""
        for timer in (self._head_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        self._doors.leave(self)
        super().connection_lost(exc)

    def turn_away(self) -> None:
        """End it at once."""
        self._doors.leave(self)
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Errors of ours are told; what a client sent that is no request is its own affair, and may
        hold what is nobody's business.
        """
        if not isinstance(kw.get("exc_info"), HttpProcessingError):
            super().log_exception(*args, **kw)

    def _watch(self) -> None:
        if isinstance(self.transport, asyncio.WriteTransport):
            self._left = self.transport.get_write_buffer_size()
            self._stall_timer = self._loop.call_later(self._doors.stalled_seconds, self._look_again)

    def _look_again(self) -> None:
        transport = self.transport
        if isinstance(transport, asyncio.WriteTransport):
            if transport.get_write_buffer_size() >= self._left:
                self.turn_away()
            else:
                self._watch()
