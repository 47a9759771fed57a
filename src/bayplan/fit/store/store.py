"""The object store: observed objects, with what is assumed of them until it is observed.

Every change of a snapshot comes in here. It is validated, the assumptions that it ends are ended,
and it goes to the cluster's state, with the way back noted while a fork is open. Inside a fork a
change is part of the trial and ends what was assumed of the object; what informers report in the
meantime waits until the outermost fork has closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Self

from msgspec.structs import replace

from bayplan.base.garbage import paused_collector
from bayplan.fit.object_copies import private_copy
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.pods import is_new_nomination
from bayplan.fit.store.assumptions import (
    AssumedObjects,
    AssumedPod,
    Storage,
    is_decided,
    with_assumption,
)
from bayplan.fit.store.kinds import Kind
from bayplan.fit.store.validation import validate_object, validate_pod
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim

_LOADING_ORDER = {"Node": 1, "VolumeAttachment": 2, "Pod": 3}


class ObjectStore(AssumedObjects):
    """What is observed and what is assumed, as one cluster."""

    def __init__(self, cluster: ClusterState) -> None:
        super().__init__(cluster)
        self._deferred: list[KubeObject | tuple[Kind, str]] = []
        """What was observed while a fork is open."""

    def put(self, obj: KubeObject) -> None:
        """Add an object, or replace the one of its kind and name; kinds that do not matter to
        scheduling are ignored.

        What is assumed of it stays, unless the object contradicts it or a fork is open.
        """
        if isinstance(obj, Pod):
            self._put_pod(obj, validate_pod(obj, self.cluster.signatures))
        elif type(obj) in self._kinds:
            self._put(validate_object(obj))

    def put_all(self, objects: Iterable[KubeObject]) -> None:
        """Put many objects, in an order in which nothing has to be counted twice."""
        everything = sorted(objects, key=lambda obj: _LOADING_ORDER.get(type(obj).__name__, 0))
        nodes = sum(type(obj).__name__ == "Node" for obj in everything)
        self.cluster.slots.reserve(len(self.cluster.slots) + nodes)
        with paused_collector():
            for obj in everything:
                self.put(obj)

    def delete(self, kind: Kind, key: str) -> None:
        """Remove an object by its kind and key (`namespace/name`, or the name alone), and what is
        assumed of it.
        """
        if kind not in self._kinds:
            return
        if kind is Pod:
            self._end_nomination(key, None)
        if self._assumed_pods:
            self._end_assumptions(kind, key)
        self._erase(kind, key)

    def observe(self, obj: KubeObject, *, own: bool = False) -> None:
        """Put what an informer reports, unless a newer version is there; while a fork is open it
        is deferred.

        An object that came from the wire and that nothing changes any more is the snapshot's `own`
        and is not copied.
        """
        if isinstance(obj, Pod):
            self._observe_pod(obj, validate_pod(obj, self.cluster.signatures))
        elif type(obj) in self._kinds:
            valid = validate_object(obj, own=own)
            if self._journal.depth:
                self._deferred.append(valid)
            elif not self._is_stale(valid):
                self._put(valid)

    def _observe_pod(self, pod: Pod, signature: PodSignature) -> None:
        if self._journal.depth:  # until it is put, a pod is read from its object
            self._deferred.append(private_copy(pod))
        elif not self._is_stale(pod):
            self._put_pod(pod, signature)

    def observe_gone(self, kind: Kind, key: str) -> None:
        """Delete what an informer reports as gone, likewise."""
        if self._journal.depth:
            self._deferred.append((kind, key))
        else:
            self.delete(kind, key)

    def _is_stale(self, obj: KubeObject) -> bool:
        """Whether a newer version has been observed already."""
        is_pod = isinstance(obj, Pod)
        known = self._observed_pod(obj.key) if is_pod else self._find(type(obj), obj.key)
        return known is not None and is_older(
            obj.metadata.resource_version, known.metadata.resource_version
        )

    # -- forks ---------------------------------------------------------------------------------

    @contextmanager
    def fork(self) -> Iterator[Self]:
        """Fork the snapshot: all changes inside are undone at the end, unless `commit` is
        called. Forks that were begun inside and left open are undone with it.
        """
        depth = self.begin()
        try:
            yield self
        finally:
            while self._journal.depth >= depth:
                self.revert()

    @property
    def is_forked(self) -> bool:
        """Whether a fork is open."""
        return self._journal.depth > 0

    def begin(self) -> int:
        """Start a fork by hand; returns how deep forks now nest."""
        return self._journal.begin()

    def commit(self) -> None:
        """Keep what was done since the last fork began; an outer fork can still undo it."""
        self._journal.commit()
        self._catch_up()

    def revert(self) -> None:
        """Undo what was done since the last fork began."""
        self._journal.revert()
        self._catch_up()

    def _catch_up(self) -> None:
        """Put what was observed while forks were open, once none is."""
        if self._journal.depth or not self._deferred:
            return
        deferred, self._deferred = self._deferred, []
        for one in deferred:
            if isinstance(one, tuple):
                self.delete(*one)
            elif not self._is_stale(one):
                self._put(one)

    # -- moving pods in a fork -----------------------------------------------------------------

    def uncount_pods(self, node: str) -> None:
        """Count no pod of a node any more, until the fork ends; they stay known, and `move` counts
        them where they go.
        """
        self._only_in_a_fork()
        self._uncount_pods(node)

    def move(self, key: str, node: str) -> None:
        """Count a known pod on another node than it is on, until the fork ends; what its claims
        would get there is not asked.
        """
        self._only_in_a_fork()
        self._move_pod(self.cluster.pods.by_key[key], node)

    def _only_in_a_fork(self) -> None:
        if not self._journal.depth:
            raise RuntimeError("pods are only moved in a fork")

    # -- nominations ---------------------------------------------------------------------------

    def nominate(self, pod: Pod, node: str) -> None:
        """Nominate a pod for a node that victims have to leave; it is put if it is not there.

        That holds until its status has a nomination, or it is placed or deleted.
        """
        if self._observed_pod(pod.key) is None:
            self.put(pod)
        self._set_nomination(pod.key, node)

    def clear_nomination(self, pod: Pod) -> None:
        """End a pod's nomination, whatever its status still has."""
        record = self.cluster.pods.by_key.get(pod.key)
        if record is not None:
            is_written = bool(record.pod.status.nominated_node_name)
            self._set_nomination(pod.key, "" if is_written else None)

    def nominated_node(self, pod: Pod) -> str:
        """The node that a pod is nominated for, or empty."""
        return self.cluster.nominations.node_of(pod)

    def nominated_for(self, node: str) -> list[Pod]:
        """The pods that are nominated for a node."""
        records = self.cluster.nominations.by_node.get(node, {}).values()
        return [record.pod for record in records]

    def _end_nomination(self, key: str, after: Pod | None) -> None:
        """Forget a scheduler's nomination of a pod, if the pod is deleted or its status has a new
        nomination.
        """
        if key not in self.cluster.nominations.by_scheduler:
            return
        before = self._observed_pod(key)
        if before is None or after is None or is_new_nomination(before, after):
            self._set_nomination(key, None)

    # -- what is observed of what is assumed ---------------------------------------------------

    def _put(self, obj: KubeObject) -> None:
        """Put a valid object."""
        if isinstance(obj, Pod):
            self._put_pod(obj, validate_pod(obj, self.cluster.signatures))
        elif self._assumed_pods and isinstance(obj, PersistentVolumeClaim | PersistentVolume):
            self._put_storage(obj)
        else:
            self._write(obj)

    def _put_pod(self, pod: Pod, signature: PodSignature) -> None:
        """Put a valid pod of this signature."""
        key = pod.key
        if self.cluster.nominations.by_scheduler:
            self._end_nomination(key, pod)
        assumed = self._assumed_pods.get(key)
        if assumed is None:
            self._write_pod(pod, key, signature)
        elif self._journal.depth or pod.is_terminal or not assumed.is_same(pod):
            self._release(assumed)
            self._write_pod(pod, key, signature)
        elif assumed.is_placed and not pod.spec.node_name:
            observed = self._write_pod(pod, key, signature, assumed.node)
            self._journal.set(self._assumed_pods, key, replace(assumed, observed=observed))
        else:
            self._confirm(assumed, pod, signature)

    def _confirm(self, assumed: AssumedPod, pod: Pod, signature: PodSignature) -> None:
        """The pod is seen on a node: what is assumed of its claims lasts if it is the node decided
        on.
        """
        as_decided = pod.spec.node_name == assumed.node and bool(self._reserved_by(assumed))
        if not as_decided:
            self._release(assumed)
        observed = self._write_pod(pod, pod.key, signature)
        if as_decided:
            confirmed = replace(assumed, observed=observed, is_placed=False)
            self._journal.set(self._assumed_pods, pod.key, confirmed)

    def _put_storage(self, obj: Storage) -> None:
        is_claim = isinstance(obj, PersistentVolumeClaim)
        reservations = self._reserved_claims if is_claim else self._reserved_volumes
        reserved = reservations.get(obj.key)
        if isinstance(obj, PersistentVolumeClaim) and obj.spec.volume_name:
            self._release_other_volumes(obj)
        if reserved is None:
            self._write(obj)
        elif self._journal.depth or is_decided(obj):
            self._lift(reserved)
            self._write(obj)
            self._close_if_empty(reserved.pod_key)
        else:
            self._journal.set(reservations, obj.key, replace(reserved, observed=obj))
            claim = self.cluster.storage.claims[reserved.binding.claim]
            self._write(with_assumption(obj, claim, self._assumed_pods[reserved.pod_key].node))

    def _release_other_volumes(self, claim: PersistentVolumeClaim) -> None:
        """Release volumes assumed for a claim that got another one."""
        for one in self._reserved_for_claim(claim.key):
            if one.binding.volume != claim.spec.volume_name:
                self._restore_observed(one)

    def _end_assumptions(self, kind: Kind, key: str) -> None:
        """End what is assumed of an object that goes."""
        if kind is Pod:
            assumed = self._assumed_pods.get(key)
            if assumed is not None:
                self._release(assumed)
        elif kind is PersistentVolume:
            self._drop(self._reserved_volumes.get(key))
        elif kind is PersistentVolumeClaim:
            self._drop(self._reserved_claims.get(key))
            for one in self._reserved_for_claim(key):
                self._restore_observed(one)


def is_older(version: str, than: str) -> bool:
    """Whether a resourceVersion is older than another; False where one is no number."""
    if not (version.isdecimal() and than.isdecimal()):
        return False
    version, than = version.lstrip("0"), than.lstrip("0")
    return (len(version), version) < (len(than), than)  # of any length, as int() is not
