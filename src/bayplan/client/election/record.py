"""Leader election, the part that decides: who may hold a lease, and what to write. No I/O.

A lease says who holds it and for how long each renewal is good. Nobody compares clocks: a
candidate counts from the moment *it saw* the lease change last, on its own monotonic clock, and
takes over only when that has been longer ago than the lease's duration. The holder counts from
before it *began* its last successful renewal, and steps down after the renew deadline, which is
shorter. So two leaders at once would need one clock to run faster than another by the ratio of the
two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

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
