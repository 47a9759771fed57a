"""Leader election: when a candidate may take a lease, and the elector that takes and renews it.

A lease names its holder and for how long each renewal is valid. Clocks are not compared: a
candidate counts from the moment *it saw* the lease change last, on its own monotonic clock, and
takes over only when that has been longer ago than the lease's duration. The holder counts from
before it *began* its last successful renewal, and steps down after the renew deadline, which is
shorter. So two leaders at once would need one clock to run faster than another by the ratio of the
two.

    elector = Elector(ClusterLease(client, "kube-system", "bayplan"), identity="host_4f2a")
    await elector.run(lead)        # waits to become leader, runs lead(), releases the lease after

`lead` is cancelled as soon as the lease can no longer be counted on, and `run` then raises
`LeadershipLostError`; most programs end there and are started again. Code that writes something
that only the leader may write can also check `elector.is_leader()`, which is right even after the
event loop was blocked: it compares the clock with the end of the last renewal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, Protocol

import msgspec

from bayplan.base.clock import Clock, WallClock
from bayplan.client.client import Client
from bayplan.client.errors import ClientError, NotFoundError
from bayplan.client.resources import LEASES
from bayplan.kube.coordination import Lease, LeaseSpec
from bayplan.kube.meta import ObjectMeta
from bayplan.kube.times import micro_time


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Lease duration, renew deadline, retry period and its jitter, in seconds."""

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
class LeaderElectionSettings:
    """Whether replicas elect a leader, with which lease and timing."""

    elect: bool = True
    namespace: str = "kube-system"
    name: str = "bayplan-scheduler"
    timing: LeaseTiming = field(default_factory=LeaseTiming)


@dataclass(slots=True)
class ObservedLease:
    """The lease as last observed, and since when (on our clock) it has been unchanged."""

    lease: Lease | None = None
    since: float = 0.0

    def observe(self, lease: Lease, now: float) -> None:
        """Keep the lease; if it was written since, it is unchanged only from now on."""
        if self.lease is None or _revision(self.lease) != _revision(lease):
            self.since = now
        self.lease = lease

    @property
    def holder(self) -> str:
        """The identity that held it; empty if none."""
        return (self.lease.spec.holder_identity or "") if self.lease else ""

    def is_held_by_other(self, identity: str, timing: LeaseTiming, now: float) -> bool:
        """Whether another candidate may still be leading."""
        if self.lease is None or self.holder in {"", identity}:
            return False
        duration = self.lease.spec.lease_duration_seconds
        return now < self.since + (timing.lease_duration if duration is None else duration)


def _revision(lease: Lease) -> tuple[str, str]:
    return lease.metadata.uid, lease.metadata.resource_version


def new_lease(
    namespace: str, name: str, identity: str, timing: LeaseTiming, now: datetime
) -> Lease:
    """Return the lease to create where there is none."""
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


def claimed_spec(spec: LeaseSpec, identity: str, timing: LeaseTiming, now: datetime) -> LeaseSpec:
    """Return the spec of a lease that `identity` takes or renews."""
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


def released_spec(spec: LeaseSpec, now: datetime) -> LeaseSpec:
    """Return the spec of a released lease: the next candidate need not wait."""
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
        """Return the lease; None if there is none."""
        ...

    async def create(self, lease: Lease) -> Lease:
        """Create the lease; AlreadyExistsError if another candidate was faster."""
        ...

    async def update(self, lease: Lease) -> Lease:
        """Update the lease; ConflictError if it has changed since it was read."""
        ...


