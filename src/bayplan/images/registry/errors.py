"""Errors of pulls from registries, and retries.

Retried are timeouts and resets, 408, 429 and every 5xx. A registry's Retry-After is honoured; if it
is longer than our limit, the pull fails at once.
"""

import asyncio
import errno
import random
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from typing import TypeVar

from bayplan.base.flowcontrol import RandomFraction, RetryPolicy
from bayplan.kube.imagereferences import ImageReference, InvalidReferenceError, parse_image

_FULL = frozenset((errno.ENOSPC, errno.EDQUOT))


class PullError(Exception):
    """A pull failed; the message has the image and the reason."""


class MalformedReferenceError(PullError):
    """The image's name is not valid."""


class ImageNotFoundError(PullError):
    """The registry has no such image or content."""


class AuthenticationError(PullError):
    """The registry did not accept the credentials."""


class RegistryUnreachableError(PullError):
    """The registry could not be reached or kept failing; a later pull may succeed."""


class IntegrityError(PullError):
    """The content does not match its digest, size or media type."""


class StorageFullError(PullError):
    """The disk has not enough space for the image."""


class PlatformError(PullError):
    """The image has no manifest for the handler's platform."""


def storage_error(error: OSError) -> type[PullError]:
    """Return the error class of a disk error."""
    return StorageFullError if error.errno in _FULL else PullError


def image_to_pull(text: str) -> ImageReference:
    """Parse an image's name; MalformedReferenceError if it is not valid."""
    try:
        return parse_image(text).to_pull()
    except InvalidReferenceError as error:
        raise MalformedReferenceError(f"image name {error}") from None


RETRIED_STATUSES = frozenset((408, 429, *range(500, 600)))
_Result = TypeVar("_Result")


class TransientError(Exception):
    """A failure that may be retried."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


DEFAULT_RETRIES = RetryPolicy(attempts=5, first_wait=0.5, longest_wait=60.0)


class Retrier:
    """Retries an operation by a policy."""

    def __init__(
        self,
        policy: RetryPolicy = DEFAULT_RETRIES,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: RandomFraction = random.random,
    ) -> None:
        self._policy = policy
        self._sleep = sleep
        self._chance = chance

    async def run(
        self, operation: Callable[[], Awaitable[_Result]], progress: Callable[[], int] = int
    ) -> _Result:
        """Run until it succeeds or the policy ends the retries; progress resets the count."""
        failures, reached = 0, progress()
        while True:
            try:
                return await operation()
            except TransientError as error:
                failures = 1 if progress() > reached else failures + 1
                reached = progress()
                wait = self._policy.wait(failures, error.retry_after, self._chance)
                if wait is None:
                    raise RegistryUnreachableError(f"{error} (after {failures} tries)") from error
                await self._sleep(wait)


def parse_retry_after(header: str | None, now: float) -> float | None:
    """Parse `Retry-After`: seconds, or a date."""
    if not header:
        return None
    if header.strip().isdigit():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - now)
    except (ValueError, TypeError):
        return None
