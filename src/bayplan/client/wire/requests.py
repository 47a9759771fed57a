"""A request as a value, and the bounds that every one is under."""

from __future__ import annotations

from dataclasses import dataclass, field
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
