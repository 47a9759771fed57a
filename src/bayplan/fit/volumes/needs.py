"""What a waiting pod needs of storage, by value: equal needs are one shape, whatever claims are
called.

Two pods of a StatefulSet have claims of different names, of one class and size; their needs are
equal. A claim's own name shows only where it matters: where its volume is already in use somewhere,
or where existing volumes could serve that very claim.
"""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.fit.profile import MissingDriver
from bayplan.fit.refusal import Refusal
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.disks import Disk, disks_of
from bayplan.fit.volumes import identity
from bayplan.fit.volumes.binding import DelayedClaim, delayed_claim
from bayplan.fit.volumes.identity import VolumeId, VolumeIdentity
from bayplan.fit.volumes.migration import BY_DRIVER
from bayplan.fit.volumes.topology import Reach, ZoneNeed, reach_of, zone_needs
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolumeClaim

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"


@dataclass(frozen=True, slots=True)
class AttachNeed:
    """A volume that must be attached where the pod goes."""

    driver: str
    plugin: str
    """The in-tree plugin that it counts for on nodes without a CSINode, or empty."""
    needs_driver: bool
    """Whether a node that does not report the driver is refused."""
    shared: str = ""
    """The volume's handle, if pods somewhere use it already."""

    def counted_as(self, *, has_csinode: bool) -> str:
        """The driver or plugin that it counts for on a node."""
        return self.plugin if self.plugin and not has_csinode else self.driver


@dataclass(frozen=True, slots=True)
class VolumeNeeds:
    """Everything that a pod needs of storage."""

    attach: tuple[AttachNeed, ...] = ()
    bound: tuple[Reach, ...] = ()
    delayed: tuple[DelayedClaim, ...] = ()
    zones: tuple[ZoneNeed, ...] = ()
    disks: tuple[Disk, ...] = ()
    exclusive_claim_in_use: bool = False


NO_NEEDS = VolumeNeeds()


