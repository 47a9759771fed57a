"""The facts of one claim, computed once and kept until an object behind it changes.

A claim's facts rest on the claim, its volume, its class and driver. They are checked by identity
when they are read, so that a change costs nothing until the claim is asked about again. Needs are
interned: claims that need the same are given the same object, which makes comparing pods cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import msgspec

from bayplan.fit.profile import MissingDriver, VolumeRules
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.volumes.available_volumes import STORAGE
from bayplan.fit.volumes.binding import (
    WAIT_FOR_FIRST_CONSUMER,
    FirstConsumerClaim,
    first_consumer_claim,
)
from bayplan.fit.volumes.identity import BY_DRIVER, VolumeIdentity
from bayplan.fit.volumes.topology import Reach, ZoneRequirement, reach_of, zone_requirements
from bayplan.kube import quantity
from bayplan.kube.storage import BIND_COMPLETED, PersistentVolume, PersistentVolumeClaim

READ_WRITE_ONCE_POD = "ReadWriteOncePod"
LOST = "Lost"

_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True, eq=False)
class AttachRequirement:
    """A volume that must be attached on the pod's node; compared by identity."""

    driver: str
    plugin: str
    """The in-tree plugin that it counts for on nodes without a CSINode, or empty."""
    is_csi: bool
    """Whether a CSI driver is known to serve it."""
    opts_in: bool | None
    """CSIDriver.spec.preventPodSchedulingIfMissing; None if it is unset."""
    shared: str = ""
    """The volume's handle, if pods somewhere use it already, or it is attached somewhere."""

    def needs_driver(self, rules: VolumeRules) -> bool:
        """Whether a node that does not report the driver is refused: by rule and the driver's own
        word.
        """
        if rules.missing_driver is None:
            return False
        if rules.missing_driver is MissingDriver.OPT_IN:
            return self.opts_in is True
        return self.opts_in is not False and self.is_csi


@dataclass(frozen=True, slots=True, eq=False)
class ClaimRequirements:
    """What a claim requires of a node; compared by identity, since equal claims share one."""

    attach: AttachRequirement | None = None
    bound: Reach | None = None
    first_consumer: FirstConsumerClaim | None = None
    zones: tuple[ZoneRequirement, ...] = ()


class ClaimFacts:
    """A claim and all that follows from it."""

    __slots__ = (
        "claim",
        "exclusive",
        "identity",
        "is_immediate",
        "is_ready",
        "lost_volume",
        "requirements",
        "version",
        "volume",
    )

    def __init__(
        self, claim: PersistentVolumeClaim, volume: PersistentVolume | None, version: int
    ) -> None:
        self.claim = claim
        self.volume = volume
        self.version = version
        self.identity: VolumeIdentity | None = None
        self.requirements = NO_CLAIM_REQUIREMENTS
        self.is_ready = claim.status.phase != LOST and claim.metadata.deletion_timestamp is None
        """Whether it is in a state to be scheduled, bound or to be bound for its pod."""
        self.is_immediate = False
        """Unbound, and not to be bound for its first consumer."""
        self.lost_volume = ""
        """The name of the volume that it is bound to and that is not there."""
        self.exclusive = READ_WRITE_ONCE_POD in claim.spec.access_modes
        """Whether only one pod at a time may use it."""

    @property
    def size(self) -> Fraction:
        """The requested size."""
        return quantity.parse(self.claim.spec.resources.requests.get(STORAGE, 0))


NO_CLAIM_REQUIREMENTS = ClaimRequirements()


