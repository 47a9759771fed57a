"""Two layers: objects as they are observed, and over them what is assumed until it is observed.

Every edit goes through here: it is checked, the assumptions that it ends are ended, and the way
back is noted while a fork is open. Inside a fork an edit is part of the try and is taken by its
word; what informers say in the meantime is kept until the outermost fork has closed.
"""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.fit.copies import private_copy
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.pods import is_new_nomination
from bayplan.fit.store.assumed import AssumedPod, Storage, is_decided, same_pod, with_assumption
from bayplan.fit.store.assumptions import Assuming
from bayplan.fit.store.edits import Edits
from bayplan.fit.store.journal import Journal
from bayplan.fit.store.objects import Kind
from bayplan.fit.store.validation import adopt
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim


class Layers:
    """What is observed and what is assumed, as one cluster."""

    def __init__(self, cluster: Cluster, journal: Journal) -> None:
        self._cluster = cluster
        self._journal = journal
        self._edits = Edits(cluster, journal)
        self.assumed = Assuming(cluster, self._edits)
        self._book = self.assumed.book
        self._waiting: list[KubeObject | tuple[Kind, str]] = []
        self.objects = self._edits.objects

    def put(self, obj: KubeObject) -> None:
        """Add an object, or replace the one of its kind and name."""
        if isinstance(obj, Pod):
            self._take_pod(obj, self.objects.shape(obj))
        elif self.objects.knows(type(obj)):
            self._take(self.objects.admit(obj))

    def delete(self, kind: Kind, key: str) -> None:
        """Remove an object, and whatever was assumed of it."""
        if not self.objects.knows(kind):
            return
        if kind is Pod:
            self._end_told(key, None)
        if self._book.pods:
            self._let_go_of(kind, key)
        self._edits.remove(kind, key)

    def observe(self, obj: KubeObject, *, own: bool = False) -> None:
        """Put what an informer says, unless something newer is there."""
        if isinstance(obj, Pod):
            self._observe_pod(obj, self.objects.shape(obj))
        elif self.objects.knows(type(obj)):
            admitted = adopt(obj) if own else self.objects.admit(obj)
            if self._journal.depth:
                self._waiting.append(admitted)
            elif not self._is_stale(admitted):
                self._take(admitted)

    def _observe_pod(self, pod: Pod, shape: PodSignature) -> None:
        if self._journal.depth:  # until it is put, a pod is read from its object
            self._waiting.append(private_copy(pod))
        elif not self._is_stale(pod):
            self._take_pod(pod, shape)

    def observe_gone(self, kind: Kind, key: str) -> None:
        """Remove what an informer says is gone."""
        if self._journal.depth:
            self._waiting.append((kind, key))
        else:
            self.delete(kind, key)

    def catch_up(self) -> None:
        """Take in what was observed while forks were open."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if isinstance(one, tuple):
                self.delete(*one)
            elif not self._is_stale(one):
                self._take(one)

    def _take(self, obj: KubeObject) -> None:
        """Put an object that has been admitted."""
        if isinstance(obj, Pod):
            self._take_pod(obj, self.objects.shape(obj))
        elif self._book.pods and isinstance(obj, PersistentVolumeClaim | PersistentVolume):
            self._put_storage(obj)
        else:
            self._edits.put(obj)

    def _is_stale(self, obj: KubeObject) -> bool:
        """Whether something newer has been observed already."""
        is_pod = isinstance(obj, Pod)
        known = (
            self.assumed.observed_pod(obj.key) if is_pod else self.objects.find(type(obj), obj.key)
        )
        return known is not None and is_older(
            obj.metadata.resource_version, known.metadata.resource_version
        )

    # -- moving pods in a fork -----------------------------------------------------------------

    def uncount_pods(self, node: str) -> None:
        """Count no pod of a node any more."""
        self._only_in_a_fork()
        self._edits.uncount_pods(node)

    def move(self, key: str, node: str) -> None:
        """Count a known pod on another node."""
        self._only_in_a_fork()
        self._edits.move(self._cluster.pods.by_key[key], node)

    def _only_in_a_fork(self) -> None:
        if not self._journal.depth:
            raise RuntimeError("pods are only moved in a fork")

    # -- nominations ---------------------------------------------------------------------------

    def nominate(self, pod: Pod, node: str) -> None:
        """Keep a node for a pod whatever its status says; it is put if it is not there."""
        if self.assumed.observed_pod(pod.key) is None:
            self.put(pod)
        self._edits.tell(pod.key, node)

    def clear_nomination(self, key: str) -> None:
        """Keep no node for a pod, whatever its status says."""
        record = self._cluster.pods.by_key.get(key)
        if record is not None:
            self._edits.tell(key, "" if record.pod.status.nominated_node_name else None)

    def _end_told(self, key: str, after: Pod | None) -> None:
        """Forget what was told of a pod's nomination, if the pod goes or its status speaks."""
        if key not in self._cluster.nominations.told:
            return
        before = self.assumed.observed_pod(key)
        if before is None or after is None or is_new_nomination(before, after):
            self._edits.tell(key, None)

    # -- what is observed of what is assumed ---------------------------------------------------

    def _take_pod(self, pod: Pod, shape: PodSignature) -> None:
        """Put a pod that has been admitted, of this shape."""
        key = pod.key
        if self._cluster.nominations.told:
            self._end_told(key, pod)
        held = self._book.pods.get(key)
        if held is None:
            self._edits.put_pod(pod, key, shape)
        elif self._journal.depth or pod.is_terminal or not same_pod(held, pod):
            self.assumed.release(held)
            self._edits.put_pod(pod, key, shape)
        elif held.placed and not pod.spec.node_name:
            beneath = self._edits.put_pod(pod, key, shape, held.node)
            self._journal.set(self._book.pods, key, replace(held, beneath=beneath))
        else:
            self._confirm(held, pod, shape)

    def _confirm(self, held: AssumedPod, pod: Pod, shape: PodSignature) -> None:
        """The pod is seen on a node: what is assumed of its claims lasts if it is the node decided
        on.
        """
        seen = pod.spec.node_name == held.node and bool(self._book.reserved_by(held))
        if not seen:
            self.assumed.release(held)
        beneath = self._edits.put_pod(pod, pod.key, shape)
        if seen:
            confirmed = replace(held, beneath=beneath, placed=False)
            self._journal.set(self._book.pods, pod.key, confirmed)

    def _put_storage(self, obj: Storage) -> None:
        is_claim = isinstance(obj, PersistentVolumeClaim)
        shelf = self._book.claims if is_claim else self._book.volumes
        reserved = shelf.get(obj.key)
        if isinstance(obj, PersistentVolumeClaim) and obj.spec.volume_name:
            self._let_go_of_others(obj)
        if reserved is None:
            self._edits.put(obj)
        elif self._journal.depth or is_decided(obj):
            self.assumed.lift(reserved)
            self._edits.put(obj)
            self.assumed.close_if_empty(reserved.holder)
        else:
            self._journal.set(shelf, obj.key, replace(reserved, beneath=obj))
            claim = self._cluster.storage.claims[reserved.binding.claim]
            self._edits.put(with_assumption(obj, claim, self._book.pods[reserved.holder].node))

    def _let_go_of_others(self, claim: PersistentVolumeClaim) -> None:
        """A claim that got another volume than was assumed needs that no more."""
        for one in self._book.for_claim(claim.key):
            if one.binding.volume != claim.spec.volume_name:
                self.assumed.give_back(one)

    def _let_go_of(self, kind: Kind, key: str) -> None:
        """End what is assumed of an object that goes."""
        if kind is Pod:
            held = self._book.pods.get(key)
            if held is not None:
                self.assumed.release(held)
        elif kind is PersistentVolume:
            self.assumed.drop(self._book.volumes.get(key))
        elif kind is PersistentVolumeClaim:
            self.assumed.drop(self._book.claims.get(key))
            for one in self._book.for_claim(key):
                self.assumed.give_back(one)


def is_older(version: str, than: str) -> bool:
    """Whether a resourceVersion is older than another; False where one is no number."""
    if not (version.isdecimal() and than.isdecimal()):
        return False
    version, than = version.lstrip("0"), than.lstrip("0")
    return (len(version), version) < (len(than), than)  # of any length, as int() is not
