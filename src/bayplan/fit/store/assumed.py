"""What is assumed of pods, claims and volumes, and has not been observed yet.

The snapshot counts an assumed pod on its node, a claim that is to be provisioned as selected for
the node, and a volume that was found for a claim as reserved for it. What the observed object says
wins where it speaks of it; until then the assumption lies over it. Here is who assumed what, and
what an object looks like with and without it.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from bayplan.fit.decision import Assumption, ClaimBinding
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.meta import ObjectReference
from bayplan.kube.pods import Pod
from bayplan.kube.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim

Storage = PersistentVolumeClaim | PersistentVolume


class AssumedPod(msgspec.Struct, frozen=True, eq=False, gc=False):
    """What an assumption still holds."""

    token: Assumption
    beneath: PodRecord | None
    """The pod as it was observed; None if it was not."""
    placed: bool = True
    """Whether that the pod is on its node is still only assumed."""
    deadline: float | None = None

    @property
    def node(self) -> str:
        """The node that was decided on."""
        return self.token.decision.node or ""


class Reservation(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A claim or a volume with an assumption over it."""

    holder: str
    """The key of the pod that it is for."""
    binding: ClaimBinding
    beneath: Storage
    """The object as it was observed."""


class Book:
    """All that is assumed, by what it is assumed of."""

    def __init__(self) -> None:
        self.pods: dict[str, AssumedPod] = {}
        self.claims: dict[str, Reservation] = {}
        """Claims that are to be provisioned for a node."""
        self.volumes: dict[str, Reservation] = {}
        """Volumes that were found for a claim."""

    def over(self, binding: ClaimBinding) -> tuple[dict[str, Reservation], str]:
        """Where what a binding assumes is kept: the volume's entry, or else the claim's."""
        if binding.volume:
            return self.volumes, binding.volume
        return self.claims, binding.claim

    def reserved_by(self, held: AssumedPod) -> list[Reservation]:
        """What one assumption lies over."""
        places = (self.over(binding) for binding in held.token.decision.bindings)
        found = (shelf.get(key) for shelf, key in places)
        return [one for one in found if one is not None and one.holder == held.token.pod_key]

    def for_claim(self, claim: str) -> list[Reservation]:
        """The volumes that were found for a claim."""
        return [one for one in self.volumes.values() if one.binding.claim == claim]


def same_pod(held: AssumedPod, pod: Pod) -> bool:
    """Whether a pod is the one that was assumed, and not another of its name."""
    known, uid = held.token.uid, pod.metadata.uid
    return not known or not uid or known == uid


def is_decided(obj: Storage) -> bool:
    """Whether an observed claim or volume says itself what could be assumed of it."""
    if isinstance(obj, PersistentVolume):
        return obj.spec.claim_ref is not None
    return bool(obj.spec.volume_name) or SELECTED_NODE in obj.metadata.annotations


def selected_for(claim: PersistentVolumeClaim, node: str) -> PersistentVolumeClaim:
    """The claim once a volume is to be provisioned for it on a node."""
    annotations = {**claim.metadata.annotations, SELECTED_NODE: node}
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations))


def reserved_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume once it is to be bound to a claim."""
    reference = ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.metadata.uid,
    )
    return replace(volume, spec=replace(volume.spec, claim_ref=reference))


def with_assumption(beneath: Storage, claim: PersistentVolumeClaim, node: str) -> Storage:
    """An observed volume or claim with what is assumed of it."""
    if isinstance(beneath, PersistentVolume):
        return reserved_for(beneath, claim)
    return selected_for(beneath, node)
