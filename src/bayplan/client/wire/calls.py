"""Sending requests: rate limits, authentication, time and size limits, and retries where safe.

Two rate limits at once: a token bucket (requests a second, and a burst) and the number of requests
in flight. Both are first come, first served. A watch takes a token, and counts as in flight only
until the response begins, because it lasts long.

A retry is safe where doing it twice is the same as doing it once, or where it was certainly not
done:

- the connection was never made, or the server refused before acting (429, 503): any request;
- the connection broke, the time limit passed or the server failed half-way: only reads, and writes
  that name the version they expect (a second one gets a conflict).

The wait is computed in `bayplan.base.flowcontrol`: a server's Retry-After is honoured; if it is
longer than our limit the error is raised to the caller instead.

On every transport a request has the same limits: on the time until the response begins, on the time
until it ends (or on the silence between two chunks), and on its size after decompression. A refusal
becomes the exception of its class, without a token that the server may echo.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from random import Random

from bayplan.base.clock import Clock
from bayplan.base.flowcontrol import RandomFraction, RetryPolicy, TokenBucket
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
from bayplan.client.wire.transport import (
    Headers,
    Request,
    RequestLimits,
    Transport,
    TransportResponse,
)


class RateLimiter:
    """Limits one client's requests per second and its requests in flight."""

    def __init__(
        self, clock: Clock, *, qps: float = 200.0, burst: int = 400, in_flight: int = 64
    ) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"rate limits need qps > 0 and burst >= 1, not {qps} and {burst}")
        self._bucket = TokenBucket(qps, burst)
        self._slots = asyncio.Semaphore(in_flight)
        self._clock = clock

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a token and a slot; the slot is released on leaving."""
        await self.acquire()
        try:
            yield
        finally:
            self.release()

    async def acquire(self) -> None:
        """Wait for a token and a slot, which `release` frees."""
        if (wait := self._bucket.reserve(self._clock.monotonic())) > 0:
            await self._clock.sleep(wait)
        await self._slots.acquire()

    def release(self) -> None:
        """Free the slot for the next request."""
        self._slots.release()


def wait_before_retry(
    policy: RetryPolicy,
    error: ClientError,
    *,
    repeatable: bool,
    attempt: int,
    chance: RandomFraction,
) -> float | None:
    """Return the seconds to wait before retrying after failed attempt `attempt`, or None."""
    if not can_retry(error, repeatable=repeatable):
        return None
    retry_after = error.retry_after if isinstance(error, ApiError) else None
    return policy.wait(attempt, retry_after, chance)


def can_retry(error: ClientError, *, repeatable: bool) -> bool:
    """Whether a failed request may be sent again."""
    if isinstance(error, UnreachableError | TooManyRequestsError):
        return True
    if isinstance(error, UnavailableError):
        return repeatable or error.retry_after is not None
    return repeatable and isinstance(error, DisconnectedError | TimedOutError | ServerFaultError)


MAX_ERROR_BYTES = 1 << 20


class ResponseBody:
    """The body of a successful response, read in chunks."""

    def __init__(
        self, request: Request, response: TransportResponse, silence: float | None = None
    ) -> None:
        self.request = request
        self._response = response
        self._silence = silence

    async def next_chunk(self) -> bytes:
        """Return the next chunk of the body; empty at its end."""
        if self._silence is None:
            return await self._response.next_chunk()
        try:
            async with asyncio.timeout(self._silence):
                return await self._response.next_chunk()
        except TimeoutError:
            raise _too_late(self.request) from None

    async def read(self, bound: int) -> bytes:
        """Return the whole body; TooLargeError if it is larger than the limit."""
        parts: list[bytes] = []
        size = 0
        while chunk := await self.next_chunk():
            size += len(chunk)
            if size > bound:
                raise TooLargeError(f"{self.request}: the answer is bigger than {bound} bytes")
            parts.append(chunk)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class AuthenticatedCaller:
    """Sends requests to one server with one user's credentials."""

    def __init__(
        self, access: Access, transport: Transport, limits: RequestLimits, user_agent: str
    ) -> None:
        self._access = access
        self._transport = transport
        self._limits = limits
        self._own_headers = (*access.impersonation, ("User-Agent", user_agent))

    async def fetch(self, request: Request) -> bytes:
        """Send a request; return the body of the response."""
        headers = await self._headers(request)
        try:
            async with (
                asyncio.timeout(self._limits.answer),
                self._transport.open(request, headers) as response,
            ):
                if response.status >= 300:
                    raise await _refusal(request, response, headers)
                return await ResponseBody(request, response).read(self._limits.largest_answer)
        except TimeoutError:
            raise _too_late(request) from None

    @asynccontextmanager
    async def stream(self, request: Request, silence: float) -> AsyncIterator[ResponseBody]:
        """Send a request; yield its body, with at most that many seconds between two chunks."""
        headers = await self._headers(request)
        async with AsyncExitStack() as stack:
            with _in_time(request):
                async with asyncio.timeout(self._limits.answer):
                    opening = self._open(request, headers, silence)
                    answer = await stack.enter_async_context(opening)
            yield answer

    def reject_credentials(self) -> bool:
        """Drop credentials that the server did not accept; True if there may be others."""
        return self._access.credentials.reject()

    @asynccontextmanager
    async def _open(
        self, request: Request, headers: Headers, silence: float | None
    ) -> AsyncIterator[ResponseBody]:
        async with self._transport.open(request, headers) as response:
            if response.status >= 300:
                raise await _refusal(request, response, headers)
            yield ResponseBody(request, response, silence)

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


async def _refusal(request: Request, response: TransportResponse, headers: Headers) -> ApiError:
    body = await ResponseBody(request, response).read(MAX_ERROR_BYTES)
    secrets = tuple(dict(headers).get("Authorization", "").split()[1:])
    status = status_from(response.status, body, secrets)
    return error_from(status, str(request), _seconds(response.header("Retry-After")))


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.isascii() and header.isdigit() else None


class RetryingSender:
    """Sends requests, and retries them where that is safe."""

    def __init__(
        self,
        caller: AuthenticatedCaller,
        limiter: RateLimiter,
        policy: RetryPolicy,
        clock: Clock,
        rng: Random,
    ) -> None:
        self._caller = caller
        self._limiter = limiter
        self._policy = policy
        self._clock = clock
        self._rng = rng

    async def fetch(self, request: Request) -> bytes:
        """Send a request; return the body of the response."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._fetch_authenticated(request)
            except ClientError as error:
                wait = self._wait(request, error, attempt)
                if wait is None:
                    raise
            await self._clock.sleep(wait)

    @asynccontextmanager
    async def stream(self, request: Request, silence: float) -> AsyncIterator[ResponseBody]:
        """Open a streamed response; not retried, since its reader knows where to resume."""
        async with AsyncExitStack() as stack:
            try:
                answer = await self._open(stack, request, silence)
            except UnauthorizedError:
                if not self._caller.reject_credentials():
                    raise
                answer = await self._open(stack, request, silence)
            yield answer

    async def _fetch_authenticated(self, request: Request) -> bytes:
        """Send a request once, and once more with fresh credentials after a 401."""
        try:
            return await self._fetch_once(request)
        except UnauthorizedError:
            if not self._caller.reject_credentials():
                raise
        return await self._fetch_once(request)

    async def _fetch_once(self, request: Request) -> bytes:
        await self._limiter.acquire()
        try:
            return await self._caller.fetch(request)
        finally:
            self._limiter.release()

    async def _open(self, stack: AsyncExitStack, request: Request, silence: float) -> ResponseBody:
        async with self._limiter.slot():
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
