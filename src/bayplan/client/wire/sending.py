"""Requests on their way: a turn in the budget, the call, another try where that is safe."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random

from bayplan.base.clock import Clock
from bayplan.base.pacing import RetryPolicy
from bayplan.client.errors import ClientError, TooManyRequestsError, UnauthorizedError
from bayplan.client.wire.budget import Budget
from bayplan.client.wire.calling import Answer, Caller
from bayplan.client.wire.requests import Request
from bayplan.client.wire.retries import wait_before_retry


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
