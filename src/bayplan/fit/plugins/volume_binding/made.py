"""Claims and volumes that are not there, made up as their controllers would make them."""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.fit.volumes.objects import StorageObjects, class_of_claim
from bayplan.kube.labels import HOSTNAME
from bayplan.kube.meta import ObjectMeta, ObjectReference, OwnerReference
from bayplan.kube.nodes import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.kube.pods import Pod
from bayplan.kube.storage import (
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


def new_claim(pod: Pod, name: str, spec: ClaimSpec | None = None) -> PersistentVolumeClaim:
    """A claim of a pod; a small one, unless it is said what of."""
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