class ClaimFactsCache:
    """The facts of claims, computed on demand."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._facts: dict[str, ClaimFacts] = {}
        self._interned: dict[tuple[object, ...], ClaimRequirements] = {}
        self._reaches: dict[bytes, Reach] = {}
        self._attach_requirements: dict[tuple[object, ...], AttachRequirement] = {}

    def facts(self, claim: PersistentVolumeClaim) -> ClaimFacts:
        """Return the facts of a claim now."""
        storage, key = self._cluster.storage, claim.key
        volume = storage.volumes.get(claim.spec.volume_name)
        of_class, own = storage.versions_behind(claim, key)
        version = self._cluster.csi.version + of_class + own
        known = self._facts.get(key)
        if (
            known is not None
            and known.claim is claim
            and known.volume is volume
            and known.version == version
        ):
            return known
        self._evict()
        facts = self._compute(ClaimFacts(claim, volume, version))
        self._facts[key] = facts
        return facts

    def attach_requirement(self, one: VolumeIdentity, *, in_use: bool = False) -> AttachRequirement:
        """What attaching a volume asks of a node: the same for all volumes of a driver that no
        pod uses yet.
        """
        plugin = one.plugin.name if one.plugin else ""
        shared = one.handle if in_use else ""
        key = (one.driver, plugin, one.is_certainly_csi, shared, self._cluster.csi.version)
        need = self._attach_requirements.get(key)
        if need is None:
            driver = self._cluster.storage.drivers.get(one.driver)
            opts_in = driver.spec.prevent_pod_scheduling_if_missing if driver else None
            need = AttachRequirement(
                one.driver, plugin, _is_csi(one, self._cluster), opts_in, shared
            )
            self._attach_requirements[key] = need
        return need

    def _evict(self) -> None:
        """Drop what may no longer be used; it is computed again on demand."""
        kept: tuple[dict[Any, Any], ...] = (
            self._facts,
            self._interned,
            self._reaches,
            self._attach_requirements,
        )
        for one in kept:
            if len(one) > self._cluster.limits.claims:
                one.clear()

    def _compute(self, facts: ClaimFacts) -> ClaimFacts:
        claim, volume, storage = facts.claim, facts.volume, self._cluster.storage
        facts.identity = storage.identity(claim)
        attach = self.attach_requirement(facts.identity) if facts.identity else None
        if not _is_bound(claim):
            facts.is_immediate = not self._waits_for_consumer(claim)
            first_consumer = None if facts.is_immediate else first_consumer_claim(claim, storage)
            facts.is_ready = facts.is_ready and not facts.is_immediate
            facts.requirements = self._intern(attach, first_consumer=first_consumer)
        elif volume is None:
            facts.is_ready = False
            facts.lost_volume = claim.spec.volume_name
        else:
            facts.requirements = self._intern(
                attach, self._reach(volume), zones=zone_requirements(volume)
            )
        return facts

    def _intern(
        self,
        attach: AttachRequirement | None,
        bound: Reach | None = None,
        first_consumer: FirstConsumerClaim | None = None,
        zones: tuple[ZoneRequirement, ...] = (),
    ) -> ClaimRequirements:
        key = (attach, bound, first_consumer, zones)
        requirements = self._interned.get(key)
        if requirements is None:
            requirements = self._interned[key] = ClaimRequirements(
                attach, bound, first_consumer, zones
            )
        return requirements

    def _reach(self, volume: PersistentVolume) -> Reach:
        """Return where a volume can be reached; most volumes of a class share one value."""
        in_tree = None if volume.spec.csi else (volume.spec, volume.metadata.labels)
        key = _encode((volume.spec.node_affinity, in_tree))
        reach = self._reaches.get(key)
        if reach is None:
            reach = self._reaches[key] = reach_of(volume)
        return reach

    def _waits_for_consumer(self, claim: PersistentVolumeClaim) -> bool:
        storage_class = self._cluster.storage.class_of(claim)
        return (
            not claim.spec.volume_name
            and storage_class is not None
            and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        )


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def _is_csi(one: VolumeIdentity, cluster: ClusterState) -> bool:
    """Whether a CSI driver is known to serve a volume.

    A class may name a provisioner that is no CSI driver and never registers on any node, and an
    in-tree plugin may still be served without one: neither may keep its pods from running.
    """
    if one.driver in cluster.storage.drivers or cluster.csi.registered[one.driver]:
        return True
    if one.plugin is not None:
        return False
    return one.is_certainly_csi or one.driver in BY_DRIVER
