"""The transport protocol: requests, their limits, and responses.

A transport sends a request once and returns the response's head as soon as it is received; the body
is read in chunks. It raises only `TransportError`s, of the right class: `UnreachableError` if
nothing was sent. Credentials, time limits and refusals are handled by `AuthenticatedCaller`.
`HttpTransport` uses HTTP; `bayplan.embedded.inprocess` has one that calls a server of the same
process.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias
from urllib.parse import urlencode


@dataclass(frozen=True, slots=True)
class Request:
    """A request. `repeatable`: sending it twice has the same effect as once."""

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
        """Path and query, as in the request line."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits on the seconds and bytes of a request's response."""

    connect: float = 10.0
    answer: float = 60.0
    largest_answer: int = 512 << 20
    largest_event: int = 16 << 20


Headers: TypeAlias = Sequence[tuple[str, str]]


class TransportResponse(Protocol):
    """A response whose head is received and whose body is read in chunks."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    def header(self, name: str) -> str | None:
        """Return the value of a header."""
        ...

    async def next_chunk(self) -> bytes:
        """Return the next chunk of the body; empty at its end."""
        ...


class Transport(Protocol):
    """Sends requests to one server."""

    def open(
        self, request: Request, headers: Headers
    ) -> AbstractAsyncContextManager[TransportResponse]:
        """Send a request; leaving the context drops the rest of the response."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
