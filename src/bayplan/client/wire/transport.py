"""What carries requests to a server: a request as a value, its bounds, and the protocol.

A transport sends one request, once, and hands back the answer's head as soon as it is there; the
body comes in pieces. It raises `TransportError`s only, and of the right class: `UnreachableError`
if nothing was sent. Who asks, how long an answer may take and what a refusal means is not its
business but the `Caller`'s. `HttpTransport` speaks HTTP; `bayplan.embedded.inprocess` has one that
calls a server of the same process.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias
from urllib.parse import urlencode


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask. `repeatable` says that asking twice does no more than asking once."""

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    repeatable: bool = False
    retry_refusals: bool = True

    @property
    def target(self) -> str:
        """Path and query, as they stand in a request."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on time and size."""

    connect: float = 10.0
    answer: float = 60.0
    largest_answer: int = 512 << 20
    largest_event: int = 16 << 20


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
