"""Claims that are not there, not bound, or cannot be served.

These refuse a pod before any node is looked at. What is missing is made up in the fork as the
controllers would make it: a claim of the class that its neighbours use, a volume of the class's
provisioner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from bayplan.fit.explanation.fix import FixKind, Step
from bayplan.fit.explanation.trial import Trial
from bayplan.fit.needs.claims import LOST
from bayplan.fit.needs.pods import is_anothers
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.volumes.binding import NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER
from bayplan.fit.volumes.objects import StorageObjects, claim_name, class_of_claim
from bayplan.kube.meta import KubeObject, ObjectMeta, ObjectReference, OwnerReference
from bayplan.kube.nodes import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.kube.pods import Pod
from bayplan.kube.storage import (
    BIND_COMPLETED,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PhaseStatus,
    StorageClass,
    VolumeNodeAffinity,
)
from bayplan.kube.volumes import ClaimSpec, CsiVolumeSource, Volume, VolumeResources

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_SIZE = "1Gi"


def claim_steps(snapshot: Snapshot, pod: Pod) -> Iterator[Step]:
    """Steps for a pod whose claims are in no state to be scheduled: the first claim that is not."""
    storage = snapshot.cluster.storage
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


def add_volume(trial: Trial) -> Iterable[Step]:
    """A volume on the node for each claim that nobody makes one for."""
    storage = trial.snapshot.cluster.storage
    claims = [storage.claim_of(trial.pod, volume)[1] for volume in trial.pod.spec.volumes]
    unserved = [claim for claim in claims if claim and not claim.spec.volume_name]
    static = [claim for claim in unserved if not _is_provisioned(storage, claim)]
    if not static:
        return
    said = ", ".join(f"{_size(claim)} of class {class_of_claim(claim)!r}" for claim in static)
    puts = tuple(_open_volume(claim, trial.name) for claim in static)
    text = f"add a PersistentVolume on node {trial.name} ({said})"
    yield Step(FixKind.ADD_VOLUME, text, 3.5 * len(static), trial.pod, puts)


def forget_selected_node(trial: Trial) -> Iterable[Step]:
    """Let claims be served on any node that are selected for another one."""
    storage = trial.snapshot.cluster.storage
    claims = [storage.claim_of(trial.pod, volume)[1] for volume in trial.pod.spec.volumes]
    held = [
        claim
        for claim in claims
        if claim is not None and not claim.spec.volume_name
        and claim.metadata.annotations.get(SELECTED_NODE, trial.name) != trial.name
    ]  # fmt: skip
    if not held:
        return
    said = ", ".join(
        f"claim {one.key} (selected for node {one.metadata.annotations[SELECTED_NODE]})"
        for one in held
    )
    puts = tuple(_unselected(claim) for claim in held)
    text = f"forget the node that was selected for {said}"
    yield Step(FixKind.FORGET_NODE, text, 2.0 * len(held), trial.pod, puts)


def _unselected(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    left = {k: v for k, v in claim.metadata.annotations.items() if k != SELECTED_NODE}
    return replace(claim, metadata=replace(claim.metadata, annotations=left))


def _is_lost(storage: StorageObjects, claim: PersistentVolumeClaim) -> bool:
    return claim.spec.volume_name not in storage.volumes or claim.status.phase == LOST


def _restore(storage: StorageObjects, pod: Pod, claim: PersistentVolumeClaim) -> Step:
    """Create the volume that a claim is bound to and that is not there."""
    name, storage_class = claim.spec.volume_name, storage.class_of(claim)
    driver = storage_class.provisioner if storage_class else ""
    text = f"create PersistentVolume {name}, which claim {claim.key} is bound to"
    there = replace(claim, status=replace(claim.status, phase="Bound"))
    puts = (_volume_for(claim, name, driver), there)
    return Step(FixKind.CREATE_VOLUME, text, 2.0, pod, puts)


def _create(
    storage: StorageObjects,
    pod: Pod,
    volume: Volume,
    *,
    gone: PersistentVolumeClaim | None,
) -> Iterator[Step]:
    """Create a claim that is missing, or not the pod's, of a class that is there."""
    name = claim_name(pod, volume)
    if volume.ephemeral is not None:
        claim = _ephemeral_claim(pod, volume, name)
        storage_class = storage.class_of(claim)
        origin = "as the ephemeral volume controller would"
    else:
        storage_class = (
            _likely_class(storage, pod, name) if gone is None else storage.class_of(gone)
        )
        spec = (
            gone.spec
            if gone is not None
            else ClaimSpec(
                access_modes=["ReadWriteOnce"],
                resources=VolumeResources(requests={"storage": _SIZE}),
            )
        )
        claim = PersistentVolumeClaim(metadata=_meta(pod, name), spec=spec)
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
        for other in _classes(storage)[:1]:
            new = StorageClass(
                metadata=ObjectMeta(name=wanted),
                provisioner=other.provisioner,
                volume_binding_mode=WAIT_FOR_FIRST_CONSUMER,
            )
            text = f"create StorageClass {wanted}, such as with provisioner {other.provisioner}"
            yield Step(FixKind.CREATE_CLASS, text, 1.5, pod, (new,))
    else:
        for other in _classes(storage)[:1]:
            named = replace(claim, spec=replace(claim.spec, storage_class_name=other.name))
            text = f"give claim {claim.key} a class, such as {other.name}"
            yield Step(FixKind.BIND_CLAIM, text, 1.5, pod, _served(named, other))


