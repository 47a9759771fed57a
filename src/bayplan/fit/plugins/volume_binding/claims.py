"""Claims that are not there, not bound, or cannot be served.

These refuse a pod before any node is looked at. What is missing is made up in the fork as the
controllers would make it: a claim of the class that its neighbours use, a volume of the class's
provisioner.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.volume_binding.made import (
    classes_of,
    ephemeral_claim,
    likely_class,
    new_claim,
    volume_for,
)
from bayplan.fit.requirements.claims import LOST
from bayplan.fit.requirements.pods import is_anothers
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.volumes.binding import WAIT_FOR_FIRST_CONSUMER
from bayplan.fit.volumes.objects import StorageObjects, claim_name, class_of_claim
from bayplan.kube.meta import KubeObject, ObjectMeta
from bayplan.kube.pods import Pod
from bayplan.kube.storage import BIND_COMPLETED, PersistentVolumeClaim, StorageClass
from bayplan.kube.volumes import Volume


def claim_steps(cluster: Cluster, pod: Pod) -> Iterator[Step]:
    """Steps for a pod whose claims are in no state to be scheduled: the first claim that is not."""
    storage = cluster.storage
    for volume in pod.spec.volumes:
        key, claim = storage.claim_of(pod, volume)
        if not key:
            continue
        if claim is None or claim.metadata.deletion_timestamp is not None:
            yield from _create(storage, pod, volume, gone=claim)
            return
        if is_anothers(volume, claim, pod):
            yield from _create(storage, pod, volume, gone=claim)
            return
        if claim.spec.volume_name and _is_lost(storage, claim):
            yield _restore(storage, pod, claim)
            return
        if not claim.spec.volume_name and not _waits(storage, claim):
            yield from _serve(storage, pod, claim)
            return


def _is_lost(storage: StorageObjects, claim: PersistentVolumeClaim) -> bool:
    return claim.spec.volume_name not in storage.volumes or claim.status.phase == LOST


def _restore(storage: StorageObjects, pod: Pod, claim: PersistentVolumeClaim) -> Step:
    """Create the volume that a claim is bound to and that is not there."""
    name, storage_class = claim.spec.volume_name, storage.class_of(claim)
    driver = storage_class.provisioner if storage_class else ""
    text = f"create PersistentVolume {name}, which claim {claim.key} is bound to"
    there = replace(claim, status=replace(claim.status, phase="Bound"))
    puts = (volume_for(claim, name, driver), there)
    return Step(FixKind.CREATE_VOLUME, text, 2.0, pod, puts)


def _create(
    storage: StorageObjects, pod: Pod, volume: Volume, *, gone: PersistentVolumeClaim | None
) -> Iterator[Step]:
    """Create a claim that is missing, or not the pod's, of a class that is there."""
    name = claim_name(pod, volume)
    if volume.ephemeral is not None:
        claim = ephemeral_claim(pod, volume, name)
        storage_class = storage.class_of(claim)
        origin = "as the ephemeral volume controller would"
    else:
        old = gone.spec if gone is not None else None
        storage_class = storage.class_of(gone) if gone else likely_class(storage, pod, name)
        claim = new_claim(pod, name, old)
        origin = f"of class {storage_class.name}" if storage_class else ""
    if storage_class is None:
        return
    named = replace(claim.spec, storage_class_name=storage_class.name, volume_name="")
    claim = replace(claim, spec=named)
    again = f"let claim {claim.key} go, and " if gone is not None else ""
    text = f"{again}create claim {claim.key}, {origin}"
    yield Step(FixKind.CREATE_CLAIM, text, 1.0, pod, _served(claim, storage_class))


def _serve(storage: StorageObjects, pod: Pod, claim: PersistentVolumeClaim) -> Iterator[Step]:
    """Get a claim bound: by its provisioner, or by a class that is missing so far."""
    storage_class, wanted = storage.class_of(claim), class_of_claim(claim)
    if storage_class is not None:
        text = (
            f"get claim {claim.key} bound (class {wanted} binds at once,"
            f" and its provisioner {storage_class.provisioner} has made no volume yet)"
        )
        yield Step(FixKind.BIND_CLAIM, text, 1.0, pod, _served(claim, storage_class))
    elif wanted:
        for other in classes_of(storage)[:1]:
            new = StorageClass(
                metadata=ObjectMeta(name=wanted),
                provisioner=other.provisioner,
                volume_binding_mode=WAIT_FOR_FIRST_CONSUMER,
            )
            text = f"create StorageClass {wanted}, such as with provisioner {other.provisioner}"
            yield Step(FixKind.CREATE_CLASS, text, 1.5, pod, (new,))
    else:
        for other in classes_of(storage)[:1]:
            named = replace(claim, spec=replace(claim.spec, storage_class_name=other.name))
            text = f"give claim {claim.key} a class, such as {other.name}"
            yield Step(FixKind.SET_CLASS, text, 1.5, pod, _served(named, other))


def _served(claim: PersistentVolumeClaim, storage_class: StorageClass) -> tuple[KubeObject, ...]:
    """The claim as its class would have it: bound already, unless it waits for its pod."""
    if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        return (claim,)
    name = f"pvc-{claim.namespace}-{claim.name}"
    volume = volume_for(claim, name, storage_class.provisioner)
    meta = replace(
        claim.metadata, annotations={**claim.metadata.annotations, BIND_COMPLETED: "yes"}
    )
    bound = replace(claim, metadata=meta, spec=replace(claim.spec, volume_name=name))
    return bound, volume


def _waits(storage: StorageObjects, claim: PersistentVolumeClaim) -> bool:
    storage_class = storage.class_of(claim)
    return (
        storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    )
