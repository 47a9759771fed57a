"""AWS's API through boto3, asked in threads of our own: bounded in number, time and size.

boto3 is blocking, and imported only here. Questions are asked again by itself when AWS is busy or
fails. What changes something is sent once, and again only if AWS says that it refused it for being
busy: a termination that came through must not be counted twice. No credentials are in what is
raised, and boto3's own debugging, which would show them, stays off.

AWS's refusals become the provider's errors, by the codes that AWS documents. Of a refusal, its code
and as much of its message as helps are told. Where a message could quote what was signed, only the
code is.
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
    NotFoundError,
    QuotaExceededError,
    RefusedError,
    UnavailableError,
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


class ThrottledError(UnavailableError):
    """AWS refused for being asked too much: nothing was done."""


def error_from(error: Exception) -> NodeGroupError:
    """The provider's error for one of boto3's."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        # boto3's own: no connection, no credentials, an answer that cannot be read.
        return UnavailableError(f"AWS cannot be asked: {type(error).__name__}")
    said = response.get("Error") or {}
    code, message = str(said.get("Code", "")), str(said.get("Message", ""))
    text = code if code in _ABOUT_KEYS else f"{code}: {message[:_LONGEST]}"
    status = (response.get("ResponseMetadata") or {}).get("HTTPStatusCode", 0)
    return _kind(code, message, status)(f"AWS: {text}")


def _kind(code: str, message: str, status: int) -> type[NodeGroupError]:
    if code in _THROTTLED:
        return ThrottledError
    if code in _LATER or status >= 500:
        return UnavailableError
    if code in _QUOTA:
        return QuotaExceededError
    if code.endswith("NotFound") or any(one in message.lower() for one in _NOT_FOUND):
        return NotFoundError
    if code == "ValidationError":
        return InvalidRequestError
    return RefusedError


T = TypeVar("T")
_Call = Callable[..., Mapping[str, Any]]
THREADS = 4
PAGES = 1000
TRIES = 4
PAUSE = 0.5
"""Seconds before a write that was refused for being too many is sent again; doubled each time."""
_NOISY = ("boto3", "botocore", "urllib3")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long AWS may take, in seconds."""

    connect: float = 5.0
    read: float = 15.0
    whole: float = 60.0
    """For one question, with everything that is tried again."""


class Sdk:
    """Asks the services through a session of boto3; `close` it when done."""

    def __init__(
        self, session: Any, region: str, clock: Clock, rng: Random, limits: Limits | None = None
    ) -> None:
        self.region = region
        self._clock = clock
        self._rng = rng
        self._limits = limits or Limits()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="aws")
        self._readers = _clients(session, region, self._limits, attempts=4)
        self._writers = _clients(session, region, self._limits, attempts=1)

    async def ask(self, service: str, operation: str, **params: object) -> Mapping[str, Any]:
        """One answer."""
        call: _Call = getattr(self._readers(service), operation)
        return await self._run(lambda: call(**params))

    async def ask_all(
        self, service: str, operation: str, items: str, **params: object
    ) -> list[object]:
        """All of a list that comes in pages."""
        client = self._readers(service)

        def pages() -> list[object]:
            found: list[object] = []
            for number, page in enumerate(client.get_paginator(operation).paginate(**params)):
                if number >= PAGES:
                    raise UnavailableError(f"{operation}: AWS answers without end")
                found += page.get(items) or []
            return found

        return await self._run(pages)

    async def act(self, service: str, operation: str, **params: object) -> Mapping[str, Any]:
        """Change something, once."""
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
        """Begin nothing any more; what is under way ends by its own limits."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _run(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._limits.whole):
                with _translated():
                    return await loop.run_in_executor(self._threads, work)
        except TimeoutError:
            raise UnavailableError(f"AWS did not answer in {self._limits.whole:g}s") from None


@contextmanager
def _translated() -> Iterator[None]:
    """boto3's errors as the provider's own."""
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
        # boto3 takes an answer that is none of AWS's apart without looking first.
        said = f"AWS's answer cannot be read: {type(error).__name__}"
        raise UnavailableError(said) from error


def _clients(session: Any, region: str, limits: Limits, attempts: int) -> Callable[[str], Any]:
    """Clients by service; each is made once, and can be used from any thread."""
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
    """A session of boto3; ProviderOptionError if it is not installed."""
    try:
        import boto3.session  # noqa: PLC0415 - only who uses AWS needs it
    except ImportError:
        raise ProviderOptionError(
            "--cloud-provider aws: boto3 is missing; install bayplan[aws]"
        ) from None
    for name in _NOISY:
        logger = logging.getLogger(name)
        logger.setLevel(max(logging.INFO, logger.level))
    return boto3.session.Session()
