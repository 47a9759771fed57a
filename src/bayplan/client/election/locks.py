"""Where the lease is kept: an object with optimistic concurrency."""

from __future__ import annotations

from typing import Protocol

from bayplan.client.client import Client
from bayplan.client.errors import NotFoundError
from bayplan.client.resources import LEASES
from bayplan.kube.coordination import Lease


class LeaseLock(Protocol):
    """A lease that several candidates read and write."""

    namespace: str
    name: str

    async def read(self) -> Lease | None:
        """The lease as it is now, if it is there."""
        ...

    async def create(self, lease: Lease) -> Lease:
        """Make it; AlreadyExistsError if somebody was faster."""
        ...

    async def update(self, lease: Lease) -> Lease:
        """Write it; ConflictError if it has changed since it was read."""
        ...


class ClusterLease:
    """A Lease object in a cluster."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name
        self._client = client

    async def read(self) -> Lease | None:
        """The lease as it is now, if it is there."""
        try:
            return await self._client.get(Lease, self.namespace, self.name)
        except NotFoundError:
            return None

    async def create(self, lease: Lease) -> Lease:
        """Make it; AlreadyExistsError if somebody was faster."""
        return await self._client.create(lease)

    async def update(self, lease: Lease) -> Lease:
        """Write it; ConflictError if it has changed since it was read."""
        return await self._client.update(lease, LEASES)
