"""A wire on which things go wrong: a transport around a transport, with a plan of faults.

A fault strikes the requests that it is aimed at between two moments of the clock. What the server
does and what the client hears of it are separate matters, and a fault is where they part.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from random import Random

import msgspec

from bayplan.base.clock import Clock
from bayplan.client.errors import DisconnectedError, UnreachableError
from bayplan.client.wire.transport import Headers, Request, Transport, TransportResponse


class How(Enum):
    """What goes wrong."""

    UNREACHABLE = "no connection; nothing is sent"
    RESET = "the connection is cut before the server has heard"
    CUT = "the server acts, and the connection is cut before it has answered"
    LATE = "the connection is cut, and the server acts some time later"
    REFUSED = "the server answers with an error, and has not acted"
    FAILED = "the server acts, and answers with an error all the same"
    SLOW = "the server hears of it some time later"
    SLOW_ANSWER = "the server acts, and answers some time later"
    STALLED = "a watch tells nothing until the fault is over"
    LOST = "a watch is cut"
    EXPIRED = "a watch from a version is told that it is too old"


OF_WATCHES = (How.STALLED, How.LOST, How.EXPIRED)
_REASONS = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 504: "Timeout"}


@dataclass(frozen=True, slots=True)
class Target:
    """Which requests something goes wrong with, and when."""

    method: str = ""
    path: str = ""
    """Requests whose path has this in it, a regular expression."""
    start: float = 0.0
    end: float = float("inf")

    def includes(self, request: Request) -> bool:
        """Whether it is about such requests."""
        if self.method and request.method != self.method:
            return False
        return re.search(self.path, request.path) is not None


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong for a while."""

    how: How
    target: Target
    code: int = 500
    retry_after: int | None = None
    seconds: float = 30.0
    """How late is late, how slow is slow."""
    chance: float = 1.0

    def aims_at(self, request: Request) -> bool:
        """Whether it is about such requests."""
        if (self.how in OF_WATCHES) != is_watch(request) and self.how is not How.UNREACHABLE:
            return False
        return self.target.includes(request)


@dataclass(slots=True)
class Plan:
    """Which faults strike when."""

    clock: Clock
    rng: Random
    faults: list[Fault] = field(default_factory=list)
    struck: int = 0

    def strikes(self, request: Request) -> Fault | None:
        """The fault that strikes this request now."""
        for fault in self._on(request):
            if fault.how not in (How.STALLED, How.LOST) and self.rng.random() < fault.chance:
                self.struck += 1
                return fault
        return None

    def on_watch(self, request: Request, how: How) -> Fault | None:
        """The fault of that kind that is on a watch now."""
        return next((fault for fault in self._on(request) if fault.how is how), None)

    def next_loss(self, request: Request) -> float | None:
        """When a watch will be cut."""
        now = self.clock.monotonic()
        losses = (
            fault.target.start
            for fault in self.faults
            if fault.how is How.LOST and fault.target.start > now and fault.aims_at(request)
        )
        return min(losses, default=None)

    def _on(self, request: Request) -> Iterable[Fault]:
        now = self.clock.monotonic()
        on = (one for one in self.faults if one.target.start <= now < one.target.end)
        return (one for one in on if one.aims_at(request))


def is_watch(request: Request) -> bool:
    """Whether a request is for a stream of changes."""
    return request.query.get("watch") in ("true", "1")


