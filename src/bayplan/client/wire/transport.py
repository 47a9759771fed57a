"""What carries requests to a server: a protocol, so that a client can be handed one.

A transport sends one request, once, and hands back the answer's head as soon as it is there; the
body comes in pieces. It raises `TransportError`s only, and of the right class: `UnreachableError`
if nothing was sent. Who asks, how long an answer may take and what a refusal means is not its
business but the `Caller`'s. `HttpTransport` speaks HTTP; `bayplan.embedded.inprocess` has one that
calls a server of the same process.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

from bayplan.client.wire.requests import Request

Headers: TypeAlias = Sequence[tuple[str, str]]


class Reply(Protocol):
    """An answer whose head is here and whose body is still coming."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    def header(self, name: str) -> str | None:
        """The value of a header."""
        ...

    async def next_chunk(self) -> bytes:
        """The next piece of the body, as it comes; empty at its end."""
        ...


class Transport(Protocol):
    """The way to one server."""

    def open(self, request: Request, headers: Headers) -> AbstractAsyncContextManager[Reply]:
        """Send a request; leaving the context gives up what has not come yet."""
        ...

    async def close(self) -> None:
        """Let go of the connections."""
        ...
