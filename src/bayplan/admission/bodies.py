"""Reading what is sent, within bounds: of size, of time, and of memory for all of it together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

Receive: TypeAlias = Callable[[], Awaitable[Any]]

MOST_BYTES = 8 * 1024 * 1024
"""A review holds an object twice, before and after, and an API server takes 3 MiB of one."""
MOST_AT_ONCE = 32 * MOST_BYTES
"""How much of all reviews may be held while the rest of them is coming."""
BODY_SECONDS = 5.0
JSON = b"application/json"
TEXT = b"text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer."""

    status: int
    body: bytes
    kind: bytes = TEXT


class Refused(Exception):  # noqa: N818 - an outcome
    """A request that is no review."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.reply = Reply(status, f"{text}\n".encode())


class Bodies:
    """Reads the bodies of requests."""

    def __init__(self, most_at_once: int = MOST_AT_ONCE) -> None:
        self._most = most_at_once
        self._held = 0

    async def read(self, scope: dict[str, Any], receive: Receive) -> bytes:
        """The whole body of a request; Refused if it is too large, too slow, or one too many."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if not headers.get(b"content-type", JSON).startswith(JSON):
            raise Refused(415, "reviews are JSON")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > MOST_BYTES:
            raise _too_large()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await self._received(receive)
        except TimeoutError:
            raise Refused(408, f"the review did not come within {BODY_SECONDS:.0f} s") from None

    async def _received(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        size, more = 0, True
        try:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refused(400, "the review was not sent whole")
                part = message.get("body", b"")
                size += len(part)
                self._held += len(part)
                self._check(size)
                parts.append(part)
                more = message.get("more_body", False)
        finally:
            self._held -= size
        return b"".join(parts)

    def _check(self, size: int) -> None:
        if size > MOST_BYTES:
            raise _too_large()
        if self._held > self._most:
            raise Refused(503, "too much is being sent at once")


def _too_large() -> Refused:
    return Refused(413, f"a review has at most {MOST_BYTES} bytes")