class FaultyWire:
    """A transport that follows a plan of faults."""

    def __init__(
        self, inner: Transport, plan: Plan, garbled: Mapping[bytes, bytes] | None = None
    ) -> None:
        self._inner = inner
        self._garbled = garbled or {}
        """What the client reads instead of what the server said."""
        self.plan = plan
        self._later: set[asyncio.Task[None]] = set()
        self.is_dead = False

    def open(
        self, request: Request, headers: Headers
    ) -> AbstractAsyncContextManager[TransportResponse]:
        """Send a request, if it gets that far."""
        return self._open(request, headers)

    async def close(self) -> None:
        """Let go, and let what is late arrive."""
        await asyncio.gather(*self._later)
        await self._inner.close()

    @asynccontextmanager
    async def _open(self, request: Request, headers: Headers) -> AsyncIterator[TransportResponse]:
        if self.is_dead:
            raise UnreachableError(f"{request}: no connection: the process is gone")
        fault = self.plan.strikes(request)
        if fault is not None:
            answer = await self._struck(fault, request, headers)
            if answer is not None:
                yield answer
                return
        async with self._inner.open(request, headers) as reply:
            heard = Garbled(reply, self._garbled) if self._garbled else reply
            yield FaultyWatch(heard, request, self.plan) if is_watch(request) else heard

    async def _struck(
        self, fault: Fault, request: Request, headers: Headers
    ) -> TransportResponse | None:
        """What the client hears; None if it hears what the server says."""
        match fault.how:
            case How.UNREACHABLE:
                raise UnreachableError(f"{request}: no connection: planned")
            case How.RESET:
                raise DisconnectedError(f"{request}: the connection was cut: planned")
            case How.CUT:
                await self._act(request, headers)
                raise DisconnectedError(f"{request}: the connection was cut: planned")
            case How.LATE:
                self._act_later(fault.seconds, request, headers)
                raise DisconnectedError(f"{request}: the connection was cut: planned")
            case How.EXPIRED:
                return _refusal(410) if request.query.get("resourceVersion") else None
            case How.REFUSED:
                return _refusal(fault.code, fault.retry_after)
            case How.FAILED:
                await self._act(request, headers)
                return _refusal(fault.code, fault.retry_after)
            case How.SLOW:
                await self.plan.clock.sleep(fault.seconds)
                return None
            case _:
                answer = await self._act(request, headers)
                await self.plan.clock.sleep(fault.seconds)
                return answer

    async def _act(self, request: Request, headers: Headers) -> Said:
        async with self._inner.open(request, headers) as reply:
            body = b""
            while chunk := await reply.next_chunk():
                body += chunk
            return Said(reply.status, body, {})

    def _act_later(self, seconds: float, request: Request, headers: Headers) -> None:
        async def later() -> None:
            await self.plan.clock.sleep(seconds)
            await self._act(request, headers)

        task = asyncio.ensure_future(later())
        self._later.add(task)
        task.add_done_callback(self._later.discard)


class FaultyWatch:
    """A watch's answer that stalls and is lost as planned."""

    def __init__(self, inner: TransportResponse, request: Request, plan: Plan) -> None:
        self._inner = inner
        self._request = request
        self._plan = plan
        self.status = inner.status
        self.header = inner.header

    async def next_chunk(self) -> bytes:
        """The next piece, when it is let through."""
        clock = self._plan.clock
        loss = self._plan.next_loss(self._request)
        try:
            async with asyncio.timeout(None if loss is None else loss - clock.monotonic()):
                chunk = await self._inner.next_chunk()
                while (stall := self._plan.on_watch(self._request, How.STALLED)) is not None:
                    await clock.sleep(stall.target.end - clock.monotonic())
        except TimeoutError:
            raise DisconnectedError(f"{self._request}: the connection was cut: planned") from None
        return chunk


class Garbled:
    """An answer of which some words are others than the server's."""

    def __init__(self, inner: TransportResponse, words: Mapping[bytes, bytes]) -> None:
        self._inner = inner
        self._words = words
        self.status = inner.status
        self.header = inner.header

    async def next_chunk(self) -> bytes:
        """The next piece; what is said in it is never cut in two by this server."""
        chunk = await self._inner.next_chunk()
        for said, heard in self._words.items():
            chunk = chunk.replace(said, heard)
        return chunk


@dataclass(frozen=True, slots=True)
class Said:
    """An answer that is all here."""

    status: int
    body: bytes
    headers: dict[str, str]
    _told: list[bool] = field(default_factory=list)

    def header(self, name: str) -> str | None:
        """The value of a header."""
        return self.headers.get(name.lower())

    async def next_chunk(self) -> bytes:
        """The body, and then nothing."""
        if self._told:
            return b""
        self._told.append(True)
        return self.body


def _refusal(code: int, retry_after: int | None = None) -> Said:
    status = {"kind": "Status", "status": "Failure", "code": code, "message": "planned"}
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    reason = _REASONS.get(code, "")
    return Said(code, msgspec.json.encode({**status, "reason": reason}), headers)
