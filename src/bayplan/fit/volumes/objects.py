"""The storage objects of a snapshot, with the indexes that make looking things up cheap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from bayplan.fit.indexes import NameIndex
from bayplan.fit.volumes import identity
from bayplan.fit.volumes.available_volumes import AvailableVolumes
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


NO_VOLUMES = AvailableVolumes()
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
        self.open_volumes: dict[str, AvailableVolumes] = {}
        """Volumes that no claim has taken, by class."""
        self.reserved_volumes: dict[str, dict[str, PersistentVolume]] = defaultdict(dict)
        """Volumes that name a claim, by that claim."""
        self.claims_of_volume = NameIndex()
        self.claims_of_class = NameIndex()
        self.generations: dict[str, int] = defaultdict(int)
        """Moves for a class whenever it or its capacities change."""
        self._openings: dict[str, int] = defaultdict(int)
        """Moves for a class whenever its open volumes change."""
        self._identities: dict[str, KnownIdentity] = {}
        self._versions: dict[str, int] = {}
        """Moves for a claim whenever it, or a volume that names it, changes."""
        self._changes = 0

    def refresh_claim(self, claim: PersistentVolumeClaim) -> bool:
        """Replace a claim, if it means the same volume as before; return whether it does."""
        key = claim.key
        before = self.claims.get(key)
        if before is None or class_of_claim(before) != class_of_claim(claim):
            return False
        if before.spec is not claim.spec and before.spec != claim.spec:
            return False
        self.claims[key] = claim
        self._claim_changed(key)
        known = self._identities.get(key)
        if known is not None:
            self._identities[key] = (claim, *known[1:])
        return True

    def put_claim(self, claim: PersistentVolumeClaim) -> None:
        """Add or replace a claim."""
        key = claim.key
        self.remove_claim(key)
        self.claims[key] = claim
        self._claim_changed(key)
        self.claims_of_class.add(class_of_claim(claim), key)
        if claim.spec.volume_name:
            self.claims_of_volume.add(claim.spec.volume_name, key)

    def remove_claim(self, key: str) -> None:
        """Forget a claim."""
        claim = self.claims.pop(key, None)
        if claim is None:
            return
        self._identities.pop(key, None)
        del self._versions[key]
        self.claims_of_class.discard(class_of_claim(claim), key)
        self.claims_of_volume.discard(claim.spec.volume_name, key)

    def put_volume(self, pv: PersistentVolume) -> None:
        """Add or replace a persistent volume."""
        self.remove_volume(pv.name)
        self.volumes[pv.name] = pv
        self._shelve(pv)
        self._volume_changed(pv)

    def remove_volume(self, name: str) -> None:
        """Forget a persistent volume."""
        pv = self.volumes.pop(name, None)
        if pv is not None:
            self._unshelve(pv)
            self._volume_changed(pv)

    def put_class(self, storage_class: StorageClass) -> None:
        """Add or replace a class."""
        self.classes[storage_class.name] = storage_class
        self.generations[storage_class.name] += 1

    def remove_class(self, name: str) -> None:
        """Forget a class."""
        del self.classes[name]
        self.generations[name] += 1

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
        """Return what a claim counts as; computed again only if an object behind it has changed."""
        name = claim.spec.volume_name
        volume = self.volumes.get(name) if name else None
        behind = self.class_of(claim) if volume is None else volume
        key = claim.key
        known = self._identities.get(key)
        if known is not None and known[0] is claim and known[1] is behind:
            return known[2]
        if isinstance(behind, PersistentVolume):
            one = identity.of_bound_volume(behind)
        else:
            one = identity.of_unbound_claim(claim, behind)
        self._identities[key] = (claim, behind, one)
        return one

    def identities(
        self, claims: Collection[str], inline: Collection[VolumeIdentity]
    ) -> tuple[VolumeIdentity, ...]:
        """The volumes of a pod, by claims and by name; claims that are missing do not count."""
        if not claims and not inline:
            return ()
        known = [self.claims[key] for key in claims if key in self.claims]
        behind = [self.identity(claim) for claim in known]
        found = [*(one for one in behind if one is not None), *inline]
        return tuple(found if len(found) < 2 else dict.fromkeys(found))

    def bound_volumes(self, pod: Pod) -> list[tuple[PersistentVolumeClaim, PersistentVolume]]:
        """A pod's claims that are bound to a known volume, each with the volume."""
        claims = (self.claim_of(pod, volume)[1] for volume in pod.spec.volumes)
        return [
            (claim, self.volumes[claim.spec.volume_name])
            for claim in claims
            if claim is not None and claim.spec.volume_name in self.volumes
        ]

    def open_in(self, class_name: str) -> AvailableVolumes:
        """The open volumes of a class."""
        return self.open_volumes.get(class_name, NO_VOLUMES)

    def versions_behind(self, claim: PersistentVolumeClaim, key: str) -> tuple[int, int]:
        """One moves with a claim's class and the open volumes of it, the other with the claim
        (of this key) and the volumes that name it.
        """
        name = class_of_claim(claim)
        of_class = self.generations[name] + self._openings[name]
        return of_class, self._versions.get(key, 0)

    def _claim_changed(self, key: str) -> None:
        self._changes += 1
        self._versions[key] = self._changes

    def _volume_changed(self, pv: PersistentVolume) -> None:
        wanted = _reserved_for(pv)
        if not wanted:
            self._openings[class_of_volume(pv)] += 1
        elif wanted in self.claims:
            self._claim_changed(wanted)

    def _shelve(self, pv: PersistentVolume) -> None:
        wanted = _reserved_for(pv)
        if wanted:
            self.reserved_volumes[wanted][pv.name] = pv
        else:
            self.open_volumes.setdefault(class_of_volume(pv), AvailableVolumes()).put(pv)

    def _unshelve(self, pv: PersistentVolume) -> None:
        wanted = _reserved_for(pv)
        if not wanted:
            self._close(pv)
            return
        shelf = self.reserved_volumes[wanted]
        del shelf[pv.name]
        if not shelf:
            del self.reserved_volumes[wanted]

    def _close(self, pv: PersistentVolume) -> None:
        name = class_of_volume(pv)
        self.open_volumes[name].remove(pv)
        if not self.open_volumes[name]:
            del self.open_volumes[name]


