"""The HTTP connection: bounded as all of ours are, with the client's certificate, and news of a
client that is gone."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from bayplan.client.serving.connection import BoundedConnection
from bayplan.embedded.apiserver.errors import method_not_allowed
from bayplan.embedded.apiserver.http.wire.coalescing import CoalescingTransport
from bayplan.embedded.apiserver.identity.authenticator import peer_user
from bayplan.embedded.apiserver.jsontypes import encode
from bayplan.embedded.apiserver.request import User

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
