"""A lease in memory and candidates with clocks of their own, for elections under virtual time."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from random import Random

import msgspec

from bayplan.base.clock import Clock
from bayplan.client.errors import (
    AlreadyExistsError,
    ConflictError,
    DisconnectedError,
    Status,
)
from bayplan.kube.coordination import Lease
from tests.clocks import VirtualClock


class SharedLease:
    """The server's side: one lease, optimistic concurrency, and the true time."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.lease: Lease | None = None
        self.version = 0

    def write(self, lease: Lease) -> Lease:
        """Keep it under a new version."""
        self.version += 1
        meta = msgspec.structs.replace(lease.metadata, resource_version=str(self.version))
        self.lease = msgspec.structs.replace(lease, metadata=meta)
        return self.lease


class UnreliableLock:
    """One candidate's way to the lease: slow, and at times broken before or after the write."""

    namespace, name = "here", "role"

    def __init__(self, shared: SharedLease, rng: Random, trouble: float) -> None:
        self._shared = shared
        self._rng = rng
        self._trouble = trouble
        self.partitioned = False

    async def read(self) -> Lease | None:
        """The lease as it was at some moment on the way."""
        await self._travel()
        found = self._shared.lease
        await self._travel()
        return found

    async def create(self, lease: Lease) -> Lease:
        """Make it unless it is there."""
        await self._travel()
        if self._shared.lease is not None:
            raise AlreadyExistsError(Status(code=409))
        made = self._shared.write(lease)
        await self._travel()
        return made

    async def update(self, lease: Lease) -> Lease:
        """Write it unless it has changed."""
        await self._travel()
        there = self._shared.lease
        if there is None or (there.metadata.resource_version != lease.metadata.resource_version):
            raise ConflictError(Status(code=409))
        made = self._shared.write(lease)
        await self._travel()
        return made

    async def _travel(self) -> None:
        if self._rng.random() < self._trouble:
            await self._shared.clock.sleep(self._rng.choice([0.01, 0.5, 3, 9, 14, 20]))
        if self.partitioned or self._rng.random() < self._trouble:
            raise DisconnectedError("cut")


class SilentLock(UnreliableLock):
    """A way to the lease on which, while it is silent, no answer comes."""

    silent = False

    async def _travel(self) -> None:
        if self.silent:
            await asyncio.Event().wait()
        await super()._travel()


class SkewedClock:
    """A machine whose clock is off by hours and runs a little fast or slow."""

    def __init__(self, true: Clock, offset: float, rate: float) -> None:
        self._true = true
        self._offset = offset
        self._rate = rate

    def now(self) -> datetime:
        """The date and time as this machine has it."""
        return self._true.now() + timedelta(seconds=self._offset)

    def monotonic(self) -> float:
        """Seconds as this machine counts them."""
        return self._offset + self._true.monotonic() * self._rate

    async def sleep(self, seconds: float) -> None:
        """That many of this machine's seconds."""
        await self._true.sleep(seconds / self._rate)
