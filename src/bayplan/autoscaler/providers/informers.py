"""What providers read of API servers: objects that are followed, and installed CSI drivers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from bayplan.client import Client
from bayplan.client.errors import ClientError
from bayplan.kube.storage import CSIDriver
from bayplan.nodegroups import UnavailableError

log = logging.getLogger(__name__)
FRESH = 60.0
"""Seconds that an answer is good for."""


class InstalledDrivers:
    """The names of the cluster's CSIDrivers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._names: frozenset[str] = frozenset()
        self._asked = float("-inf")

    async def names(self) -> frozenset[str]:
        """All of them; if they cannot be asked for, those known before."""
        now = self._client.clock.monotonic()
        if now - self._asked >= FRESH:
            try:
                page = await self._client.list(CSIDriver)
                self._names = frozenset(one.name for one in page.items)
                self._asked = now
            except ClientError as error:
                log.warning("CSIDrivers cannot be listed: %s", error)
        return self._names


PATIENCE = 30.0
"""Seconds that a copy may take the first time."""


class Followed(Protocol):
    """An informer, of whatever kind."""

    synced: asyncio.Event
    last_error: ClientError | None


class SyncedInformers:
    """Some informers."""

    def __init__(self, informers: Sequence[Followed]) -> None:
        self._informers = informers

    async def synced(self, what: str) -> None:
        """Wait for the first whole copy of each; UnavailableError if it does not come."""
        try:
            async with asyncio.timeout(PATIENCE):
                for one in self._informers:
                    await one.synced.wait()
        except TimeoutError:
            errors = (one.last_error for one in self._informers if one.last_error is not None)
            raise UnavailableError(f"{what} cannot be read: {next(errors, 'no answer')}") from None
