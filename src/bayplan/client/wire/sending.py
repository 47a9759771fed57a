"""Requests on their way: a turn in the budget, the transport, another try where that is safe."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random

from bayplan.client.errors import ClientError, UnauthorizedError
from bayplan.client.wire.budget import Budget
from bayplan.client.wire.requests import Request
from bayplan.client.wire.retries import RetryPolicy
from bayplan.client.wire.transport import Answer, Transport
from bayplan.kube.clock import Clock


class Sender:
    """Sends requests until they are answered, refused for good, or not worth another try."""

    def __init__(
        self, transport: Transport, budget: Budget, policy: RetryPolicy, clock: Clock, rng: Random
    ) -> None:
        self._transport = transport
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
                async with self._budget.turn():
                    return await self._transport.fetch(request)
            except ClientError as error:
                if (wait := self._wait(request, error, attempt)) is None:
                    raise
            await self._clock.sleep(wait)

    @asynccontextmanager
    async def stream(self, request: Request, silence: float) -> AsyncIterator[Answer]:
        """An answer that keeps coming; tried once, since whoever reads it knows where to resume."""
        async with AsyncExitStack() as stack:
            async with self._budget.turn():
                opening = self._transport.open(request, silence=silence)
                answer = await stack.enter_async_context(opening)
            yield answer

    def reject_credentials(self) -> bool:
        """Tell the source of credentials that the server did not take them."""
        return self._transport.reject_credentials()

    def _wait(self, request: Request, error: ClientError, attempt: int) -> float | None:
        if isinstance(error, UnauthorizedError):
            # Once, with a fresh credential: the server refused before acting.
            return 0.0 if attempt == 1 and self._transport.reject_credentials() else None
        if not request.retry_refusals and not request.repeatable:
            return None
        return self._policy.wait_before_retry(
            error, repeatable=request.repeatable, attempt=attempt, rng=self._rng
        )
