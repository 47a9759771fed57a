"""A client's way to a server of the same process: no sockets, but otherwise the same.

Requests go through the server's own app, so authentication, authorization, admission and the
encoding of watches are what HTTP clients meet. The user is known as by a client certificate; a
bearer token in the client's access counts before that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from random import Random
from urllib.parse import urlencode

from bayplan.client.client import Client, Tuning
from bayplan.client.config.access import Access
from bayplan.client.errors import DisconnectedError, UnreachableError
from bayplan.client.wire.transport import Headers, Request
from bayplan.embedded.apiserver.plane import ControlPlane
from bayplan.embedded.apiserver.request import ADMIN, User
from bayplan.embedded.apiserver.store.database import StoreError
from bayplan.embedded.asgi import Asked, CutShort, Reply, calling

_NAME = "https://in.process"


class InProcessReply:
    """An answer from the same process."""

    def __init__(self, request: Request, reply: Reply, commit: Callable[[], None]) -> None:
        self.status = reply.status
        self.header = reply.header
        self._request = request
        self._reply = reply
        self._commit = commit

    async def next_chunk(self) -> bytes:
        """The next piece of the body, as it comes; empty at its end."""
        with _cut_is_known(self._request):
            chunk = await self._reply.next_chunk()
            self._commit()
            return chunk


class InProcessTransport:
    """Carries requests to a control plane in this process."""

    def __init__(self, plane: ControlPlane, user: User | None = None) -> None:
        self._plane = plane
        self._user = user
        self._closed = False
        self._open: dict[Reply, None] = {}

    async def close(self) -> None:
        """Send nothing any more, and cut what is still being answered."""
        self._closed = True
        for reply in self._open:
            reply.abort()

    @asynccontextmanager
    async def open(self, request: Request, headers: Headers) -> AsyncIterator[InProcessReply]:
        """Send a request; leaving the context ends the server's work on it."""
        if self._closed or self._plane.store.closing:
            whose = "the client is closed" if self._closed else "the server has stopped"
            raise UnreachableError(f"{request}: no connection: {whose}")
        asked = Asked(
            request.method,
            request.path,
            urlencode(request.query),
            headers,
            request.body or b"",
            {"peer": self._user},
        )
        with _cut_is_known(request):
            async with calling(self._plane.app, asked) as reply:
                self._open[reply] = None
                try:
                    yield self._committed(request, reply)
                finally:
                    del self._open[reply]

    def _committed(self, request: Request, reply: Reply) -> InProcessReply:
        """An answer that tells of nothing that is not on file."""
        commit = self._plane.database.commit
        commit()
        return InProcessReply(request, reply, commit)


def in_process_client(
    plane: ControlPlane,
    user: User = ADMIN,
    *,
    rng: Random,
    tuning: Tuning | None = None,
) -> Client:
    """A client of a control plane in this process, on the control plane's clock."""
    transport = InProcessTransport(plane, user)
    clock = plane.config.clock
    return Client(Access(_NAME), tuning, transport=transport, clock=clock, rng=rng)


@contextmanager
def _cut_is_known(request: Request) -> Iterator[None]:
    try:
        yield
    except (CutShort, StoreError):
        raise DisconnectedError(f"{request}: the connection was cut") from None
