"""Assuming decisions and taking them back: each lays over the observed objects what it needs.

A token takes back exactly what its assumption still holds, whatever has changed since; what is
observed in the meantime is the business of `layers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from bayplan.fit.decision import Assumption, ClaimBinding, Decision
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.pods import PodRecord
from bayplan.fit.store.assumed import AssumedPod, Book, Reservation, is_decided, with_assumption
from bayplan.fit.store.edits import Edits
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolume


class Assuming:
    """What is assumed, over what is observed."""

    def __init__(self, cluster: Cluster, edits: Edits) -> None:
        self._cluster = cluster
        self._edits = edits
        self._journal = edits.journal
        self.book = Book()

    def assume(self, pod: Pod, decision: Decision, shape: PodSignature) -> Assumption:
        """Take a decision as carried out; the shape is the pod's."""
        key = pod.key
        record = self._cluster.pods.by_key.get(key)
        node = self._assumable(key, record, decision)
        token = Assumption(key, pod.metadata.uid, decision)
        if pod.is_terminal:
            return token
        for binding in decision.bindings:
            self._reserve(binding, key, node)
        if record is None:
            self._edits.add_pod(pod, key, node, shape)
        else:
            self._place(pod, record, node, shape)
        self._journal.set(self.book.pods, key, AssumedPod(token, record))
        return token

    def forget(self, token: Assumption) -> None:
        """Take back what an assumption still holds."""
        held = self._held(token)
        if held is None:
            return
        self.release(held)
        if held.placed:
            self._unplace(held)

    def set_deadline(self, token: Assumption, deadline: float) -> None:
        """Let an assumption last until then, if it is open."""
        held = self._held(token)
        if held is not None:
            self._journal.set(self.book.pods, token.pod_key, replace(held, deadline=deadline))

    def expire(self, now: float) -> list[Assumption]:
        """Forget the assumptions whose time is over; returns them."""
        over = self.overdue(now)
        for token in over:
            self.forget(token)
        return over

    def overdue(self, now: float) -> list[Assumption]:
        """The assumptions whose time is over."""
        return [
            held.token
            for held in self.book.pods.values()
            if held.deadline is not None and held.deadline <= now
        ]

    def assumptions(self) -> Iterator[Assumption]:
        """Those that still hold something."""
        return (held.token for held in list(self.book.pods.values()))

    def observed_pod(self, key: str) -> Pod | None:
        """A pod as it was observed; None if it was not."""
        held = self.book.pods.get(key)
        record = self._cluster.pods.by_key.get(key) if held is None else held.beneath
        return None if record is None else record.pod

    # -- ending what is assumed ----------------------------------------------------------------

    def release(self, held: AssumedPod) -> None:
        """End an assumption; what it lies over is as it was observed."""
        for one in self.book.reserved_by(held):
            self.lift(one)
            self._edits.put(one.beneath)
        self._journal.set(self.book.pods, held.token.pod_key, None)

    def lift(self, reserved: Reservation) -> None:
        """End what a binding assumes; the object itself is the caller's."""
        shelf, key = self.book.over(reserved.binding)
        self._journal.set(shelf, key, None)

    def drop(self, reserved: Reservation | None) -> None:
        """End what a binding assumes of an object that goes."""
        if reserved is not None:
            self.lift(reserved)
            self.close_if_empty(reserved.holder)

    def give_back(self, reserved: Reservation) -> None:
        """End what a binding assumes; the object is as it was observed."""
        self.lift(reserved)
        self._edits.put(reserved.beneath)
        self.close_if_empty(reserved.holder)

    def close_if_empty(self, pod_key: str) -> None:
        """End an assumption that holds nothing any more."""
        held = self.book.pods[pod_key]
        if not held.placed and not self.book.reserved_by(held):
            self._journal.set(self.book.pods, pod_key, None)

    # -- one decision --------------------------------------------------------------------------

    def _held(self, token: Assumption) -> AssumedPod | None:
        held = self.book.pods.get(token.pod_key)
        return held if held is not None and held.token is token else None

    def _assumable(self, key: str, record: PodRecord | None, decision: Decision) -> str:
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
        claim = self._cluster.storage.claims.get(binding.claim)
        if claim is None or is_decided(claim):
            raise ValueError(f"claim {binding.claim} does not wait for its first consumer")
        volume = self._cluster.storage.volumes.get(binding.volume)
        if binding.volume and (volume is None or not _is_open_to(volume, binding.claim)):
            raise ValueError(f"volume {binding.volume} cannot be reserved for {binding.claim}")

    def _reserve(self, binding: ClaimBinding, pod_key: str, node: str) -> None:
        """Lay a binding over its volume, or over its claim."""
        storage = self._cluster.storage
        claim = storage.claims[binding.claim]
        beneath = storage.volumes[binding.volume] if binding.volume else claim
        if is_decided(beneath):  # it is reserved for this very claim already
            return
        shelf, key = self.book.over(binding)
        self._journal.set(shelf, key, Reservation(pod_key, binding, beneath))
        self._edits.put(with_assumption(beneath, claim, node))

    def _place(self, pod: Pod, record: PodRecord, node: str, shape: PodSignature) -> None:
        """Put a known pod on a node."""
        if record.pod is pod and record.shape is shape:
            self._edits.move(record, node)
        else:
            self._edits.put_pod(pod, record.key, shape, node)

    def _unplace(self, held: AssumedPod) -> None:
        """Leave a pod as it was observed, or not at all."""
        key, beneath = held.token.pod_key, held.beneath
        if beneath is None:
            self._edits.tell(key, None)
            self._edits.remove(Pod, key)
        elif self._cluster.pods.by_key[key] is beneath:
            self._edits.move(beneath, "")
        else:
            self._edits.bring_back(beneath)


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
