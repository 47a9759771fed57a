"""Requests on their way: a turn in the budget, the call as somebody, another try where it is safe.

Two bounds at once: a token bucket (so many requests a second, so many in a burst) and a number of
requests in flight. Both are first come, first served. A watch takes a token to begin, and its place
in flight only until the server starts to answer, because it is meant to last.

Sending again is safe where doing the thing twice is the same as doing it once, or where it was
certainly not done:

- the connection was never made, or the server said "not now" (429, 503) before acting: any request;
- the connection broke, time ran out or the server faltered half-way: only requests that read, and
  writes that name the version they expect (the second finds a conflict, and never does it twice).

How long to wait says `bayplan.base.pacing`: a server's Retry-After is honoured as it stands, and
one longer than we are willing to wait is passed on to the caller instead.

Whatever carries it, every request is under the same bounds: so long until the answer begins, so
long (or so much silence between two pieces) until it ends, so many bytes however it was compressed.
A refusal becomes the exception of its class, without the token that a server may echo.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from random import Random

from bayplan.base.clock import Clock
from bayplan.base.pacing import Chance, RetryPolicy, TokenBucket
from bayplan.client.config.access import Access
from bayplan.client.errors import (
    ApiError,
    ClientError,
    DisconnectedError,
    ServerFaultError,
    TimedOutError,
    TooLargeError,
    TooManyRequestsError,
    UnauthorizedError,
    UnavailableError,
    UnreachableError,
    error_from,
    status_from,
)
from bayplan.client.wire.transport import Headers, Limits, Reply, Request, Transport


class Budget:
    """How much one client may ask of a server."""

    def __init__(
        self, clock: Clock, *, qps: float = 200.0, burst: int = 400, in_flight: int = 64
    ) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"a budget needs qps > 0 and burst >= 1, not {qps} and {burst}")
        self._bucket = TokenBucket(qps, burst)
        self._places = asyncio.Semaphore(in_flight)
        self._clock = clock

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a token and a place; the place is free again on leaving."""
        await self.enter()
        try:
            yield
        finally:
            self.leave()

    async def enter(self) -> None:
        """Wait for a token and a place, to be given back by `leave`."""
        if (wait := self._bucket.reserve(self._clock.monotonic())) > 0:
            await self._clock.sleep(wait)
        await self._places.acquire()

    def leave(self) -> None:
        """Let the next one in."""
        self._places.release()


def wait_before_retry(
    policy: RetryPolicy, error: ClientError, *, repeatable: bool, attempt: int, chance: Chance
) -> float | None:
    """Seconds to wait before sending again after failed attempt number `attempt`, or None."""
    if not may_repeat(error, repeatable=repeatable):
        return None
    retry_after = error.retry_after if isinstance(error, ApiError) else None
    return policy.wait(attempt, retry_after, chance)


def may_repeat(error: ClientError, *, repeatable: bool) -> bool:
    """Whether the request behind that failure may be sent again."""
    if isinstance(error, UnreachableError | TooManyRequestsError):
        return True
    if isinstance(error, UnavailableError):
        return repeatable or error.retry_after is not None
    return repeatable and isinstance(error, DisconnectedError | TimedOutError | ServerFaultError)


LARGEST_ERROR = 1 << 20


