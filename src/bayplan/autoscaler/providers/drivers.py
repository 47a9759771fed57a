"""Which CSI drivers a cluster has, so that none is promised that will never come."""

from __future__ import annotations

import logging

from bayplan.client import Client
from bayplan.client.errors import ClientError
from bayplan.kube.storage import CSIDriver

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