class ClusterLease:
    """A Lease object in a cluster."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name
        self._client = client

    async def read(self) -> Lease | None:
        """Return the lease; None if there is none."""
        try:
            return await self._client.get(Lease, self.namespace, self.name)
        except NotFoundError:
            return None

    async def create(self, lease: Lease) -> Lease:
        """Create the lease; AlreadyExistsError if another candidate was faster."""
        return await self._client.create(lease)

    async def update(self, lease: Lease) -> Lease:
        """Update the lease; ConflictError if it has changed since it was read."""
        return await self._client.update(lease, LEASES)


log = logging.getLogger(__name__)
TICK = 0.001
"""The shortest sleep: with less a clock might not advance, and the loop would spin."""
HURRIED_SECONDS = 2.0
"""How long releasing a lease may take after the second request to end."""


class LeadershipLostError(ClientError):
    """The lease could not be renewed in time, or another candidate holds it."""


class Elector:
    """One candidate for one lease."""

    def __init__(
        self,
        lock: LeaseLock,
        identity: str,
        timing: LeaseTiming | None = None,
        *,
        clock: Clock | None = None,
        rng: Random | None = None,
    ) -> None:
        if not identity:
            raise ValueError("a candidate needs an identity")
        self.identity = identity
        self._lock = lock
        self._timing = timing or LeaseTiming()
        self._clock = clock or WallClock()
        self._rng = rng or Random()  # noqa: S311 # for jitter, not for security
        self._observed = ObservedLease()
        self._leads_until = float("-inf")

    def is_leader(self) -> bool:
        """Whether we certainly hold the lease now."""
        return self._clock.monotonic() < self._leads_until

    @property
    def holder(self) -> str:
        """The holder of the lease when it was last read."""
        return self._observed.holder

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Become leader, lead, and release the lease; LeadershipLostError if it is lost."""
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
        """Renew the lease; return when we no longer certainly hold it."""
        while (left := self._time_left()) > 0:
            await self._clock.sleep(min(self._timing.retry_period, max(left, TICK)))
            if (left := self._time_left()) > 0:
                # Cancelled when time is up: a response after that would come too late.
                await self._within(left, self.try_once())

    async def try_once(self) -> bool:
        """Take or renew the lease if that is possible now; return whether we hold it."""
        began = self._clock.monotonic()
        try:
            lease = await self._claim()
        except ClientError as error:
            log.warning("%s: %s", self._lease_name, error)
            return False
        if lease is None:
            self._leads_until = float("-inf")  # another candidate holds it
            return False
        self._leads_until = began + self._timing.renew_deadline
        self._observed.observe(lease, self._clock.monotonic())
        return True

    async def release(self) -> None:
        """Release the lease if it is ours, so that the next leader need not wait for its expiry.

        A second cancellation shortens the time that this may take, and a third one ends it.
        """
        self._leads_until = float("-inf")
        release = asyncio.ensure_future(self._release_lease())
        is_hurried = _cancellations() > 1
        try:
            await self._wait(
                release, HURRIED_SECONDS if is_hurried else self._timing.renew_deadline
            )
        except asyncio.CancelledError:
            await self._wait(release, HURRIED_SECONDS)
            raise
        finally:
            if not release.done():
                log.warning("%s: not released in time, it will expire", self._lease_name)
            await _end(release)

    async def _release_lease(self) -> None:
        try:
            lease = await self._lock.read()
            if lease is not None and lease.spec.holder_identity == self.identity:
                spec = released_spec(lease.spec, self._clock.now())
                await self._lock.update(msgspec.structs.replace(lease, spec=spec))
                log.info("%s: released", self._lease_name)
        except ClientError as error:
            log.warning("%s: not released, it will expire: %s", self._lease_name, error)

    @property
    def _lease_name(self) -> str:
        return f"lease {self._lock.namespace}/{self._lock.name}"

    async def _claim(self) -> Lease | None:
        lease = await self._lock.read()
        now = self._clock.now()
        if lease is None:
            key = (self._lock.namespace, self._lock.name)
            return await self._lock.create(new_lease(*key, self.identity, self._timing, now))
        self._observed.observe(lease, self._clock.monotonic())
        if self._observed.is_held_by_other(self.identity, self._timing, self._clock.monotonic()):
            return None
        spec = claimed_spec(lease.spec, self.identity, self._timing, now)
        return await self._lock.update(msgspec.structs.replace(lease, spec=spec))

    def _time_left(self) -> float:
        return self._leads_until - self._clock.monotonic()

    async def _within(self, seconds: float, attempt: Coroutine[object, object, object]) -> None:
        """Wait for an attempt that long, on our own clock, and then cancel it."""
        task = asyncio.ensure_future(attempt)
        try:
            await self._wait(task, seconds)
        finally:
            await _end(task)

    async def _wait(self, task: asyncio.Future[Any], seconds: float) -> None:
        """Wait for a task to end, but no longer than that, on our own clock."""
        alarm = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait({task, alarm}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()

    async def _lead_while_renewing(self, lead: Callable[[], Awaitable[None]]) -> None:
        work = asyncio.ensure_future(lead())
        renewal = asyncio.ensure_future(self.renew())
        try:
            await asyncio.wait({work, renewal}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(work, renewal)
        if work.cancelled():
            raise LeadershipLostError(f"{self.identity} no longer holds {self._lock.name}")
        work.result()


async def _end(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait until they have ended; being cancelled meanwhile cancels them again."""
    for task in tasks:
        task.cancel()
    interruption: asyncio.CancelledError | None = None
    while pending := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError as again:
            interruption = again
            for task in pending:
                task.cancel()
    if interruption is not None:
        raise interruption


def _cancellations() -> int:
    """Return how often the current task was asked to end."""
    task = asyncio.current_task()
    return task.cancelling() if task else 0
