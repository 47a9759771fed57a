"""Leader election, the part that acts: try for the lease, hold it, give it back.

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
from random import Random

import msgspec

from bayplan.base.clock import Clock, WallClock
from bayplan.client.election.locks import LeaseLock
from bayplan.client.election.record import (
    Observation,
    Timing,
    claimed,
    first_lease,
    released,
)
from bayplan.client.errors import ClientError
from bayplan.kube.coordination import Lease

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
