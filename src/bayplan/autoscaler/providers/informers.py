"""What providers read from API servers: synced informers, and installed CSI drivers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from bayplan.client import Client
from bayplan.client.errors import ClientError
from bayplan.kube.storage import CSIDriver
from bayplan.nodegroups import ProviderUnavailableError

log = logging.getLogger(__name__)
FRESH = 60.0
"""Seconds for which the list is cached."""


class InstalledDrivers:
    """The names of the cluster's CSIDrivers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._names: frozenset[str] = frozenset()
        self._listed_at = float("-inf")

    async def names(self) -> frozenset[str]:
        """Return all names; if they cannot be listed, the last known ones."""
        now = self._client.clock.monotonic()
        if now - self._listed_at >= FRESH:
            try:
                page = await self._client.list(CSIDriver)
                self._names = frozenset(one.name for one in page.items)
                self._listed_at = now
            except ClientError as error:
                log.warning("CSIDrivers cannot be listed: %s", error)
        return self._names


PATIENCE = 30.0
"""Seconds that the first list may take."""


class InformerState(Protocol):
    """The state of an informer of any kind."""

    synced: asyncio.Event
    last_error: ClientError | None


class SyncedInformers:
    """Informers that are waited for together."""

    def __init__(self, informers: Sequence[InformerState]) -> None:
        self._informers = informers

    async def synced(self, what: str) -> None:
        """Wait until all have synced; ProviderUnavailableError after the timeout."""
        try:
            async with asyncio.timeout(PATIENCE):
                for one in self._informers:
                    await one.synced.wait()
        except TimeoutError:
            errors = (one.last_error for one in self._informers if one.last_error is not None)
            raise ProviderUnavailableError(
                f"{what} cannot be read: {next(errors, 'no answer')}"
            ) from None
