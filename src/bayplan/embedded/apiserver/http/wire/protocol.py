"""The HTTP connection: bounded as all of ours are, with the client's certificate.

An answer is written as a head and a body; sent apart, each would be a TLS record, a system call and
often a packet of its own, which costs more than everything else about a small answer. For the same
reason answers to requests that came together go together, unless one of them takes its time.

It is also the one door through which answers leave, so it is here that what they tell of is put on
file first: whatever was written up to then is committed before anything is sent.
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
from bayplan.embedded.apiserver.request import User
from bayplan.embedded.apiserver.store.database import StoreError

_WORTH_JOINING = 256 * 1024
"""More than this is not copied once more only to save a system call."""
PATIENCE = 32
"""Turns of the event loop for which answers wait for those that follow them."""


class CoalescingTransport(asyncio.Transport):
    """Collects writes and hands them on once, at the end of the turn.

    `commit` puts on file what answers may tell of; if it fails nothing is sent any more. `more`
    says whether other requests of the client wait for their answers.
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
        """Send this soon; at once if it is much, so that a slow reader is noticed."""
        if not self._pending:
            self._loop.call_soon(self._end_of_turn)
        self._pending.append(bytes(data))
        self._size += len(data)
        if self._size > _WORTH_JOINING:
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
        if size <= _WORTH_JOINING:
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
        """Whether it is closed, or about to be."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What is known about the connection."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Let the client wait."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Let the client go on."""
        self._transport.resume_reading()


_STRANGE = re.compile(
    rb"(?!(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE|PRI) )"
    rb"(?!(?:COPY|LOCK|MKCOL|MOVE|PROPFIND|PROPPATCH|SEARCH|UNLOCK|BIND|REBIND|UNBIND|ACL|REPORT|"
    rb"MKACTIVITY|CHECKOUT|MERGE|M-SEARCH|NOTIFY|SUBSCRIBE|UNSUBSCRIBE|PURGE|MKCALENDAR|LINK|"
    rb"UNLINK|SOURCE|QUERY) )[A-Z]{1,20} /[^ ]* HTTP/1\.[01]\r\n"
)
"""A request by a method that the parser does not know."""
_NOT_ALLOWED = (
    b"HTTP/1.1 405 Method Not Allowed\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b"
)


class Connection(BoundedConnection):
    """One client's connection."""

    _peer: User | None = None

    @staticmethod
    def commit() -> None:
        """Put on file what answers may tell of; `committing` says how."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note who the certificate says is there."""
        coalescing = CoalescingTransport(transport, self.loop, self.commit, self._has_more)
        super().connection_made(coalescing)
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert() if tls is not None else None
        if certificate:
            self._peer = peer_user(certificate.get("subject", ()))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        """Answer a method that nobody knows as one that is not allowed; the parser would not."""
        if self._is_between() and _STRANGE.match(data):
            body = encode(method_not_allowed().status())
            self.transport.write(_NOT_ALLOWED % (len(body), body))
            self.transport.close()
            return
        super().data_received(data)

    def _is_between(self) -> bool:
        """Whether a request is about to begin."""
        cycle: RequestResponseCycle | None = self.cycle
        begun = self._in_head and self._head_bytes
        return not begun and not self.pipeline and (cycle is None or cycle.response_complete)

    def _has_more(self) -> bool:
        """Whether requests that came together wait for their answers."""
        return bool(self.pipeline)

    def on_message_begin(self) -> None:
        """A request begins: its scope carries the client's certificate."""
        super().on_message_begin()
        self.scope["state"].update(peer=self._peer, abort=self.transport.abort)

    def on_message_complete(self) -> None:
        """The whole request is there; nobody has to wait for its body, nor to limit the wait."""
        self.scope["state"]["arrived"] = True
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        super().connection_lost(exc)
        cycle: RequestResponseCycle | None = self.cycle
        end = cycle.scope["state"].get("lost") if cycle is not None else None
        if end is not None:
            end()


def committing(commit: Callable[[], None]) -> type[Connection]:
    """Connections on which nothing is sent before it is on file."""
    return type("CommittingConnection", (Connection,), {"commit": staticmethod(commit)})
