"""The storage objects of a snapshot, with the indexes that make looking things up cheap."""

from __future__ import annotations

from collections import defaultdict

from bayplan.fit.volumes import identity
from bayplan.fit.volumes.identity import VolumeIdentity
from bayplan.kube.pods import Pod
from bayplan.kube.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.kube.volumes import Volume

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


KnownIdentity = tuple[
    PersistentVolumeClaim, PersistentVolume | StorageClass | None, VolumeIdentity | None
]
"""A claim, what stood behind it when it was looked at, and what it counted as."""


class StorageObjects:
    """Claims, volumes, classes, drivers and capacities."""

    def __init__(self) -> None:
        self.claims: dict[str, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.drivers: dict[str, CSIDriver] = {}
        self.capacities: dict[str, dict[str, CSIStorageCapacity]] = defaultdict(dict)
        self.open_volumes: dict[str, dict[str, PersistentVolume]] = defaultdict(dict)
        """Volumes that no claim has taken, by class."""
        self.reserved_volumes: dict[str, dict[str, PersistentVolume]] = defaultdict(dict)
        """Volumes that name a claim, by that claim."""
        self.claims_of_volume: dict[str, set[str]] = defaultdict(set)
        self.claims_of_class: dict[str, set[str]] = defaultdict(set)
        self.generations: dict[str, int] = defaultdict(int)
        """Moves for a class whenever it, its open volumes or its capacities change."""
        self._identities: dict[str, KnownIdentity] = {}
        self._reservations: dict[str, int] = defaultdict(int)
        """Moves for a claim whenever volumes that name it change."""

    def refresh_claim(self, claim: PersistentVolumeClaim) -> bool:
        """Replace a claim, if it means the same volume as before; says whether it does."""
        before = self.claims.get(claim.key)
        if (
            before is None
            or before.spec != claim.spec
            or class_of_claim(before) != class_of_claim(claim)
        ):
            return False
        self.claims[claim.key] = claim
        known = self._identities.get(claim.key)
        if known is not None:
            self._identities[claim.key] = (claim, *known[1:])
        return True

    def put_claim(self, claim: PersistentVolumeClaim) -> None:
        """Add or replace a claim."""
        self.remove_claim(claim.key)
        self.claims[claim.key] = claim
        self.claims_of_class[class_of_claim(claim)].add(claim.key)
        if claim.spec.volume_name:
            self.claims_of_volume[claim.spec.volume_name].add(claim.key)

    def remove_claim(self, key: str) -> None:
        """Forget a claim."""
        claim = self.claims.pop(key, None)
        if claim is None:
            return
        self._identities.pop(key, None)
        self.claims_of_class[class_of_claim(claim)].discard(key)
        self.claims_of_volume[claim.spec.volume_name].discard(key)

    def put_volume(self, pv: PersistentVolume) -> None:
        """Add or replace a persistent volume."""
        self.remove_volume(pv.name)
        self.volumes[pv.name] = pv
        self._index_of(pv)[pv.name] = pv
        self._volume_changed(pv)

    def remove_volume(self, name: str) -> None:
        """Forget a persistent volume."""
        pv = self.volumes.pop(name, None)
        if pv is not None:
            self._index_of(pv).pop(name, None)
            self._volume_changed(pv)

    def put_capacity(self, capacity: CSIStorageCapacity) -> None:
        """Add or replace a capacity."""
        self.remove_capacity(capacity.key)
        self.capacities[capacity.storage_class_name][capacity.key] = capacity
        self.generations[capacity.storage_class_name] += 1

    def remove_capacity(self, key: str) -> None:
        """Forget a capacity."""
        for name, capacities in self.capacities.items():
            if capacities.pop(key, None) is not None:
                self.generations[name] += 1

    def find_capacity(self, key: str) -> CSIStorageCapacity | None:
        """The capacity of a key."""
        return next((c[key] for c in self.capacities.values() if key in c), None)

    def every_capacity(self) -> list[CSIStorageCapacity]:
        """All capacities."""
        return [one for by_key in self.capacities.values() for one in by_key.values()]

    def class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        """The class of a claim, if it has one that is known."""
        return self.classes.get(class_of_claim(claim))

    def claim_of(self, pod: Pod, volume: Volume) -> tuple[str, PersistentVolumeClaim | None]:
        """The key of the claim behind a pod's volume (empty if it has none), and the claim."""
        name = claim_name(pod, volume)
        if not name:
            return "", None
        key = f"{pod.metadata.namespace}/{name}"
        return key, self.claims.get(key)

    def identity(self, claim: PersistentVolumeClaim) -> VolumeIdentity | None:
        """What a claim counts as; worked out again only if what is behind it has changed."""
        name = claim.spec.volume_name
        volume = self.volumes.get(name) if name else None
        behind = self.class_of(claim) if volume is None else volume
        known = self._identities.get(claim.key)
        if known is not None and known[0] is claim and known[1] is behind:
            return known[2]
        if isinstance(behind, PersistentVolume):
            one = identity.of_bound_volume(behind)
        else:
            one = identity.of_unbound_claim(claim, behind)
        self._identities[claim.key] = (claim, behind, one)
        return one

    def identities(self, pod: Pod) -> tuple[VolumeIdentity, ...]:
        """The volumes of a pod that is placed; claims that are missing do not count."""
        found: dict[VolumeIdentity, None] = {}
        for volume in pod.spec.volumes:
            key, claim = self.claim_of(pod, volume)
            if key:
                one = self.identity(claim) if claim else None
            else:
                one = identity.of_inline_volume(volume)
            if one is not None:
                found[one] = None
        return tuple(found)

    def version_behind(self, claim: PersistentVolumeClaim) -> int:
        """Moves whenever a claim's class, or the volumes that could serve it, change."""
        return self.generations[class_of_claim(claim)] + self._reservations[claim.key]

    def _volume_changed(self, pv: PersistentVolume) -> None:
        claim = pv.spec.claim_ref
        if claim is None:
            self.generations[class_of_volume(pv)] += 1
        else:
            self._reservations[f"{claim.namespace}/{claim.name}"] += 1

    def _index_of(self, pv: PersistentVolume) -> dict[str, PersistentVolume]:
        claim = pv.spec.claim_ref
        if claim is None:
            return self.open_volumes[class_of_volume(pv)]
        return self.reserved_volumes[f"{claim.namespace}/{claim.name}"]


def claim_name(pod: Pod, volume: Volume) -> str:
    """The name of the claim behind a pod's volume, or empty."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.metadata.name}-{volume.name}"
    return ""


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """The name of a claim's class: the old annotation wins over the field."""
    return claim.metadata.annotations.get(CLASS_ANNOTATION) or claim.spec.storage_class_name or ""


def class_of_volume(pv: PersistentVolume) -> str:
    """The name of a volume's class, likewise."""
    return pv.metadata.annotations.get(CLASS_ANNOTATION) or pv.spec.storage_class_name
