"""Changes to what a cluster holds, each with its way back noted while a fork is open."""

from __future__ import annotations

from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.pods import NO_SLOT, PodRecord
from bayplan.fit.store.journal import Journal
from bayplan.fit.store.objects import Kind, Objects, node_of
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod


class Edits:
    """Objects put and removed, pods moved, nodes kept for pods."""

    def __init__(self, cluster: Cluster, journal: Journal) -> None:
        self._cluster = cluster
        self.journal = journal
        self.objects = Objects(cluster)

    def put(self, obj: KubeObject) -> None:
        """Put an object that was admitted."""
        self._note(type(obj), obj.key)
        self.objects.put(obj)

    def remove(self, kind: Kind, key: str) -> None:
        """Remove an object, if it is there."""
        if self.objects.find(kind, key) is not None:
            self._note(kind, key)
            self.objects.remove(kind, key)

    def put_pod(
        self, pod: Pod, key: str, shape: PodSignature, node: str | None = None
    ) -> PodRecord:
        """Put a pod of this key and shape on a node (unless said, its own); returns its record."""
        if self.journal.depth:
            self._note(Pod, key)
        if node is None:
            node = node_of(pod)
        return self._cluster.put_pod(pod, key, node, shape)

    def add_pod(self, pod: Pod, key: str, node: str, shape: PodSignature) -> None:
        """Put a pod of this key and shape, which is not there yet, on a node."""
        self._cluster.add_pod(pod, key, node, shape)
        self.journal.note(self._cluster.remove_pod, key)

    def bring_back(self, record: PodRecord) -> None:
        """Make a pod again what it was on record."""
        self._note(Pod, record.key)
        self._cluster.bring_back((record, record.pod))

    def move(self, record: PodRecord, node: str) -> None:
        """Move a pod to a node, or (empty) off its own."""
        self.journal.note(self._move_back, record.key, record.node)
        self._cluster.move_pod(record, node)

    def uncount_pods(self, node: str) -> None:
        """Stop counting the pods of a node."""
        records = self._cluster.records_on(node)
        self.journal.note(self._count_again, node, records)
        self._cluster.uncount_all(records)

    def tell(self, key: str, node: str | None) -> None:
        """Keep a node (or, empty, none) for a pod whatever its status says; None ends that."""
        told = self._cluster.nominations.told.get(key)
        self.journal.note(self._cluster.nominate, key, told)
        self._cluster.nominate(key, node)

    def _note(self, kind: Kind, key: str) -> None:
        if self.journal.depth:
            kept = self.objects.keep(kind, key)
            self.journal.note(self.objects.restore, kind, key, kept)

    def _count_again(self, node: str, records: list[PodRecord]) -> None:
        """Count the pods of a node again, but those that are counted by now: they were moved, and
        moved back. All are in the order that they were in.
        """
        self._cluster.count_all([record for record in records if record.slot == NO_SLOT])
        self._cluster.pods.reorder(node, records)

    def _move_back(self, key: str, node: str) -> None:
        self._cluster.move_pod(self._cluster.pods.by_key[key], node)
