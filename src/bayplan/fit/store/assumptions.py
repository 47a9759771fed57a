"""What has been decided and not been observed yet: assumed over the observed objects.

An assumed pod is counted on its node, a claim that is to be provisioned is selected for the node,
and a volume that was found for a claim is reserved for it. A token takes back exactly what its
assumption still holds, whatever has changed since. What is observed wins; that is handled in
`store`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from bayplan.fit.decision import Assumption, ClaimBinding, Decision
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.pods import PodRecord
from bayplan.fit.store.objects import JournaledObjects
from bayplan.fit.store.validation import validate_pod
from bayplan.kube.meta import ObjectReference
from bayplan.kube.pods import Pod
from bayplan.kube.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim

Storage = PersistentVolumeClaim | PersistentVolume


class AssumedPod(msgspec.Struct, frozen=True, eq=False, gc=False):
    """What an assumption still holds."""

    token: Assumption
    observed: PodRecord | None
    """The pod as it was observed; None if it was not."""
    is_placed: bool = True
    """Whether that the pod is on its node is still only assumed."""
    deadline: float | None = None

    @property
    def node(self) -> str:
        """The node that was decided on."""
        return self.token.decision.node or ""

    def is_same(self, pod: Pod) -> bool:
        """Whether a pod is the one that was assumed, and not another of its name."""
        known, uid = self.token.uid, pod.metadata.uid
        return not known or not uid or known == uid


class StorageReservation(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A claim or a volume with an assumption over it."""

    pod_key: str
    """The pod that it is for."""
    binding: ClaimBinding
    observed: Storage


Reservations = dict[str, StorageReservation]


