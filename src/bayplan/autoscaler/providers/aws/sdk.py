"""AWS's API through boto3, in threads: limited in number, time and size.

boto3 is blocking, and imported only here. It retries reads by itself. Writes are sent once, and
again only if AWS throttled them: a termination must not be counted twice. Errors have no
credentials in them, and boto3's debug log, which would show them, stays off.

AWS's errors become the provider's, by the codes that AWS documents, with the code and the beginning
of the message. Where a message could quote what was signed, only the code is used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from bayplan.autoscaler.providers.options import ProviderOptionError
from bayplan.base.clock import Clock
from bayplan.nodegroups import (
    InvalidRequestError,
    NodeGroupError,
    NodeGroupNotFoundError,
    ProviderUnavailableError,
    QuotaExceededError,
    RefusedError,
)

_THROTTLED = frozenset(
    {"Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException"}
)
_LATER = frozenset(
    {
        "InternalFailure",
        "InternalError",
        "ServiceUnavailable",
        "Unavailable",
        "RequestTimeout",
        "ScalingActivityInProgress",
        "ResourceContention",
    }
)
_QUOTA = frozenset({"LimitExceeded", "ResourceLimitExceeded", "VcpuLimitExceeded"})
_ABOUT_KEYS = frozenset(
    {"SignatureDoesNotMatch", "IncompleteSignature", "InvalidSignatureException"}
)
_LONGEST = 300
_NOT_FOUND = ("not found", "does not exist")


class ThrottledError(ProviderUnavailableError):
    """AWS throttled the request: nothing was done."""


def error_from(error: Exception) -> NodeGroupError:
    """Return the provider's error for one of boto3's."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        # boto3's own: no connection, no credentials, a response that cannot be read.
        return ProviderUnavailableError(f"cannot call AWS: {type(error).__name__}")
    body = response.get("Error") or {}
    code, message = str(body.get("Code", "")), str(body.get("Message", ""))
    text = code if code in _ABOUT_KEYS else f"{code}: {message[:_LONGEST]}"
    status = (response.get("ResponseMetadata") or {}).get("HTTPStatusCode", 0)
    return _kind(code, message, status)(f"AWS: {text}")


def _kind(code: str, message: str, status: int) -> type[NodeGroupError]:
    if code in _THROTTLED:
        return ThrottledError
    if code in _LATER or status >= 500:
        return ProviderUnavailableError
    if code in _QUOTA:
        return QuotaExceededError
    if code.endswith("NotFound") or any(one in message.lower() for one in _NOT_FOUND):
        return NodeGroupNotFoundError
    if code == "ValidationError":
        return InvalidRequestError
    return RefusedError


T = TypeVar("T")
_Call = Callable[..., Mapping[str, Any]]
THREADS = 4
PAGES = 1000
TRIES = 4
PAUSE = 0.5
"""Seconds before a throttled write is sent again; doubled each time."""
_NOISY = ("boto3", "botocore", "urllib3")


@dataclass(frozen=True, slots=True)
class AwsTimeouts:
    """Timeouts of calls to AWS, in seconds."""

    connect: float = 5.0
    read: float = 15.0
    whole: float = 60.0
    """For one call, with all its retries."""


class Sdk:
    """Calls AWS services through a session of boto3; `close` it when done."""

    def __init__(
        self,
        session: Any,
        region: str,
        clock: Clock,
        rng: Random,
        limits: AwsTimeouts | None = None,
    ) -> None:
        self.region = region
        self._clock = clock
        self._rng = rng
        self._limits = limits or AwsTimeouts()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="aws")
        self._readers = _clients(session, region, self._limits, attempts=4)
        self._writers = _clients(session, region, self._limits, attempts=1)

    async def read(self, service: str, operation: str, **params: object) -> Mapping[str, Any]:
        """Read one response."""
        call: _Call = getattr(self._readers(service), operation)
        return await self._run(lambda: call(**params))

    async def read_all(
        self, service: str, operation: str, items: str, **params: object
    ) -> list[object]:
        """Read all items of a paged list."""
        client = self._readers(service)

        def pages() -> list[object]:
            found: list[object] = []
            for number, page in enumerate(client.get_paginator(operation).paginate(**params)):
                if number >= PAGES:
                    raise ProviderUnavailableError(f"{operation}: more than {PAGES} pages")
                found += page.get(items) or []
            return found

        return await self._run(pages)

    async def write(self, service: str, operation: str, **params: object) -> Mapping[str, Any]:
        """Send a write once, and again only if it was throttled."""
        call: _Call = getattr(self._writers(service), operation)
        pause = PAUSE
        for _ in range(TRIES - 1):
            try:
                return await self._run(lambda: call(**params))
            except ThrottledError:
                await self._clock.sleep(pause * self._rng.uniform(0.5, 1.5))
                pause *= 2
        return await self._run(lambda: call(**params))

    def close(self) -> None:
        """Start no more calls; those in progress end by their timeouts."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _run(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._limits.whole):
                with _translated():
                    return await loop.run_in_executor(self._threads, work)
        except TimeoutError:
            raise ProviderUnavailableError(
                f"AWS did not answer in {self._limits.whole:g}s"
            ) from None


@contextmanager
def _translated() -> Iterator[None]:
    """Raise boto3's errors as the provider's."""
    from botocore import exceptions, parsers  # noqa: PLC0415 - only who uses AWS needs it

    try:
        yield
    except (
        exceptions.ClientError,
        exceptions.BotoCoreError,
        parsers.ResponseParserError,
    ) as error:
        raise error_from(error) from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # boto3 parses a response that is not AWS's without validating it.
        message = f"AWS's answer cannot be read: {type(error).__name__}"
        raise ProviderUnavailableError(message) from error


def _clients(session: Any, region: str, limits: AwsTimeouts, attempts: int) -> Callable[[str], Any]:
    """Return a function for the clients by service, which any thread can use."""
    from botocore.config import Config  # noqa: PLC0415 - only who uses AWS needs it

    config = Config(
        connect_timeout=limits.connect,
        read_timeout=limits.read,
        retries={"total_max_attempts": attempts, "mode": "standard"},
        max_pool_connections=THREADS,
        user_agent_extra="bayplan",
    )
    made: dict[str, Any] = {}

    def client(service: str) -> Any:
        if service not in made:
            made[service] = session.client(service, region_name=region, config=config)
        return made[service]

    return client


def new_session() -> Any:
    """Create a session of boto3; ProviderOptionError if it is not installed."""
    try:
        import boto3.session  # noqa: PLC0415 - only who uses AWS needs it
    except ImportError:
        raise ProviderOptionError(
            "--cloud-provider aws: boto3 is not installed; install bayplan[aws]"
        ) from None
    for name in _NOISY:
        logger = logging.getLogger(name)
        logger.setLevel(max(logging.INFO, logger.level))
    return boto3.session.Session()
