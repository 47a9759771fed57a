"""Leader election: who may hold a lease, and the elector that tries for it and holds it.

A lease says who holds it and for how long each renewal is good. Nobody compares clocks: a
candidate counts from the moment *it saw* the lease change last, on its own monotonic clock, and
takes over only when that has been longer ago than the lease's duration. The holder counts from
before it *began* its last successful renewal, and steps down after the renew deadline, which is
shorter. So two leaders at once would need one clock to run faster than another by the ratio of the
two.

    elector = Elector(ClusterLease(client, "kube-system", "bayplan"), identity="host_4f2a")
    await elector.run(lead)        # waits to become leader, runs lead(), releases the lease after

`lead` is cancelled as soon as the lease can no longer be counted on, and `run` then raises
`LeadershipLostError`; most programs end there and are started again. Whoever writes something that
only the leader may write can also ask `elector.is_leader()`, which a stuck event loop cannot fool:
it compares the clock with the end of the last renewal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Protocol

import msgspec

from bayplan.base.clock import Clock, WallClock
from bayplan.client.client import Client
from bayplan.client.errors import ClientError, NotFoundError
from bayplan.client.resources import LEASES
from bayplan.kube.coordination import Lease, LeaseSpec
from bayplan.kube.meta import ObjectMeta
from bayplan.kube.times import micro_time


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a lease is good, when a leader gives up renewing, how often everyone tries."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    jitter: float = 1.2

    def __post_init__(self) -> None:
        if not self.lease_duration > self.renew_deadline > self.retry_period * self.jitter > 0:
            raise ValueError(
                "leader election needs lease duration > renew deadline > retry period x jitter > 0,"
                f" not {self.lease_duration}, {self.renew_deadline}, {self.retry_period}"
            )
        if self.lease_duration != int(self.lease_duration):
            raise ValueError(f"a lease lasts whole seconds, not {self.lease_duration}")


@dataclass(frozen=True, slots=True)
class LeaderSettings:
    """Whether and how replicas elect a leader."""

    elect: bool = True
    namespace: str = "kube-system"
    name: str = "bayplan-scheduler"
    timing: Timing = field(default_factory=Timing)


@dataclass(slots=True)
class Observation:
    """The lease as last seen, and when (on our own clock) it was first seen so."""

    lease: Lease | None = None
    since: float = 0.0

    def see(self, lease: Lease, now: float) -> None:
        """Note the lease; the count starts over if anybody has written it."""
        if self.lease is None or _written(self.lease) != _written(lease):
            self.since = now
        self.lease = lease

    @property
    def holder(self) -> str:
        """Who held it."""
        return (self.lease.spec.holder_identity or "") if self.lease else ""

    def held_by_other(self, identity: str, timing: Timing, now: float) -> bool:
        """Whether somebody else may still be leading."""
        if self.lease is None or self.holder in {"", identity}:
            return False
        duration = self.lease.spec.lease_duration_seconds
        return now < self.since + (timing.lease_duration if duration is None else duration)


def _written(lease: Lease) -> tuple[str, str]:
    return lease.metadata.uid, lease.metadata.resource_version


def first_lease(namespace: str, name: str, identity: str, timing: Timing, now: datetime) -> Lease:
    """The lease to create where there is none."""
    return Lease(
        metadata=ObjectMeta(namespace=namespace, name=name),
        spec=LeaseSpec(
            holder_identity=identity,
            lease_duration_seconds=int(timing.lease_duration),
            acquire_time=micro_time(now),
            renew_time=micro_time(now),
            lease_transitions=0,
        ),
    )


def claimed(spec: LeaseSpec, identity: str, timing: Timing, now: datetime) -> LeaseSpec:
    """The lease, taken or renewed by `identity`."""
    ours = spec.holder_identity == identity
    transitions = (spec.lease_transitions or 0) + (not ours)
    return LeaseSpec(
        holder_identity=identity,
        lease_duration_seconds=int(timing.lease_duration),
        acquire_time=spec.acquire_time if ours else micro_time(now),
        renew_time=micro_time(now),
        lease_transitions=transitions,
        strategy=spec.strategy,
        preferred_holder=spec.preferred_holder,
    )


def released(spec: LeaseSpec, now: datetime) -> LeaseSpec:
    """The lease, given up: the next candidate need not wait."""
    return LeaseSpec(
        holder_identity="",
        lease_duration_seconds=1,
        acquire_time=micro_time(now),
        renew_time=micro_time(now),
        lease_transitions=spec.lease_transitions,
        strategy=spec.strategy,
        preferred_holder=spec.preferred_holder,
    )


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


log = logging.getLogger(__name__)
TICK = 0.001
"""The shortest sleep: less might not move a clock at all, and we would spin."""


class LeadershipLostError(ClientError):
    """The lease could not be renewed in time, or somebody else has it."""


class Elector:
    """One candidate for one lease."""

    def __init__(
        self,
        lock: LeaseLock,
        identity: str,
        timing: Timing | None = None,
        *,
        clock: Clock | None = None,
        rng: Random | None = None,
    ) -> None:
        if not identity:
            raise ValueError("a candidate needs an identity")
        self.identity = identity
        self._lock = lock
        self._timing = timing or Timing()
        self._clock = clock or WallClock()
        self._rng = rng or Random()  # noqa: S311 # it spreads waits, it guards nothing
        self._seen = Observation()
        self._sure_until = float("-inf")

    def is_leader(self) -> bool:
        """Whether we hold the lease, for certain, at this moment."""
        return self._clock.monotonic() < self._sure_until

    @property
    def holder(self) -> str:
        """Who held the lease when we last looked."""
        return self._seen.holder

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Become leader, lead, and release; raises LeadershipLostError if it is taken from us."""
        try:
            await self.acquire()
            await self._lead_while_renewing(lead)
        finally:
            await self.release()

    async def acquire(self) -> None:
        """Wait until we are leader."""
        while not (await self.try_once() and self.is_leader()):
            period = self._timing.retry_period
            await self._clock.sleep(period * (1 + self._rng.random() * self._timing.jitter))

    async def renew(self) -> None:
        """Keep the lease for as long as that works; returns when we can no longer be sure of it."""
        while (left := self._time_left()) > 0:
            await self._clock.sleep(min(self._timing.retry_period, max(left, TICK)))
            if (left := self._time_left()) > 0:
                # Dropped when time is up: an answer after that would come too late.
                await self._within(left, self.try_once())

    async def try_once(self) -> bool:
        """Take or renew the lease if that is possible now; whether we hold it."""
        began = self._clock.monotonic()
        try:
            lease = await self._claim()
        except ClientError as error:
            log.warning("lease %s/%s: %s", self._lock.namespace, self._lock.name, error)
            return False
        if lease is None:
            self._sure_until = float("-inf")  # whatever we believed, somebody else has it
            return False
        self._sure_until = began + self._timing.renew_deadline
        self._seen.see(lease, self._clock.monotonic())
        return True

    async def release(self) -> None:
        """Give the lease back, if it is ours, so that nobody has to wait for it to run out."""
        self._sure_until = float("-inf")
        await self._within(self._timing.renew_deadline, self._give_back())

    async def _give_back(self) -> None:
        try:
            lease = await self._lock.read()
            if lease is not None and lease.spec.holder_identity == self.identity:
                spec = released(lease.spec, self._clock.now())
                await self._lock.update(msgspec.structs.replace(lease, spec=spec))
        except ClientError as error:
            log.info("lease %s/%s: not released: %s", self._lock.namespace, self._lock.name, error)

    async def _claim(self) -> Lease | None:
        lease = await self._lock.read()
        now = self._clock.now()
        if lease is None:
            place = (self._lock.namespace, self._lock.name)
            return await self._lock.create(first_lease(*place, self.identity, self._timing, now))
        self._seen.see(lease, self._clock.monotonic())
        if self._seen.held_by_other(self.identity, self._timing, self._clock.monotonic()):
            return None
        spec = claimed(lease.spec, self.identity, self._timing, now)
        return await self._lock.update(msgspec.structs.replace(lease, spec=spec))

    def _time_left(self) -> float:
        return self._sure_until - self._clock.monotonic()

    async def _within(self, seconds: float, attempt: Coroutine[object, object, object]) -> None:
        """Give an attempt that long, on our own clock, and drop it then."""
        alarm = asyncio.ensure_future(self._clock.sleep(seconds))
        await _first_of(asyncio.ensure_future(attempt), alarm)

    async def _lead_while_renewing(self, lead: Callable[[], Awaitable[None]]) -> None:
        work = asyncio.ensure_future(lead())
        await _first_of(work, asyncio.ensure_future(self.renew()))
        if work.cancelled():
            raise LeadershipLostError(f"{self.identity} no longer holds {self._lock.name}")
        work.result()


async def _first_of(*tasks: asyncio.Future[object] | asyncio.Future[None]) -> None:
    """Wait for one of them, then end them all and see them end."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