def _served(claim: PersistentVolumeClaim, storage_class: StorageClass) -> tuple[KubeObject, ...]:
    """The claim as its class would have it: bound already, unless it waits for its pod."""
    if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        return (claim,)
    name = f"pvc-{claim.namespace}-{claim.name}"
    volume = _volume_for(claim, name, storage_class.provisioner)
    meta = replace(
        claim.metadata, annotations={**claim.metadata.annotations, BIND_COMPLETED: "yes"}
    )
    bound = replace(claim, metadata=meta, spec=replace(claim.spec, volume_name=name))
    return volume, bound


def _volume_for(claim: PersistentVolumeClaim, name: str, driver: str) -> PersistentVolume:
    """A volume that is bound to a claim."""
    reference = ObjectReference(
        kind="PersistentVolumeClaim",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.metadata.uid,
    )
    return PersistentVolume(
        metadata=ObjectMeta(name=name),
        spec=PersistentVolumeSpec(
            csi=CsiVolumeSource(driver=driver, volume_handle=name),
            storage_class_name=class_of_claim(claim),
            capacity={"storage": _size(claim)},
            access_modes=claim.spec.access_modes,
            volume_mode=claim.spec.volume_mode,
            claim_ref=reference,
        ),
        status=PhaseStatus(phase="Bound"),
    )


def _open_volume(claim: PersistentVolumeClaim, node: str) -> PersistentVolume:
    only_there = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[only_there])])
    return PersistentVolume(
        metadata=ObjectMeta(name=f"pv-for-{claim.namespace}-{claim.name}"),
        spec=PersistentVolumeSpec(
            storage_class_name=class_of_claim(claim),
            capacity={"storage": _size(claim)},
            access_modes=claim.spec.access_modes,
            volume_mode=claim.spec.volume_mode,
            node_affinity=VolumeNodeAffinity(required=required),
        ),
        status=PhaseStatus(phase="Available"),
    )


def _ephemeral_claim(pod: Pod, volume: Volume, name: str) -> PersistentVolumeClaim:
    template = volume.ephemeral.volume_claim_template if volume.ephemeral else None
    owner = OwnerReference(kind="Pod", name=pod.name, uid=pod.metadata.uid, controller=True)
    meta = replace(_meta(pod, name), owner_references=[owner])
    return PersistentVolumeClaim(metadata=meta, spec=template.spec if template else ClaimSpec())


def _meta(pod: Pod, name: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=pod.namespace)


def _likely_class(storage: StorageObjects, pod: Pod, name: str) -> StorageClass | None:
    """The class of the claim in the namespace whose name is most like this, or the default."""
    neighbours = [claim for claim in storage.claims.values() if claim.namespace == pod.namespace]
    neighbours.sort(key=lambda claim: (-_common_prefix(claim.name, name), claim.name))
    found = (storage.class_of(claim) for claim in neighbours)
    return next((one for one in (*found, *_classes(storage)) if one is not None), None)


def _classes(storage: StorageObjects) -> list[StorageClass]:
    """The classes, the default first."""
    return sorted(
        storage.classes.values(),
        key=lambda one: (one.metadata.annotations.get(DEFAULT_CLASS) != "true", one.name),
    )


def _common_prefix(one: str, other: str) -> int:
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def _waits(storage: StorageObjects, claim: PersistentVolumeClaim) -> bool:
    storage_class = storage.class_of(claim)
    return (
        storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    )


def _is_provisioned(storage: StorageObjects, claim: PersistentVolumeClaim) -> bool:
    storage_class = storage.class_of(claim)
    return storage_class is not None and storage_class.provisioner not in {
        "",
        NO_PROVISIONER,
    }


def _size(claim: PersistentVolumeClaim) -> str:
    return str(claim.spec.resources.requests.get("storage", _SIZE))
