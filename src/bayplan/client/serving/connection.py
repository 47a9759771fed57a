"""The HTTP connection of our servers: uvicorn's, with bounds on a request's head.

A client that sends its request's head too slowly, or never ends it, is cut off; so is one whose
head is larger than any honest one. When the server stops, idle connections are dropped.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_SECONDS = 20.0
HEAD_BYTES = 64 * 1024


class BoundedConnection(HttpToolsProtocol):
    """One client's connection."""

    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a head."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_too_slow)

    def data_received(self, data: bytes) -> None:
        """Refuse to collect a head without end."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("Request header too large.")

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: the request is answered like any other, and what it asks for is not here."""

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = 0
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_too_slow)

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._in_head = False
        self._stop_timer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._stop_timer()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server stops: an idle connection is dropped, a busy one ends with its answer."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete:
            self.transport.abort()
        else:
            super().shutdown()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_too_slow(self) -> None:
        self._head_timer = None
        if self._in_head and not self.transport.is_closing():
            self.transport.close()
