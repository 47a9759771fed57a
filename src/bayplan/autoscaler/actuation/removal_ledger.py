"""The ledger of nodes that were removed because of missing drivers, by group.

It is written to the status ConfigMap before a node is removed, so that a new leader knows of the
removals of the one before. If it cannot be read or written, no node is removed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.client import Client, Untyped, apply
from bayplan.client.errors import NotFoundError
from bayplan.client.resources import CONFIG_MAPS
from bayplan.kube.times import read_time, timestamp

log = logging.getLogger(__name__)
KEY = "csiDriverRemovals"
"""The key of the ConfigMap."""
MANAGER = "bayplan-autoscaler-removals"
"""Its field manager, so that writing the status keeps the key."""
_Written = dict[str, list[str]]


@dataclass(slots=True)
class RemovalLedger:
    """The removals of the last interval."""

    client: Client | None
    """None in a dry run: nothing is written."""
    options: AutoscalerOptions
    _removals: dict[str, list[datetime]] | None = None
    """By group; None before they are read."""

    @property
    def interval(self) -> timedelta:
        """The time in which a group may lose a number of nodes."""
        return timedelta(seconds=self.options.csi_driver_removal_interval)

    async def count(self, group: str, now: datetime) -> int:
        """Return the number of removals from a group in the last interval."""
        removals = await self._read()
        return len(self._recent(removals, now).get(group, ()))

    async def record(self, group: str, now: datetime) -> None:
        """Write down a removal that is about to happen."""
        recent = self._recent(await self._read(), now)
        recent[group] = [*recent.get(group, ()), now]
        if self.client is not None:
            await self._write(self.client, recent)
        self._removals = recent

    def _recent(
        self, removals: Mapping[str, list[datetime]], now: datetime
    ) -> dict[str, list[datetime]]:
        found = {
            group: [one for one in moments if one + self.interval > now]
            for group, moments in removals.items()
        }
        return {group: moments for group, moments in found.items() if moments}

    async def _read(self) -> Mapping[str, list[datetime]]:
        if self._removals is None:
            self._removals = {} if self.client is None else await self._load(self.client)
        return self._removals

    async def _load(self, client: Client) -> dict[str, list[datetime]]:
        try:
            found: Any = await client.get(CONFIG_MAPS, *self._target)
        except NotFoundError:
            return {}
        return read_removals((found.get("data") or {}).get(KEY, ""))

    async def _write(self, client: Client, removals: Mapping[str, list[datetime]]) -> None:
        written = {group: list(map(timestamp, moments)) for group, moments in removals.items()}
        namespace, name = self._target
        wanted: Untyped = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": namespace, "name": name},
            "data": {KEY: msgspec.json.encode(written).decode()},
        }
        await client.patch(CONFIG_MAPS, namespace, name, change=apply(wanted, MANAGER, force=True))

    @property
    def _target(self) -> tuple[str, str]:
        return self.options.namespace, self.options.status_config_map_name


def read_removals(text: str) -> dict[str, list[datetime]]:
    """Parse the ledger's text; what cannot be read is left out."""
    if not text:
        return {}
    try:
        written = msgspec.json.decode(text, type=_Written)
    except msgspec.DecodeError as error:
        log.warning("the ledger of removed nodes cannot be read: %s", error)
        return {}
    found = {group: [read_time(one) for one in moments] for group, moments in written.items()}
    return {group: [one for one in moments if one] for group, moments in found.items()}