class Answer:
    """An answer that is not a refusal; its body is still coming."""

    def __init__(self, request: Request, reply: Reply, silence: float | None = None) -> None:
        self.request = request
        self._reply = reply
        self._silence = silence

    async def next_chunk(self) -> bytes:
        """The next piece of the body, as it comes; empty at its end."""
        if self._silence is None:
            return await self._reply.next_chunk()
        try:
            async with asyncio.timeout(self._silence):
                return await self._reply.next_chunk()
        except TimeoutError:
            raise _too_late(self.request) from None

    async def read(self, bound: int) -> bytes:
        """The whole body, if it is no bigger than that."""
        parts: list[bytes] = []
        size = 0
        while chunk := await self.next_chunk():
            size += len(chunk)
            if size > bound:
                raise TooLargeError(f"{self.request}: the answer is bigger than {bound} bytes")
            parts.append(chunk)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class Caller:
    """Asks one server as one user."""

    def __init__(
        self, access: Access, transport: Transport, limits: Limits, user_agent: str
    ) -> None:
        self._access = access
        self._transport = transport
        self._limits = limits
        self._own_headers = (*access.impersonation, ("User-Agent", user_agent))

    async def fetch(self, request: Request) -> bytes:
        """The whole answer."""
        headers = await self._headers(request)
        try:
            async with (
                asyncio.timeout(self._limits.answer),
                self._transport.open(request, headers) as reply,
            ):
                if reply.status >= 300:
                    raise await _refusal(request, reply, headers)
                return await Answer(request, reply).read(self._limits.largest_answer)
        except TimeoutError:
            raise _too_late(request) from None

    @asynccontextmanager
    async def stream(self, request: Request, silence: float) -> AsyncIterator[Answer]:
        """The answer as it comes, with at most that many seconds between two pieces."""
        headers = await self._headers(request)
        async with AsyncExitStack() as stack:
            with _in_time(request):
                async with asyncio.timeout(self._limits.answer):
                    opening = self._open(request, headers, silence)
                    answer = await stack.enter_async_context(opening)
            yield answer

    def reject_credentials(self) -> bool:
        """Tell the source of credentials that the server did not take them."""
        return self._access.credentials.reject()

    @asynccontextmanager
    async def _open(
        self, request: Request, headers: Headers, silence: float | None
    ) -> AsyncIterator[Answer]:
        async with self._transport.open(request, headers) as reply:
            if reply.status >= 300:
                raise await _refusal(request, reply, headers)
            yield Answer(request, reply, silence)

    async def _headers(self, request: Request) -> Headers:
        headers = [*self._own_headers, ("Accept", request.accept)]
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        authorization = await self._access.credentials.authorization()
        if authorization is not None:
            headers.append(("Authorization", authorization))
        return headers


@contextmanager
def _in_time(request: Request) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise _too_late(request) from None


def _too_late(request: Request) -> TimedOutError:
    return TimedOutError(f"{request}: no answer in time")


async def _refusal(request: Request, reply: Reply, headers: Headers) -> ApiError:
    body = await Answer(request, reply).read(LARGEST_ERROR)
    secrets = tuple(dict(headers).get("Authorization", "").split()[1:])
    status = status_from(reply.status, body, secrets)
    return error_from(status, str(request), _seconds(reply.header("Retry-After")))


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.isascii() and header.isdigit() else None


class Sender:
    """Sends requests until they are answered, refused for good, or not worth another try."""

    def __init__(
        self, caller: Caller, budget: Budget, policy: RetryPolicy, clock: Clock, rng: Random
    ) -> None:
        self._caller = caller
        self._budget = budget
        self._policy = policy
        self._clock = clock
        self._rng = rng

    async def fetch(self, request: Request) -> bytes:
        """The whole answer."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._fetch_as_known(request)
            except ClientError as error:
                wait = self._wait(request, error, attempt)
                if wait is None:
                    raise
            await self._clock.sleep(wait)

    @asynccontextmanager
    async def stream(self, request: Request, silence: float) -> AsyncIterator[Answer]:
        """An answer that keeps coming; tried once, since whoever reads it knows where to resume."""
        async with AsyncExitStack() as stack:
            try:
                answer = await self._open(stack, request, silence)
            except UnauthorizedError:
                if not self._caller.reject_credentials():
                    raise
                answer = await self._open(stack, request, silence)
            yield answer

    async def _fetch_as_known(self, request: Request) -> bytes:
        """One attempt, and one more with a fresh credential if the server does not know us."""
        try:
            return await self._fetch_once(request)
        except UnauthorizedError:
            if not self._caller.reject_credentials():
                raise
        return await self._fetch_once(request)

    async def _fetch_once(self, request: Request) -> bytes:
        await self._budget.enter()
        try:
            return await self._caller.fetch(request)
        finally:
            self._budget.leave()

    async def _open(self, stack: AsyncExitStack, request: Request, silence: float) -> Answer:
        async with self._budget.turn():
            opening = self._caller.stream(request, silence)
            return await stack.enter_async_context(opening)

    def _wait(self, request: Request, error: ClientError, attempt: int) -> float | None:
        if isinstance(error, TooManyRequestsError) and not request.retry_refusals:
            return None
        return wait_before_retry(
            self._policy,
            error,
            repeatable=request.repeatable,
            attempt=attempt,
            chance=self._rng.random,
        )