class Refused(Exception):  # noqa: N818 - not an error: an answer found before any node was asked
    """The pod is refused before any node is looked at."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reasons)
        self.refusal = refusal


def needs_of(pod: Pod, cluster: Cluster) -> VolumeNeeds:
    """What a pod needs; raises Refused if its claims are in no state to be scheduled."""
    if not pod.spec.volumes:
        return NO_NEEDS
    claims = _claims(pod, cluster)
    in_use = any(_is_exclusive_and_used(claim, pod, cluster) for claim in _named(pod, cluster))
    _check_claims(pod, cluster)
    bound, delayed = _bound_and_delayed(claims, cluster)
    volumes = [cluster.storage.volumes[claim.spec.volume_name] for claim in bound]
    return VolumeNeeds(
        attach=_attach_needs(pod, claims, cluster),
        bound=tuple(reach_of(pv) for pv in volumes),
        delayed=tuple(delayed_claim(claim, cluster.storage) for claim in delayed),
        zones=tuple(need for pv in volumes for need in zone_needs(pv)),
        disks=disks_of(pod),
        exclusive_claim_in_use=in_use,
    )


def _claims(pod: Pod, cluster: Cluster) -> list[PersistentVolumeClaim]:
    found = (cluster.storage.claim_of(pod, volume)[1] for volume in pod.spec.volumes)
    return [claim for claim in found if claim is not None]


def _named(pod: Pod, cluster: Cluster) -> list[PersistentVolumeClaim]:
    """The claims that the pod names; one that is missing refuses the pod."""
    claims = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        _, claim = cluster.storage.claim_of(pod, volume)
        if claim is None:
            name = volume.persistent_volume_claim.claim_name
            raise _lasting("VolumeRestrictions", f'persistentvolumeclaim "{name}" not found')
        claims.append(claim)
    return claims


def _is_exclusive_and_used(claim: PersistentVolumeClaim, pod: Pod, cluster: Cluster) -> bool:
    if READ_WRITE_ONCE_POD not in claim.spec.access_modes:
        return False
    users = cluster.pods.by_claim.get(claim.key, set())
    return any(key != pod.key and cluster.pods.by_key[key].slot >= 0 for key in users)


def _check_claims(pod: Pod, cluster: Cluster) -> None:
    """Raise Refused for the first claim that cannot be used at all."""
    for volume in pod.spec.volumes:
        key, claim = cluster.storage.claim_of(pod, volume)
        if not key:
            continue
        problem = _problem(pod, key, claim, ephemeral=volume.ephemeral is not None)
        if problem:
            raise _lasting("VolumeBinding", problem)


def _problem(pod: Pod, key: str, claim: PersistentVolumeClaim | None, *, ephemeral: bool) -> str:
    name = key.partition("/")[2]
    if claim is None:
        waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
        return f'{waiting} "{name}"'
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    owner = claim.metadata.controller
    if ephemeral and (owner is None or owner.uid != pod.metadata.uid):
        return f"PVC {key} was not created for pod {pod.key} (pod is not owner)"
    return ""


def _bound_and_delayed(
    claims: list[PersistentVolumeClaim], cluster: Cluster
) -> tuple[list[PersistentVolumeClaim], list[PersistentVolumeClaim]]:
    bound = [claim for claim in claims if _is_bound(claim)]
    unbound = [claim for claim in claims if not _is_bound(claim)]
    if not all(_waits_for_consumer(claim, cluster) for claim in unbound):
        raise _lasting("VolumeBinding", "pod has unbound immediate PersistentVolumeClaims")
    for claim in bound:
        name = claim.spec.volume_name
        if name not in cluster.storage.volumes:
            raise _lasting("VolumeZone", f'persistentvolume "{name}" not found')
    return bound, unbound


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def _waits_for_consumer(claim: PersistentVolumeClaim, cluster: Cluster) -> bool:
    storage_class = cluster.storage.class_of(claim)
    return (
        not claim.spec.volume_name
        and storage_class is not None
        and storage_class.volume_binding_mode == "WaitForFirstConsumer"
    )


def _attach_needs(
    pod: Pod, claims: list[PersistentVolumeClaim], cluster: Cluster
) -> tuple[AttachNeed, ...]:
    inline = [identity.of_inline_volume(volume) for volume in pod.spec.volumes]
    by_claim = [cluster.storage.identity(claim) for claim in claims]
    distinct = dict.fromkeys(one for one in (*inline, *by_claim) if one is not None)
    return tuple(_attach_need(one, cluster) for one in distinct)


def _attach_need(one: VolumeIdentity, cluster: Cluster) -> AttachNeed:
    ids = [VolumeId(one.driver, one.handle)]
    if one.plugin is not None:
        ids.append(VolumeId(one.plugin.name, one.handle))
    is_shared = any(cluster.attachments.users(volume) for volume in ids)
    return AttachNeed(
        driver=one.driver,
        plugin=one.plugin.name if one.plugin else "",
        needs_driver=_needs_driver(one, cluster),
        shared=one.handle if is_shared else "",
    )


def _needs_driver(one: VolumeIdentity, cluster: Cluster) -> bool:
    """Whether a node without the driver is refused: the gate, the rule and the driver's own
    word.
    """
    profile = cluster.profile
    if not profile.gates.enabled("VolumeLimitScaling"):
        return False
    driver = cluster.storage.drivers.get(one.driver)
    word = driver.spec.prevent_pod_scheduling_if_missing if driver else None
    if profile.missing_driver is MissingDriver.OPT_IN:
        return word is True
    return word is not False and _is_csi(one, cluster)


def _is_csi(one: VolumeIdentity, cluster: Cluster) -> bool:
    """Whether a CSI driver is known to serve a volume.

    A class may name a provisioner that is no CSI driver and never registers on any node, and an
    in-tree plugin may still be served without one: neither may keep its pods from running.
    """
    if one.driver in cluster.storage.drivers or cluster.registered_drivers[one.driver]:
        return True
    if one.plugin is not None:
        return False
    return one.is_certainly_csi or one.driver in BY_DRIVER


def _lasting(plugin: str, reason: str) -> Refused:
    return Refused(Refusal.lasting(plugin, reason))
