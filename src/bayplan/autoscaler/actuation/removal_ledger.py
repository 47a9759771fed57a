"""The ledger of nodes whose removal was requested because of missing drivers, by group.

It is written to the status ConfigMap before a removal is requested, so that a new leader knows of
the requests of the one before. If it cannot be read or written, no node is removed.
"""

from __future__ import annotations

import logging
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
KEPT = timedelta(days=1)
"""How long a request is kept: long after the node should be gone."""
Requests = dict[str, dict[str, datetime]]
"""By group and the node's uid, when its removal was requested."""


@dataclass(slots=True)
class RemovalLedger:
    """The removals that were requested during the last day."""

    client: Client | None
    """None in a dry run: nothing is written."""
    options: AutoscalerOptions
    _requests: Requests | None = None
    """None before they are read."""

    async def count(self, group: str, now: datetime) -> int:
        """Return the number of requests for a group in the last interval."""
        interval = timedelta(seconds=self.options.csi_driver_removal_interval)
        requests = await self._read()
        return sum(at + interval > now for at in requests.get(group, {}).values())

    async def requested_at(self, group: str, uid: str) -> datetime | None:
        """Return when a node's removal was requested; None if it was not."""
        return (await self._read()).get(group, {}).get(uid)

    async def record(self, group: str, uid: str, now: datetime) -> None:
        """Write down a removal that is about to be requested."""
        kept = _recent(await self._read(), now)
        kept.setdefault(group, {})[uid] = now
        if self.client is not None:
            await self._write(self.client, kept)
        self._requests = kept

    async def _read(self) -> Requests:
        if self._requests is None:
            self._requests = {} if self.client is None else await self._load(self.client)
        return self._requests

    async def _load(self, client: Client) -> Requests:
        try:
            found: Any = await client.get(CONFIG_MAPS, *self._target)
        except NotFoundError:
            return {}
        return read_requests((found.get("data") or {}).get(KEY, ""))

    async def _write(self, client: Client, requests: Requests) -> None:
        written = {
            group: {uid: timestamp(at) for uid, at in nodes.items()}
            for group, nodes in requests.items()
        }
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


def read_requests(text: str) -> Requests:
    """Parse the ledger's text; what cannot be read is left out."""
    if not text:
        return {}
    try:
        written = msgspec.json.decode(text, type=dict[str, dict[str, str]])
    except msgspec.DecodeError as error:
        log.warning("the ledger of removed nodes cannot be read: %s", error)
        return {}
    return {
        group: {uid: at for uid, text in nodes.items() if (at := read_time(text)) is not None}
        for group, nodes in written.items()
    }


def _recent(requests: Requests, now: datetime) -> Requests:
    found = {
        group: {uid: at for uid, at in nodes.items() if at + KEPT > now}
        for group, nodes in requests.items()
    }
    return {group: nodes for group, nodes in found.items() if nodes}
