"""The HTTP connection: uvicorn's, with limits and the client's certificate.

A response is written as a head and a body; sent separately, each would be a TLS record, a system
call and often a packet of its own, which costs more than the rest of a small response. Therefore
writes are coalesced, and so are responses to pipelined requests, unless one of them takes long.

All responses leave through this module, so it commits the data file before anything is sent.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from bayplan.client.serving.connection import BoundedConnection
from bayplan.embedded.apiserver.errors import method_not_allowed
from bayplan.embedded.apiserver.identity import peer_user
from bayplan.embedded.apiserver.jsontypes import encode
from bayplan.embedded.apiserver.request import UserInfo
from bayplan.embedded.apiserver.store.database import StoreError

_MAX_JOINED_BYTES = 256 * 1024
"""Size in bytes above which writes are not copied to be joined."""
PATIENCE = 32
"""Event loop iterations for which responses wait for the next pipelined ones."""


class CoalescingTransport(asyncio.Transport):
    """Collects writes and sends them once per event loop iteration.

    `commit` puts all writes on file; if it fails nothing is sent any more. `more` returns whether
    other pipelined requests of the client wait for their responses.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        commit: Callable[[], None],
        more: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._commit = commit
        self._more = more
        self._waited = 0
        self._pending: list[bytes] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Send data soon; at once if it is much, so that backpressure works."""
        if not self._pending:
            self._loop.call_soon(self._end_of_turn)
        self._pending.append(bytes(data))
        self._size += len(data)
        if self._size > _MAX_JOINED_BYTES:
            self.flush()

    def _end_of_turn(self) -> None:
        if self._more() and self._waited < PATIENCE and not self._transport.is_closing():
            self._waited += 1
            self._loop.call_soon(self._end_of_turn)
        else:
            self._waited = 0
            self.flush()

    def flush(self) -> None:
        """Send what was written."""
        pending, self._pending = self._pending, []
        size, self._size = self._size, 0
        if not pending or self._transport.is_closing():
            return
        try:
            self._commit()
        except StoreError:
            self._transport.abort()
            return
        if size <= _MAX_JOINED_BYTES:
            pending = [b"".join(pending)]
        for part in pending:
            self._transport.write(part)

    def close(self) -> None:
        """Send what was written, then close."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._pending.clear()
        self._size = 0
        self._transport.abort()

    def is_closing(self) -> bool:
        """Return whether the transport is closed or closing."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return information about the connection."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Stop reading from the client."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Continue reading from the client."""
        self._transport.resume_reading()


_UNKNOWN_METHOD = re.compile(
    rb"(?!(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE|PRI) )"
    rb"(?!(?:COPY|LOCK|MKCOL|MOVE|PROPFIND|PROPPATCH|SEARCH|UNLOCK|BIND|REBIND|UNBIND|ACL|REPORT|"
    rb"MKACTIVITY|CHECKOUT|MERGE|M-SEARCH|NOTIFY|SUBSCRIBE|UNSUBSCRIBE|PURGE|MKCALENDAR|LINK|"
    rb"UNLINK|SOURCE|QUERY) )[A-Z]{1,20} /[^ ]* HTTP/1\.[01]\r\n"
)
"""A request with a method that the parser does not know."""
_NOT_ALLOWED = (
    b"HTTP/1.1 405 Method Not Allowed\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b"
)


class ServerConnection(BoundedConnection):
    """The connection of one client."""

    _peer: UserInfo | None = None

    @staticmethod
    def commit() -> None:
        """Commit the data file; set by `committing`."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Read the user of the client's certificate."""
        coalescing = CoalescingTransport(transport, self.loop, self.commit, self._has_more)
        super().connection_made(coalescing)
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert() if tls is not None else None
        if certificate:
            self._peer = peer_user(certificate.get("subject", ()))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        """Answer an unknown method with 405; the parser would close the connection."""
        if self._is_between() and _UNKNOWN_METHOD.match(data):
            body = encode(method_not_allowed().status())
            self.transport.write(_NOT_ALLOWED % (len(body), body))
            self.transport.close()
            return
        super().data_received(data)

    def _is_between(self) -> bool:
        """Return whether a new request is about to begin."""
        cycle: RequestResponseCycle | None = self.cycle
        begun = self._in_head and self._head_bytes
        return not begun and not self.pipeline and (cycle is None or cycle.response_complete)

    def _has_more(self) -> bool:
        """Return whether pipelined requests wait for their responses."""
        return bool(self.pipeline)

    def on_message_begin(self) -> None:
        """Put the user of the client's certificate into the scope of the request."""
        super().on_message_begin()
        self.scope["state"].update(peer=self._peer, abort=self.transport.abort)

    def on_message_complete(self) -> None:
        """Mark the body as received, so that no handler has to wait for it."""
        self.scope["state"]["arrived"] = True
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """End all work for the client."""
        super().connection_lost(exc)
        cycle: RequestResponseCycle | None = self.cycle
        end = cycle.scope["state"].get("lost") if cycle is not None else None
        if end is not None:
            end()


def committing(commit: Callable[[], None]) -> type[ServerConnection]:
    """Return a connection class that commits before it sends."""
    return type("CommittingConnection", (ServerConnection,), {"commit": staticmethod(commit)})
