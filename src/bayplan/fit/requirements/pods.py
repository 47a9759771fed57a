"""What a pending pod requires of storage and devices: equal requirements share one object, whatever
the names of claims.

Two pods of a StatefulSet have claims of different names, of one class and size; their requirements
are equal and share one object. A claim's own name shows only where it matters: where its
volume is already in use somewhere, or where existing volumes could serve that very claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import NamedTuple

from bayplan.fit.decision import ClaimBinding
from bayplan.fit.requirements.claims import (
    AttachRequirement,
    ClaimFacts,
    ClaimFactsCache,
    ClaimRequirements,
)
from bayplan.fit.requirements.devices import NO_DEVICES, DeviceRequirements, DeviceRequirementsCache
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.node_usage import InlineDisk, disks_of
from bayplan.fit.volumes.binding import FirstConsumerClaim, find_volumes
from bayplan.fit.volumes.identity import VolumeId, VolumeIdentity
from bayplan.fit.volumes.objects import inline_volumes, names_volumes
from bayplan.fit.volumes.topology import Reach, ZoneRequirement
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolumeClaim
from bayplan.kube.volumes import Volume


@dataclass(frozen=True, slots=True, eq=False)
class PodRequirements:
    """What a pod requires of storage and devices; compared by identity, since equal ones are
    shared.
    """

    attach: tuple[AttachRequirement, ...] = ()
    bound: tuple[Reach, ...] = ()
    first_consumer: tuple[FirstConsumerClaim, ...] = ()
    """By size, the smallest first."""
    zones: tuple[ZoneRequirement, ...] = ()
    disks: tuple[InlineDisk, ...] = ()
    exclusive_claim_in_use: bool = False
    devices: DeviceRequirements = NO_DEVICES
    ready: bool = True
    """Whether all claims are in a state to be scheduled; if not, a plugin refuses the pod before
    any node is evaluated.
    """

    @property
    def is_unique(self) -> bool:
        """Whether hardly any other pod needs the same: a disk, or a volume that is in use."""
        return bool(self.disks) or any(one.shared for one in self.attach)


NO_REQUIREMENTS = PodRequirements()
_NOTHING = ((), (), (), False, NO_DEVICES, True)


class PodClaim(NamedTuple):
    """A claim that one of a pod's volumes names, as far as it is there."""

    volume: Volume
    key: str
    facts: ClaimFacts | None
    """None if there is no such claim."""


