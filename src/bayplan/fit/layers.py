"""Two layers: objects as they are observed, and over them what is assumed until it is observed.

Every edit goes through here: it is checked, the assumptions that it ends are ended, and the way
back is noted while a fork is open. Inside a fork an edit is part of the try and is taken by its
word; what informers say in the meantime is kept until the outermost fork has closed.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from bayplan.fit.assumed import (
    Book,
    Held,
    Reserved,
    Storage,
    reserved_for,
    same_pod,
    selected_for,
    speaks,
)
from bayplan.fit.decision import Assumption, ClaimBinding, Decision
from bayplan.fit.journal import Journal
from bayplan.fit.objects import Kind, Objects
from bayplan.fit.shapes.shape import Shape
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.nominations import says_anew
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim


class Layers:
    """What is observed and what is assumed, as one cluster."""

    def __init__(self, cluster: Cluster, journal: Journal) -> None:
        self._cluster = cluster
        self._journal = journal
        self._book = Book()
        self._waiting: list[KubeObject | tuple[Kind, str]] = []
        self.objects = Objects(cluster)

    # -- edits ---------------------------------------------------------------------------------

    def put(self, obj: KubeObject) -> None:
        """Add an object, or replace the one of its kind and name."""
        if self.objects.knows(type(obj)):
            self._take(self.objects.admit(obj))

    def _take(self, obj: KubeObject) -> None:
        """Put an object that has been admitted."""
        if isinstance(obj, Pod):
            self._end_told(obj.key, obj)
        if not self._book.pods:
            self._put(obj)
        elif isinstance(obj, Pod):
            self._put_pod(obj)
        elif isinstance(obj, PersistentVolumeClaim | PersistentVolume):
            self._put_storage(obj)
        else:
            self._put(obj)

    def delete(self, kind: Kind, key: str) -> None:
        """Remove an object, and whatever was assumed of it."""
        if not self.objects.knows(kind):
            return
        if kind is Pod:
            self._end_told(key, None)
        if self._book.pods:
            self._let_go_of(kind, key)
        before = self.objects.remove(kind, key)
        if before is not None:
            self._journal.note(self._restore, kind, key, before)

    def observe(self, obj: KubeObject) -> None:
        """Put what an informer says, unless something newer is there."""
        if not self.objects.knows(type(obj)):
            return
        admitted = self.objects.admit(obj)
        if self._journal.depth:
            self._waiting.append(admitted)
        elif not self._is_stale(admitted):
            self._take(admitted)

    def observe_gone(self, kind: Kind, key: str) -> None:
        """Remove what an informer says is gone."""
        if self._journal.depth:
            self._waiting.append((kind, key))
        else:
            self.delete(kind, key)

    def catch_up(self) -> None:
        """Take in what was observed while forks were open."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if isinstance(one, tuple):
                self.delete(*one)
            elif not self._is_stale(one):
                self._take(one)

    # -- nominations ---------------------------------------------------------------------------

    def has_observed(self, key: str) -> bool:
        """Whether a pod is there, and not only assumed to be."""
        held = self._book.pods.get(key)
        return key in self._cluster.pods.by_key and (held is None or held.beneath is not None)

    def tell(self, key: str, node: str | None) -> None:
        """Keep a node (or, empty, none) for a pod whatever its status says; None ends that."""
        told = self._cluster.nominations.told.get(key)
        self._journal.note(self._cluster.nominate, key, told)
        self._cluster.nominate(key, node)

    def _end_told(self, key: str, after: Pod | None) -> None:
        """Forget what was told of a pod's nomination, if the pod goes or its status speaks."""
        if key not in self._cluster.nominations.told:
            return
        before = self._observed_pod(key)
        if before is None or after is None or says_anew(before, after):
            self.tell(key, None)

    def _observed_pod(self, key: str) -> Pod | None:
        held = self._book.pods.get(key)
        record = self._cluster.pods.by_key.get(key)
        return held.beneath if held is not None else record.pod if record is not None else None

    # -- assumptions ---------------------------------------------------------------------------

    def assume(self, pod: Pod, decision: Decision, shape: Shape) -> Assumption:
        """Take a decision as carried out; the shape is the pod's."""
        key = pod.key
        record = self._cluster.pods.by_key.get(key)
        node = self._assumable(key, record, decision)
        token = Assumption(key, pod.metadata.uid, decision)
        if pod.is_terminal:
            return token
        for binding in decision.bindings:
            self._reserve(binding, key, node)
        beneath = self._place(pod, record, node, shape)
        self._journal.set(self._book.pods, key, Held(token, beneath))
        return token

    def forget(self, token: Assumption) -> None:
        """Take back what an assumption still holds."""
        held = self._held(token)
        if held is None:
            return
        self._release(held)
        if held.placed:
            self._unplace(held)

    def set_deadline(self, token: Assumption, deadline: float) -> None:
        """Let an assumption last until then, if it is open."""
        held = self._held(token)
        if held is not None:
            self._journal.set(self._book.pods, token.pod_key, replace(held, deadline=deadline))

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
            for held in self._book.pods.values()
            if held.deadline is not None and held.deadline <= now
        ]

    def assumptions(self) -> Iterator[Assumption]:
        """Those that still hold something."""
        return (held.token for held in list(self._book.pods.values()))

    def _held(self, token: Assumption) -> Held | None:
        held = self._book.pods.get(token.pod_key)
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
        return node

    def _check_open(self, binding: ClaimBinding) -> None:
        claim = self._cluster.storage.claims.get(binding.claim)
        if claim is None or speaks(claim):
            raise ValueError(f"claim {binding.claim} does not wait for its first consumer")
        volume = self._cluster.storage.volumes.get(binding.volume)
        if binding.volume and (volume is None or not _is_open_to(volume, binding.claim)):
            raise ValueError(f"volume {binding.volume} cannot be reserved for {binding.claim}")

    def _reserve(self, binding: ClaimBinding, pod_key: str, node: str) -> None:
        """Lay a binding over its volume, or over its claim."""
        storage = self._cluster.storage
        claim = storage.claims[binding.claim]
        beneath = storage.volumes[binding.volume] if binding.volume else claim
        if speaks(beneath):  # it is reserved for this very claim already
            return
        shelf, key = self._book.over(binding)
        self._journal.set(shelf, key, Reserved(pod_key, binding, beneath))
        self._put(_laid_over(beneath, claim, node))

    def _place(self, pod: Pod, record: PodRecord | None, node: str, shape: Shape) -> Pod | None:
        """Put a pod on a node; returns it as it was known before, if it was."""
        cluster, journal = self._cluster, self._journal
        if record is None:
            journal.note(cluster.remove_pod, cluster.add_pod(pod, node, shape).key)
            return None
        before = record.pod
        if before is pod and record.shape is shape:
            cluster.move_pod(record, node)
            journal.note(self._move, record.key, "")
        else:
            self._replace_pod(pod, node)
        return before

    def _unplace(self, held: Held) -> None:
        """Leave a pod as it was observed, or not at all."""
        key, beneath = held.token.pod_key, held.beneath
        record = self._cluster.pods.by_key[key]
        if beneath is None:
            self.delete(Pod, key)
        elif record.pod is beneath:
            self._journal.note(self._move, key, record.node)
            self._cluster.move_pod(record, "")
        else:
            self._put(beneath)

    def _release(self, held: Held) -> None:
        """End an assumption; what it lies over is as it was observed."""
        for one in self._book.reserved_by(held):
            self._lift(one)
            self._put(one.beneath)
        self._journal.set(self._book.pods, held.token.pod_key, None)

    def _lift(self, reserved: Reserved) -> None:
        """End what a binding assumes; the object itself is the caller's."""
        shelf, key = self._book.over(reserved.binding)
        self._journal.set(shelf, key, None)

    # -- what is observed of what is assumed ---------------------------------------------------

    def _put_pod(self, pod: Pod) -> None:
        held = self._book.pods.get(pod.key)
        if held is None:
            self._put(pod)
        elif self._journal.depth or pod.is_terminal or not same_pod(held, pod):
            self._release(held)
            self._put(pod)
        elif held.placed and not pod.spec.node_name:
            self._journal.set(self._book.pods, pod.key, replace(held, beneath=pod))
            self._replace_pod(pod, held.node)
        else:
            self._confirm(held, pod)

    def _confirm(self, held: Held, pod: Pod) -> None:
        """The pod is seen on a node: what is assumed of its claims lasts if it is the node decided
        on.
        """
        if pod.spec.node_name == held.node and self._book.reserved_by(held):
            confirmed = replace(held, beneath=pod, placed=False)
            self._journal.set(self._book.pods, pod.key, confirmed)
        else:
            self._release(held)
        self._put(pod)

    def _put_storage(self, obj: Storage) -> None:
        is_claim = isinstance(obj, PersistentVolumeClaim)
        shelf = self._book.claims if is_claim else self._book.volumes
        reserved = shelf.get(obj.key)
        if isinstance(obj, PersistentVolumeClaim) and obj.spec.volume_name:
            self._let_go_of_others(obj)
        if reserved is None:
            self._put(obj)
        elif self._journal.depth or speaks(obj):
            self._lift(reserved)
            self._put(obj)
            self._close_if_empty(reserved.holder)
        else:
            self._journal.set(shelf, obj.key, replace(reserved, beneath=obj))
            claim = self._cluster.storage.claims[reserved.binding.claim]
            self._put(_laid_over(obj, claim, self._book.pods[reserved.holder].node))

    def _let_go_of_others(self, claim: PersistentVolumeClaim) -> None:
        """A claim that got another volume than was assumed needs that no more."""
        for one in self._book.for_claim(claim.key):
            if one.binding.volume != claim.spec.volume_name:
                self._give_back(one)

    def _let_go_of(self, kind: Kind, key: str) -> None:
        """End what is assumed of an object that goes."""
        if kind is Pod:
            held = self._book.pods.get(key)
            if held is not None:
                self._release(held)
        elif kind is PersistentVolume:
            self._drop(self._book.volumes.get(key))
        elif kind is PersistentVolumeClaim:
            self._drop(self._book.claims.get(key))
            for one in self._book.for_claim(key):
                self._give_back(one)

    def _drop(self, reserved: Reserved | None) -> None:
        if reserved is not None:
            self._lift(reserved)
            self._close_if_empty(reserved.holder)

    def _give_back(self, reserved: Reserved) -> None:
        self._lift(reserved)
        self._put(reserved.beneath)
        self._close_if_empty(reserved.holder)

    def _close_if_empty(self, pod_key: str) -> None:
        held = self._book.pods[pod_key]
        if not held.placed and not self._book.reserved_by(held):
            self._journal.set(self._book.pods, pod_key, None)

    def _is_stale(self, obj: KubeObject) -> bool:
        """Whether something newer has been observed already."""
        is_pod = isinstance(obj, Pod)
        known = self._observed_pod(obj.key) if is_pod else self.objects.find(type(obj), obj.key)
        if known is None:
            return False
        have, new = known.metadata.resource_version, obj.metadata.resource_version
        return have.isdecimal() and new.isdecimal() and int(new) < int(have)

    # -- changes, each with its way back -------------------------------------------------------

    def _put(self, obj: KubeObject) -> None:
        before = self.objects.put(obj)
        self._journal.note(self._restore, type(obj), obj.key, before)

    def _replace_pod(self, pod: Pod, node: str) -> None:
        before = self.objects.find(Pod, pod.key)
        self._cluster.put_pod(pod, node)
        self._journal.note(self._restore, Pod, pod.key, before)

    def _restore(self, kind: Kind, key: str, before: KubeObject | None) -> None:
        if before is None:
            self.objects.remove(kind, key)
        else:
            self.objects.put(before)

    def _move(self, key: str, node: str) -> None:
        self._cluster.move_pod(self._cluster.pods.by_key[key], node)


def _is_open_to(volume: PersistentVolume, claim: str) -> bool:
    reference = volume.spec.claim_ref
    return reference is None or f"{reference.namespace}/{reference.name}" == claim


def _laid_over(beneath: Storage, claim: PersistentVolumeClaim, node: str) -> Storage:
    """An observed volume or claim with what is assumed of it."""
    if isinstance(beneath, PersistentVolume):
        return reserved_for(beneath, claim)
    return selected_for(beneath, node)
