"""What can go wrong between us and a registry, by what a caller can do; when to ask again.

Worth another try: timeouts and resets, 408, 429 and every 5xx. A registry may say itself how long
to wait; a wait beyond our patience is a failure at once rather than a pull that hangs.
"""

import asyncio
import errno
import random
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from typing import TypeVar

from bayplan.base.pacing import Chance, RetryPolicy
from bayplan.kube.imagereferences import ImageReference, InvalidReferenceError, parse_image

_FULL = frozenset((errno.ENOSPC, errno.EDQUOT))


class PullError(Exception):
    """A pull that failed for good; says which image and why."""


class MalformedReferenceError(PullError):
    """The image's name cannot be one."""


class NotFoundError(PullError):
    """The registry has no such image or content."""


class AuthenticationError(PullError):
    """The registry wants other credentials."""


class UnavailableError(PullError):
    """The registry could not be reached or went on failing; later may be better."""


class IntegrityError(PullError):
    """The content is not what its digest, size or type says."""


class StorageFullError(PullError):
    """There is no room for the image."""


class PlatformError(PullError):
    """The image has nothing for the platform that is wanted."""


def storage_error(error: OSError) -> type[PullError]:
    """Say which of ours a failure of the disk is."""
    return StorageFullError if error.errno in _FULL else PullError


def image_to_pull(text: str) -> ImageReference:
    """Read an image's name in any of its spellings; what is none is a pull that fails."""
    try:
        return parse_image(text).to_pull()
    except InvalidReferenceError as error:
        raise MalformedReferenceError(f"image name {error}") from None


RETRIED_STATUSES = frozenset((408, 429, *range(500, 600)))
_Result = TypeVar("_Result")


class TransientError(Exception):
    """A failure that another try may mend."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


PATIENCE = RetryPolicy(attempts=5, first_wait=0.5, longest_wait=60.0)


class Retrier:
    """Repeats an operation as the policy allows; sleeping and chance are handed in."""

    def __init__(
        self,
        policy: RetryPolicy = PATIENCE,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Chance = random.random,
    ) -> None:
        self._policy = policy
        self._sleep = sleep
        self._chance = chance

    async def run(
        self, operation: Callable[[], Awaitable[_Result]], progress: Callable[[], int] = int
    ) -> _Result:
        """Repeat until it succeeds or the policy gives up; progress starts the count anew."""
        failures, reached = 0, progress()
        while True:
            try:
                return await operation()
            except TransientError as error:
                failures = 1 if progress() > reached else failures + 1
                reached = progress()
                wait = self._policy.wait(failures, error.retry_after, self._chance)
                if wait is None:
                    raise UnavailableError(f"{error} (after {failures} tries)") from error
                await self._sleep(wait)


def parse_retry_after(header: str | None, now: float) -> float | None:
    """Read `Retry-After`: seconds, or a date."""
    if not header:
        return None
    if header.strip().isdigit():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - now)
    except (ValueError, TypeError):
        return None
