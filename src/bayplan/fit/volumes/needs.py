"""What a waiting pod needs of storage: equal needs are one shape, whatever claims are called.

Two pods of a StatefulSet have claims of different names, of one class and size; their needs are
equal and are given the same object. A claim's own name shows only where it matters: where its
volume is already in use somewhere, or where existing volumes could serve that very claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bayplan.fit.refusal import Refusal
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.disks import Disk, disks_of
from bayplan.fit.volumes import identity
from bayplan.fit.volumes.binding import DelayedClaim, promise
from bayplan.fit.volumes.claims import AttachNeed, ClaimBook, ClaimFacts, ClaimNeeds
from bayplan.fit.volumes.identity import VolumeId, VolumeIdentity
from bayplan.fit.volumes.topology import Reach, ZoneNeed
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.kube.volumes import Volume

MOST_KEPT = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class VolumeNeeds:
    """Everything that a pod needs of storage; compared by identity, since equal needs share one."""

    attach: tuple[AttachNeed, ...] = ()
    bound: tuple[Reach, ...] = ()
    delayed: tuple[DelayedClaim, ...] = ()
    """By size, the smallest first."""
    zones: tuple[ZoneNeed, ...] = ()
    disks: tuple[Disk, ...] = ()
    exclusive_claim_in_use: bool = False


NO_NEEDS = VolumeNeeds()


class Refused(Exception):  # noqa: N818 - not an error: an answer found before any node was asked
    """The pod is refused before any node is looked at."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reasons)
        self.refusal = refusal


class NeedsBook:
    """The needs of pods, each distinct one kept once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._claims = ClaimBook(cluster)
        self._kept: dict[object, VolumeNeeds] = {}

    def of(self, pod: Pod) -> VolumeNeeds:
        """What a pod needs; raises Refused if its claims are in no state to be scheduled."""
        if not pod.spec.volumes:
            return NO_NEEDS
        facts = self._facts(pod)
        inline = _inline(pod) if len(facts) < len(pod.spec.volumes) else []
        attach = self._attach(facts, inline)
        claims = tuple([one.needs for one in facts])
        disks = disks_of(pod)
        in_use = any(one.exclusive and self._is_taken(one.claim.key, pod) for one in facts)
        key = (attach, claims, disks, in_use)
        needs = self._kept.get(key)
        if needs is None:
            if len(self._kept) > MOST_KEPT:
                self._kept.clear()
            needs = self._kept[key] = _combined(attach, claims, disks, in_use=in_use)
        return needs

    def promises(self, pod: Pod, node: str) -> Iterator[PersistentVolumeClaim | PersistentVolume]:
        """What changes in storage once a pod is placed, before anybody has bound its claims.

        A claim that waits for its first consumer takes the volume that it would take on the node,
        or is to be provisioned for the node and no other.
        """
        for volume in pod.spec.volumes:
            _, claim = self._cluster.storage.claim_of(pod, volume)
            delayed = self._claims.facts(claim).needs.delayed if claim else None
            if claim is not None and delayed is not None and delayed.selected_node is None:
                yield promise(claim, delayed, self._cluster.node_named(node), self._cluster.storage)

    def _facts(self, pod: Pod) -> list[ClaimFacts]:
        """The facts of the pod's claims, smallest first; raises Refused if one stands in the way.

        That is the order in which volumes are handed out. A claim that two volumes name is there
        twice, and takes two.
        """
        facts: list[ClaimFacts] = []
        stuck = False
        for volume in pod.spec.volumes:
            key, claim = self._cluster.storage.claim_of(pod, volume)
            if not key:
                continue
            if claim is None or _problem(pod, volume, key, claim):
                stuck = True
                break
            one = self._claims.facts(claim)
            facts.append(one)
            stuck = stuck or one.is_immediate or bool(one.lost_volume)
        if stuck:
            raise Refused(self._refusal(pod))
        if len(facts) > 1:
            facts.sort(key=lambda one: one.size)
        return facts

    def _refusal(self, pod: Pod) -> Refusal:
        """Which plugin refuses a pod for its claims first, in kube-scheduler's order."""
        found = [
            (volume, *self._cluster.storage.claim_of(pod, volume)) for volume in pod.spec.volumes
        ]
        for volume, _, claim in found:
            if claim is None and volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
                reason = f'persistentvolumeclaim "{name}" not found'
                return Refusal.lasting("VolumeRestrictions", reason)
        for volume, key, claim in found:
            problem = _problem(pod, volume, key, claim) if key else ""
            if problem:
                return Refusal.lasting("VolumeBinding", problem)
        facts = [self._claims.facts(claim) for _, _, claim in found if claim]
        if any(one.is_immediate for one in facts):
            reason = "pod has unbound immediate PersistentVolumeClaims"
            return Refusal.lasting("VolumeBinding", reason)
        lost = next(one.lost_volume for one in facts if one.lost_volume)
        return Refusal.lasting("VolumeZone", f'persistentvolume "{lost}" not found')

    def _is_used(self, one: VolumeIdentity) -> bool:
        """Whether pods on any node use a volume."""
        users = self._cluster.attachments.users
        if users(VolumeId(one.driver, one.handle)):
            return True
        return one.plugin is not None and bool(users(VolumeId(one.plugin.name, one.handle)))

    def _is_taken(self, claim: str, pod: Pod) -> bool:
        """Whether another pod that is placed uses a claim."""
        pods = self._cluster.pods
        return any(
            user != pod.key and pods.by_key[user].slot >= 0 for user in pods.by_claim.of(claim)
        )

    def _attach(
        self, facts: list[ClaimFacts], inline: list[VolumeIdentity]
    ) -> tuple[AttachNeed, ...]:
        """What must be attached, each volume once."""
        volumes = [one.identity for one in facts if one.identity] + inline
        if len(volumes) > 1:
            volumes = list(dict.fromkeys(volumes))
        return tuple([self._claims.attach_need(one, in_use=self._is_used(one)) for one in volumes])


def _combined(
    attach: tuple[AttachNeed, ...],
    claims: tuple[ClaimNeeds, ...],
    disks: tuple[Disk, ...],
    *,
    in_use: bool,
) -> VolumeNeeds:
    return VolumeNeeds(
        attach=attach,
        bound=tuple(one.bound for one in claims if one.bound),
        delayed=tuple(one.delayed for one in claims if one.delayed),
        zones=tuple(zone for one in claims for zone in one.zones),
        disks=disks,
        exclusive_claim_in_use=in_use,
    )


def _inline(pod: Pod) -> list[VolumeIdentity]:
    """The volumes that a pod names without a claim and that must be attached."""
    found = map(identity.of_inline_volume, pod.spec.volumes)
    return [one for one in found if one is not None]


def _problem(pod: Pod, volume: Volume, key: str, claim: PersistentVolumeClaim | None) -> str:
    """Why a claim cannot be used at all, as VolumeBinding says it; empty if it can."""
    if claim is None:
        name = key.partition("/")[2]
        waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
        return f'{waiting} "{name}"'
    name = claim.name
    if claim.status.phase == "Lost":
        lost = claim.spec.volume_name
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{lost}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    owner = claim.metadata.controller if volume.ephemeral is not None else None
    if volume.ephemeral is not None and (owner is None or owner.uid != pod.metadata.uid):
        return f"PVC {key} was not created for pod {pod.key} (pod is not owner)"
    return ""
