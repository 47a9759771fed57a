"""The HTTP connection of our servers: uvicorn's, with limits on the request head.

A connection is closed if its request head is too slow or too large. When the server stops, idle
connections are dropped.
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
        """Start the timer of the first request head."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_too_slow)

    def data_received(self, data: bytes) -> None:
        """Refuse a request head that is too large."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("Request header too large.")

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the request is answered without the upgrade."""

    def on_message_begin(self) -> None:
        """Start the timer of the next request head."""
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = 0
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_too_slow)

    def on_headers_complete(self) -> None:
        """Stop the timer: the request head is complete."""
        self._in_head = False
        self._stop_timer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer: the connection is closed."""
        self._stop_timer()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Drop an idle connection, or let a busy one end with its response."""
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
