"""Leases for leader election."""

from __future__ import annotations

import msgspec

from bayplan.kube.meta import KubeObject, Struct


class LeaseSpec(Struct):
    """The holder of a lease, since when, and how long each renewal lasts."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(KubeObject):
    """A lease that one holder has at a time."""

    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)
