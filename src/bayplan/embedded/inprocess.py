"""A client transport to a server in the same process, without sockets.

Requests go through the server's own app, so authentication, authorization, admission and the
encoding of watches are the same as over HTTP. The user is set as by a client certificate; a bearer
token of the client takes precedence.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from random import Random
from urllib.parse import urlencode

from bayplan.client.client import Client, ClientOptions
from bayplan.client.config.access import Access
from bayplan.client.errors import DisconnectedError, UnreachableError
from bayplan.client.wire.transport import Headers, Request
from bayplan.embedded.apiserver.controlplane import ControlPlane
from bayplan.embedded.apiserver.request import ADMIN, UserInfo
from bayplan.embedded.apiserver.store.database import StoreError
from bayplan.embedded.asgi import AsgiRequest, AsgiResponse, ResponseCutShort, call_app

_NAME = "https://in.process"


class InProcessResponse:
    """A response from the same process."""

    def __init__(self, request: Request, reply: AsgiResponse, commit: Callable[[], None]) -> None:
        self.status = reply.status
        self.header = reply.header
        self._request = request
        self._reply = reply
        self._commit = commit

    async def next_chunk(self) -> bytes:
        """Return the next chunk of the body; empty at its end."""
        with _cut_is_known(self._request):
            chunk = await self._reply.next_chunk()
            self._commit()
            return chunk


class InProcessTransport:
    """Sends requests to a control plane in this process."""

    def __init__(self, plane: ControlPlane, user: UserInfo | None = None) -> None:
        self._plane = plane
        self._user = user
        self._closed = False
        self._open: dict[AsgiResponse, None] = {}

    async def close(self) -> None:
        """Refuse further requests, and cut open responses."""
        self._closed = True
        for reply in self._open:
            reply.abort()

    @asynccontextmanager
    async def open(self, request: Request, headers: Headers) -> AsyncIterator[InProcessResponse]:
        """Send a request; leaving the context cancels the server's work on it."""
        if self._closed or self._plane.store.closing:
            whose = "the client is closed" if self._closed else "the server has stopped"
            raise UnreachableError(f"{request}: no connection: {whose}")
        requested = AsgiRequest(
            request.method,
            request.path,
            urlencode(request.query),
            headers,
            request.body or b"",
            {"peer": self._user},
        )
        with _cut_is_known(request):
            async with call_app(self._plane.app, requested) as reply:
                self._open[reply] = None
                try:
                    yield self._committed(request, reply)
                finally:
                    del self._open[reply]

    def _committed(self, request: Request, reply: AsgiResponse) -> InProcessResponse:
        """Commit the data file before the response is returned."""
        commit = self._plane.database.commit
        commit()
        return InProcessResponse(request, reply, commit)


def in_process_client(
    plane: ControlPlane,
    user: UserInfo = ADMIN,
    *,
    rng: Random,
    options: ClientOptions | None = None,
) -> Client:
    """Return a client of a control plane in this process, on the control plane's clock."""
    transport = InProcessTransport(plane, user)
    clock = plane.config.clock
    return Client(Access(_NAME), options, transport=transport, clock=clock, rng=rng)


@contextmanager
def _cut_is_known(request: Request) -> Iterator[None]:
    try:
        yield
    except (ResponseCutShort, StoreError):
        raise DisconnectedError(f"{request}: the connection was cut") from None