class AssumedObjects(JournaledObjects):
    """The objects of a cluster, observed ones and what is assumed over them."""

    def __init__(self, cluster: ClusterState) -> None:
        super().__init__(cluster)
        self._assumed_pods: dict[str, AssumedPod] = {}
        self._reserved_claims: Reservations = {}
        """Claims that are to be provisioned for a node."""
        self._reserved_volumes: Reservations = {}
        """Volumes that were found for a claim."""

    def assume(self, pod: Pod, decision: Decision) -> Assumption:
        """Assume that a decision is carried out: the pod on its node, and its claims as decided.

        ValueError if it names no node, if the pod is on one already, or if a claim or volume that
        it rests on has gone to another. A pod that has ended takes nothing.
        """
        return self._assume(pod, decision, validate_pod(pod, self.cluster.signatures))

    def forget(self, assumption: Assumption) -> None:
        """Undo what an assumption still holds, and nothing else; idempotent."""
        assumed = self._open(assumption)
        if assumed is None:
            return
        self._release(assumed)
        if assumed.is_placed:
            self._unplace(assumed)

    def finish_binding(self, assumption: Assumption, deadline: float) -> None:
        """The decision has been carried out and should be observed before `deadline`."""
        assumed = self._open(assumption)
        if assumed is not None:
            changed = replace(assumed, deadline=deadline)
            self._journal.set(self._assumed_pods, assumption.pod_key, changed)

    def expire(self, now: float) -> list[Assumption]:
        """Forget what should have been observed by now, and was not; returns it."""
        expired = self.overdue(now)
        for token in expired:
            self.forget(token)
        return expired

    def overdue(self, now: float) -> list[Assumption]:
        """What should have been observed by now, and was not."""
        return [
            assumed.token
            for assumed in self._assumed_pods.values()
            if assumed.deadline is not None and assumed.deadline <= now
        ]

    def assumptions(self) -> list[Assumption]:
        """What is assumed and has not been observed, nor forgotten."""
        return [assumed.token for assumed in self._assumed_pods.values()]

    def _observed_pod(self, key: str) -> Pod | None:
        """A pod as it was observed; None if it was not."""
        assumed = self._assumed_pods.get(key)
        record = self.cluster.pods.by_key.get(key) if assumed is None else assumed.observed
        return None if record is None else record.pod

    # -- assuming one decision -----------------------------------------------------------------

    def _assume(self, pod: Pod, decision: Decision, signature: PodSignature) -> Assumption:
        key = pod.key
        record = self.cluster.pods.by_key.get(key)
        node = self._assumable_node(key, record, decision)
        token = Assumption(key, pod.metadata.uid, decision)
        if pod.is_terminal:
            return token
        for binding in decision.bindings:
            self._reserve(binding, key, node)
        if record is None:
            self._add_pod(pod, key, node, signature)
        elif record.pod is pod and record.signature is signature:
            self._move_pod(record, node)
        else:
            self._write_pod(pod, key, signature, node)
        self._journal.set(self._assumed_pods, key, AssumedPod(token, record))
        return token

    def _open(self, token: Assumption) -> AssumedPod | None:
        assumed = self._assumed_pods.get(token.pod_key)
        return assumed if assumed is not None and assumed.token is token else None

    def _assumable_node(self, key: str, record: PodRecord | None, decision: Decision) -> str:
        """The node of a decision that can be assumed as things are; ValueError if it cannot."""
        node = decision.node
        if not node:
            raise ValueError(f"pod {key} cannot be assumed: the decision names no node")
        if record is not None and record.node:
            raise ValueError(f"pod {key} is on node {record.node} already")
        for binding in decision.bindings:
            self._check_open(binding)
        if len(decision.bindings) > 1:
            _check_apart(decision.bindings)
        return node

    def _check_open(self, binding: ClaimBinding) -> None:
        claim = self.cluster.storage.claims.get(binding.claim)
        if claim is None or is_decided(claim):
            raise ValueError(f"claim {binding.claim} does not wait for its first consumer")
        volume = self.cluster.storage.volumes.get(binding.volume)
        if binding.volume and (volume is None or not _is_open_to(volume, binding.claim)):
            raise ValueError(f"volume {binding.volume} cannot be reserved for {binding.claim}")

    def _reserve(self, binding: ClaimBinding, pod_key: str, node: str) -> None:
        """Reserve the volume of a binding, or select the node of its claim."""
        storage = self.cluster.storage
        claim = storage.claims[binding.claim]
        observed = storage.volumes[binding.volume] if binding.volume else claim
        if is_decided(observed):  # it is reserved for this very claim already
            return
        reservations, key = self._reserved_by_binding(binding)
        self._journal.set(reservations, key, StorageReservation(pod_key, binding, observed))
        self._write(with_assumption(observed, claim, node))

    def _unplace(self, assumed: AssumedPod) -> None:
        """Leave a pod as it was observed, or not at all."""
        key, observed = assumed.token.pod_key, assumed.observed
        if observed is None:
            self._set_nomination(key, None)
            self._erase(Pod, key)
        elif self.cluster.pods.by_key[key] is observed:
            self._move_pod(observed, "")
        else:
            self._restore_pod(observed)

    # -- what assumptions hold of storage, and ending them -------------------------------------

    def _reserved_by_binding(self, binding: ClaimBinding) -> tuple[Reservations, str]:
        """Where what a binding assumes is kept: the volume's entry, or else the claim's."""
        if binding.volume:
            return self._reserved_volumes, binding.volume
        return self._reserved_claims, binding.claim

    def _reserved_by(self, assumed: AssumedPod) -> list[StorageReservation]:
        """Return the storage reservations of one assumption."""
        places = (self._reserved_by_binding(one) for one in assumed.token.decision.bindings)
        found = (reservations.get(key) for reservations, key in places)
        return [one for one in found if one and one.pod_key == assumed.token.pod_key]

    def _reserved_for_claim(self, claim: str) -> list[StorageReservation]:
        """The volumes that were found for a claim."""
        return [one for one in self._reserved_volumes.values() if one.binding.claim == claim]

    def _release(self, assumed: AssumedPod) -> None:
        """End an assumption; claims and volumes are again as they were observed."""
        for one in self._reserved_by(assumed):
            self._lift(one)
            self._write(one.observed)
        self._journal.set(self._assumed_pods, assumed.token.pod_key, None)

    def _lift(self, reservation: StorageReservation) -> None:
        """End what a binding assumes; the object itself is the caller's."""
        reservations, key = self._reserved_by_binding(reservation.binding)
        self._journal.set(reservations, key, None)

    def _drop(self, reservation: StorageReservation | None) -> None:
        """End what a binding assumes of an object that goes."""
        if reservation is not None:
            self._lift(reservation)
            self._close_if_empty(reservation.pod_key)

    def _restore_observed(self, reservation: StorageReservation) -> None:
        """End what a binding assumes; the object is as it was observed."""
        self._lift(reservation)
        self._write(reservation.observed)
        self._close_if_empty(reservation.pod_key)

    def _close_if_empty(self, pod_key: str) -> None:
        """End an assumption that holds nothing any more."""
        assumed = self._assumed_pods[pod_key]
        if not assumed.is_placed and not self._reserved_by(assumed):
            self._journal.set(self._assumed_pods, pod_key, None)


def is_decided(obj: Storage) -> bool:
    """Whether an observed claim or volume already has what could be assumed of it."""
    if isinstance(obj, PersistentVolume):
        return obj.spec.claim_ref is not None
    return bool(obj.spec.volume_name) or SELECTED_NODE in obj.metadata.annotations


def with_assumption(observed: Storage, claim: PersistentVolumeClaim, node: str) -> Storage:
    """A volume reserved for a claim, or a claim selected for a node."""
    if isinstance(observed, PersistentVolume):
        return _reserved_for(observed, claim)
    annotations = {**observed.metadata.annotations, SELECTED_NODE: node}
    return replace(observed, metadata=replace(observed.metadata, annotations=annotations))


def _reserved_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    reference = ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.metadata.uid,
    )
    return replace(volume, spec=replace(volume.spec, claim_ref=reference))


def _check_apart(bindings: Sequence[ClaimBinding]) -> None:
    taken: set[str] = set()
    for binding in bindings:
        if binding.volume in taken:
            raise ValueError(f"volume {binding.volume} is to serve two claims")
        if binding.volume:
            taken.add(binding.volume)


def _is_open_to(volume: PersistentVolume, claim: str) -> bool:
    reference = volume.spec.claim_ref
    return reference is None or f"{reference.namespace}/{reference.name}" == claim