def _reserved_for(pv: PersistentVolume) -> str:
    """The key of the claim that a volume names; empty if it names none."""
    claim = pv.spec.claim_ref
    return f"{claim.namespace}/{claim.name}" if claim is not None else ""


def claim_name(pod: Pod, volume: Volume) -> str:
    """The name of the claim behind a pod's volume, or empty."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.metadata.name}-{volume.name}"
    return ""


def claims_of(pod: Pod) -> tuple[str, ...]:
    """The keys of the claims that a pod names."""
    names = [claim_name(pod, volume) for volume in pod.spec.volumes]
    return tuple([f"{pod.metadata.namespace}/{name}" for name in names if name])


def names_volumes(pod: Pod) -> bool:
    """Whether a pod has volumes that are not claims by name: only then are there others to find."""
    return any(volume.persistent_volume_claim is None for volume in pod.spec.volumes)


def inline_volumes(pod: Pod) -> tuple[VolumeIdentity, ...]:
    """The volumes that a pod names without a claim and that must be attached."""
    found = [
        identity.of_inline_volume(volume)
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is None and volume.ephemeral is None
    ]
    return tuple([one for one in found if one is not None])


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """The name of a claim's class: the old annotation wins over the field."""
    return claim.metadata.annotations.get(CLASS_ANNOTATION) or claim.spec.storage_class_name or ""


def class_of_volume(pv: PersistentVolume) -> str:
    """The name of a volume's class, likewise."""
    return pv.metadata.annotations.get(CLASS_ANNOTATION) or pv.spec.storage_class_name
