"""The compute API of Azure Resource Manager, for the scale sets of one resource group.

Reads are tried again on the clock that was passed, and so are writes that Azure throttled; other
writes are sent once. A pause that Azure asks for is observed: a short one is waited for, during a
longer one nothing is sent. Pages are read only from Azure's own address, since every request
carries a token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar
from urllib.parse import urlsplit

from bayplan.autoscaler.providers.azure.errors import (
    AzureAnswerError,
    AzureThrottledError,
    ScaleSetChangedError,
    translated,
)
from bayplan.base.clock import Clock
from bayplan.nodegroups import ProviderUnavailableError

T = TypeVar("T")
CONCURRENT = 4
PAGES = 1000
TRIES = 4
PAUSE = 0.5
"""Seconds before a call is tried again; doubled each time."""
LONGEST_PAUSE = 5.0
"""The longest pause that is waited for within a call."""
LONGEST_SILENCE = 600.0
"""The longest time for which nothing is sent because Azure asks for it."""


@dataclass(frozen=True, slots=True)
class AzureTarget:
    """What is called, and how."""

    endpoint: str
    resource_group: str
    force_delete: bool
    timeout: float
    """Seconds for one call, with all its retries."""


class AzureSdk:
    """Calls the compute API for the scale sets of one resource group."""

    def __init__(self, client: Any, target: AzureTarget, clock: Clock, rng: Random) -> None:
        self._client = client
        self._group = target.resource_group
        self._force = target.force_delete
        self._endpoint = urlsplit(target.endpoint)
        self._timeout = target.timeout
        self._clock = clock
        self._rng = rng
        self._silent_until = float("-inf")
        self._limit = asyncio.Semaphore(CONCURRENT)

    async def scale_sets(self) -> list[object]:
        """Read all scale sets of the resource group."""
        sets = self._client.virtual_machine_scale_sets
        return await self._read_all(lambda: sets.list(self._group, **self._options))

    async def scale_set(self, name: str) -> object:
        """Read a scale set; NodeGroupNotFoundError if it does not exist."""
        sets = self._client.virtual_machine_scale_sets
        return await self._read(lambda: sets.get(self._group, name, **self._options))

    async def scale_set_view(self, name: str) -> object:
        """Read the instance view of a scale set."""
        sets = self._client.virtual_machine_scale_sets
        return await self._read(lambda: sets.get_instance_view(self._group, name, **self._options))

    async def vms(self, name: str) -> list[object]:
        """Read all instances of a scale set, with their instance views."""
        vms = self._client.virtual_machine_scale_set_vms
        options = {"expand": "instanceView", **self._options}
        return await self._read_all(lambda: vms.list(self._group, name, **options))

    async def skus(self, location: str, keep: Callable[[object], bool]) -> list[object]:
        """Read the resource SKUs of a location, and return those to keep."""
        skus, wanted = self._client.resource_skus, f"location eq '{location}'"
        return await self._read_all(lambda: skus.list(filter=wanted, **self._options), keep)

    async def resize(self, name: str, sku: dict[str, object], etag: str) -> None:
        """Set the capacity; ScaleSetChangedError if the scale set is not as it was read."""
        from azure.core import MatchConditions  # noqa: PLC0415 - only who uses Azure needs it

        matching = {"etag": etag, "match_condition": MatchConditions.IfNotModified} if etag else {}
        sets = self._client.virtual_machine_scale_sets
        options = {"polling": False, **matching, **self._options}
        await self._write(lambda: sets.begin_update(self._group, name, {"sku": sku}, **options))

    async def delete_instances(self, name: str, instances: Iterable[str]) -> None:
        """Start the deletion of instances; the capacity decreases by as many."""
        wanted = {"instanceIds": list(instances)}
        options = {"polling": False, "force_deletion": self._force or None, **self._options}
        sets = self._client.virtual_machine_scale_sets
        await self._write(lambda: sets.begin_delete_instances(self._group, name, wanted, **options))

    @property
    def _options(self) -> dict[str, object]:
        # Only a connection that was passed can be without TLS: the configuration requires https.
        return {} if self._endpoint.scheme == "https" else {"enforce_https": False}

    async def _read(self, call: Callable[[], Awaitable[Any]]) -> object:
        async def read() -> object:
            return (await call()).as_dict()

        return await self._bounded(read, is_read=True)

    async def _read_all(
        self, call: Callable[[], Any], keep: Callable[[object], bool] = lambda _: True
    ) -> list[object]:
        async def read() -> list[object]:
            found: list[object] = []
            pages, number = call().by_page(), 0
            async for page in pages:
                found += [one for item in [o async for o in page] if keep(one := item.as_dict())]
                number += 1
                self._check_next(pages.continuation_token, number)
            return found

        return await self._bounded(read, is_read=True)

    async def _write(self, call: Callable[[], Awaitable[object]]) -> None:
        await self._bounded(call, is_read=False)

    def _check_next(self, link: object, number: int) -> None:
        if not link:
            return
        if number >= PAGES:
            raise AzureAnswerError(f"Azure's answer has more than {PAGES} pages")
        parts = urlsplit(str(link))
        if (parts.scheme, parts.netloc) != (self._endpoint.scheme, self._endpoint.netloc):
            raise AzureAnswerError("Azure's answer continues at another address")

    async def _bounded(self, call: Callable[[], Awaitable[T]], *, is_read: bool) -> T:
        """Call within the timeout, and again after errors that pass."""
        try:
            async with self._limit, asyncio.timeout(self._timeout):
                return await self._retried(call, is_read=is_read)
        except TimeoutError:
            raise ProviderUnavailableError(f"Azure did not answer in {self._timeout:g}s") from None

    async def _retried(self, call: Callable[[], Awaitable[T]], *, is_read: bool) -> T:
        pause = PAUSE
        for _ in range(TRIES - 1):
            try:
                return await self._once(call)
            except (AzureAnswerError, ScaleSetChangedError):
                raise
            except ProviderUnavailableError as error:
                asked = error.pause if isinstance(error, AzureThrottledError) else 0.0
                again = is_read or isinstance(error, AzureThrottledError)
                if not again or self._clock.monotonic() < self._silent_until:
                    raise
                await self._clock.sleep(asked or pause * self._rng.uniform(0.5, 1.5))
                pause *= 2
        return await self._once(call)

    async def _once(self, call: Callable[[], Awaitable[T]]) -> T:
        left = self._silent_until - self._clock.monotonic()
        if left > 0:
            raise AzureThrottledError(f"Azure asked to be called again in {left:.0f}s", left)
        try:
            with translated():
                return await call()
        except AzureThrottledError as error:
            if error.pause > LONGEST_PAUSE:
                silence = min(error.pause, LONGEST_SILENCE)
                self._silent_until = self._clock.monotonic() + silence
            raise
