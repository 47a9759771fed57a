"""Claims that are not there, not bound, or cannot be served.

These refuse a pod before any node is evaluated. What is missing is created in the fork as the
controllers would create it: a claim of the class that claims of similar names use, a volume of the
provisioner of the class.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.requirements.claims import LOST
from bayplan.fit.requirements.pods import belongs_to_another_pod
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.volumes.binding import WAIT_FOR_FIRST_CONSUMER
from bayplan.fit.volumes.objects import StorageObjects, claim_name, class_of_claim
from bayplan.kube.labels import HOSTNAME
from bayplan.kube.meta import KubeObject, ObjectMeta, ObjectReference, OwnerReference
from bayplan.kube.nodes import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.kube.pods import Pod
from bayplan.kube.storage import (
    BIND_COMPLETED,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PhaseStatus,
    StorageClass,
    VolumeNodeAffinity,
)
from bayplan.kube.volumes import ClaimSpec, CsiVolumeSource, Volume, VolumeResources


def claim_steps(cluster: ClusterState, pod: Pod) -> Iterator[Step]:
    """Steps for a pod whose claims are in no state to be scheduled: the first claim that is not."""
    storage = cluster.storage
    for volume in pod.spec.volumes:
        key, claim = storage.claim_of(pod, volume)
        if not key:
            continue
        if claim is None or claim.metadata.deletion_timestamp is not None:
            yield from _create(storage, pod, volume, gone=claim)
            return
        if belongs_to_another_pod(volume, claim, pod):
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
    again = f"delete claim {claim.key}, and " if gone is not None else ""
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
            text = f"set a storage class on claim {claim.key}, such as {other.name}"
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


# -- claims and volumes as their controllers would make them ---------------------------------------


DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_SIZE = "1Gi"


def new_claim(pod: Pod, name: str, spec: ClaimSpec | None = None) -> PersistentVolumeClaim:
    """Return a claim of a pod; a small one, unless a spec is given."""
    small = VolumeResources(requests={"storage": _SIZE})
    chosen = spec or ClaimSpec(access_modes=["ReadWriteOnce"], resources=small)
    return PersistentVolumeClaim(metadata=_meta(pod, name), spec=chosen)


def ephemeral_claim(pod: Pod, volume: Volume, name: str) -> PersistentVolumeClaim:
    """The claim for a generic ephemeral volume of a pod."""
    template = volume.ephemeral.volume_claim_template if volume.ephemeral else None
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=pod.name, uid=pod.metadata.uid, controller=True
    )
    meta = replace(_meta(pod, name), owner_references=[owner])
    return PersistentVolumeClaim(metadata=meta, spec=template.spec if template else ClaimSpec())


def volume_for(claim: PersistentVolumeClaim, name: str, driver: str) -> PersistentVolume:
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
            capacity={"storage": size_of(claim)},
            access_modes=claim.spec.access_modes,
            volume_mode=claim.spec.volume_mode,
            claim_ref=reference,
        ),
        status=PhaseStatus(phase="Bound"),
    )


def open_volume(claim: PersistentVolumeClaim, node: Node) -> PersistentVolume:
    """A local volume on a node that a claim can take."""
    name = f"pv-for-{claim.namespace}-{claim.name}"
    required = NodeSelector(node_selector_terms=[_only_on(node)])
    return PersistentVolume(
        metadata=ObjectMeta(name=name),
        spec=PersistentVolumeSpec(
            local={"path": f"/mnt/disks/{name}"},
            storage_class_name=class_of_claim(claim),
            capacity={"storage": size_of(claim)},
            access_modes=claim.spec.access_modes,
            volume_mode=claim.spec.volume_mode,
            node_affinity=VolumeNodeAffinity(required=required),
        ),
        status=PhaseStatus(phase="Available"),
    )


def _only_on(node: Node) -> NodeSelectorTerm:
    host = node.metadata.labels.get(HOSTNAME)
    if host is None:
        named = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node.name])
        return NodeSelectorTerm(match_fields=[named])
    labelled = NodeSelectorRequirement(key=HOSTNAME, operator="In", values=[host])
    return NodeSelectorTerm(match_expressions=[labelled])


def likely_class(storage: StorageObjects, pod: Pod, name: str) -> StorageClass | None:
    """The class of the claim in the namespace whose name is most like this, or the default."""
    neighbours = [claim for claim in storage.claims.values() if claim.namespace == pod.namespace]
    neighbours.sort(key=lambda claim: (-_common_prefix(claim.name, name), claim.name))
    found = (storage.class_of(claim) for claim in neighbours)
    return next((one for one in (*found, *classes_of(storage)) if one is not None), None)


def classes_of(storage: StorageObjects) -> list[StorageClass]:
    """The classes, the default first."""
    return sorted(
        storage.classes.values(),
        key=lambda one: (one.metadata.annotations.get(DEFAULT_CLASS) != "true", one.name),
    )


def size_of(claim: PersistentVolumeClaim) -> str:
    """How much a claim asks for."""
    return str(claim.spec.resources.requests.get("storage", _SIZE))


def _meta(pod: Pod, name: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=pod.namespace)


def _common_prefix(one: str, other: str) -> int:
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