class RequirementsCache:
    """The requirements of pods, each distinct one kept once."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._claims = ClaimFactsCache(cluster)
        self.devices = DeviceRequirementsCache(cluster)
        self._kept: dict[object, PodRequirements] = {}
        self._of_one: dict[str, tuple[ClaimFacts, PodRequirements]] = {}
        """By claim, what a pod needs that has it and nothing else."""

    def of(self, pod: Pod) -> PodRequirements:
        """Return a pod's requirements."""
        volumes = pod.spec.volumes
        if pod.spec.resource_claims or self._cluster.devices.classes:
            return self._compute(pod)
        if not volumes:
            return NO_REQUIREMENTS
        if len(volumes) > 1 or volumes[0].persistent_volume_claim is None:
            return self._compute(pod)
        key, claim = self._cluster.storage.claim_of(pod, volumes[0])
        facts = self._claims.facts(claim) if claim is not None else None
        if facts is None or facts.exclusive or (facts.identity and self._is_used(facts.identity)):
            return self._compute(pod)
        known = self._of_one.get(key)
        if known is not None and known[0] is facts:
            return known[1]
        requirements = self._compute(pod)
        if len(self._of_one) > self._cluster.limits.claims:
            self._of_one.clear()
        self._of_one[key] = facts, requirements
        return requirements

    def _compute(self, pod: Pod) -> PodRequirements:
        facts, ready = self._facts(pod)
        others = names_volumes(pod)
        attach = self._attach(facts, inline_volumes(pod) if others else ())
        claims = tuple([one.requirements for one in facts])
        disks = disks_of(pod) if others else ()
        in_use = any(one.exclusive and self._is_taken(one.claim.key, pod) for one in facts)
        devices = self.devices.of(pod)
        ready = ready and devices.ready
        key = (attach, claims, disks, in_use, devices, ready)
        if key == _NOTHING:
            return NO_REQUIREMENTS
        requirements = self._kept.get(key)
        if requirements is None:
            if len(self._kept) > self._cluster.limits.requirements:
                self._kept.clear()
                self._of_one.clear()
            combined = _combined(attach, claims, disks, in_use=in_use, ready=ready)
            requirements = self._kept[key] = replace(combined, devices=devices)
        return requirements

    def claims(self, pod: Pod) -> list[PodClaim]:
        """The claims that a pod names, in its order."""
        found: list[PodClaim] = []
        for volume in pod.spec.volumes:
            key, claim = self._cluster.storage.claim_of(pod, volume)
            if key:
                found.append(PodClaim(volume, key, self._claims.facts(claim) if claim else None))
        return found

    def bindings(self, pod: Pod, node: str) -> tuple[ClaimBinding, ...]:
        """What the pod's claims that wait for their first consumer would get on a node."""
        where = self._cluster.node_named(node)
        pending = [
            (one.claim.key, one.requirements.first_consumer)
            for one in self._facts(pod)[0]
            if one.requirements.first_consumer is not None
        ]
        claims = [claim for _, claim in pending]
        found = find_volumes(claims, where, self._cluster.storage) if where else ()
        bindings: dict[str, ClaimBinding] = {}
        for (key, claim), pv in zip_longest(pending, found):
            if claim.selected_node is None:
                bindings.setdefault(key, ClaimBinding(key, pv.name if pv else ""))
        return tuple(bindings.values())

    def _facts(self, pod: Pod) -> tuple[list[ClaimFacts], bool]:
        """The facts of the pod's claims, smallest first, and whether all are ready.

        That is the order in which volumes are handed out. A claim that two volumes name is there
        twice, and takes two.
        """
        facts: list[ClaimFacts] = []
        ready = True
        for volume in pod.spec.volumes:
            key, claim = self._cluster.storage.claim_of(pod, volume)
            if not key:
                continue
            if claim is None:
                ready = False
                continue
            one = self._claims.facts(claim)
            facts.append(one)
            ready = ready and one.is_ready and not belongs_to_another_pod(volume, claim, pod)
        if len(facts) > 1:
            facts.sort(key=lambda one: one.size)
        return facts, ready

    def _is_used(self, one: VolumeIdentity) -> bool:
        """Whether pods on any node use a volume, or it is attached to one."""
        is_held = self._cluster.attached_volumes.is_held
        if is_held(VolumeId(one.driver, one.handle)):
            return True
        return one.plugin is not None and is_held(VolumeId(one.plugin.name, one.handle))

    def _is_taken(self, claim: str, pod: Pod) -> bool:
        """Whether another pod that is placed uses a claim."""
        pods = self._cluster.pods
        return any(
            user != pod.key and pods.by_key[user].slot >= 0 for user in pods.by_claim.of(claim)
        )

    def _attach(
        self, facts: list[ClaimFacts], inline: Sequence[VolumeIdentity]
    ) -> tuple[AttachRequirement, ...]:
        """Return what must be attached, each volume once."""
        volumes = [*(one.identity for one in facts if one.identity), *inline]
        if not volumes:
            return ()
        if len(volumes) > 1:
            volumes = list(dict.fromkeys(volumes))
        return tuple(
            [self._claims.attach_requirement(one, in_use=self._is_used(one)) for one in volumes]
        )


def _combined(
    attach: tuple[AttachRequirement, ...],
    claims: tuple[ClaimRequirements, ...],
    disks: tuple[InlineDisk, ...],
    *,
    in_use: bool,
    ready: bool,
) -> PodRequirements:
    return PodRequirements(
        attach=attach,
        bound=tuple(one.bound for one in claims if one.bound),
        first_consumer=tuple(one.first_consumer for one in claims if one.first_consumer),
        zones=tuple(zone for one in claims for zone in one.zones),
        disks=disks,
        exclusive_claim_in_use=in_use,
        ready=ready,
    )


def belongs_to_another_pod(volume: Volume, claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether the claim of a generic ephemeral volume was not made for this pod."""
    if volume.ephemeral is None:
        return False
    owner = claim.metadata.controller
    return owner is None or owner.uid != pod.metadata.uid
