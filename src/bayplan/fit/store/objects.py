"""The objects of a cluster, read by kind and key; every edit notes how to undo it.

Reading gives pods on the node they are assumed to be on, and copies of what a caller could change.
Edits go to the cluster's state by the handler of their kind (`kinds`), or, for pods, with the
signature they are counted by. While a fork is open the journal keeps the way back of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from bayplan.fit.object_copies import private_copy
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.pods import NO_SLOT, PodRecord, node_of, placed_pod
from bayplan.fit.state.workloads import DisruptionBudgets
from bayplan.fit.store.journal import ForkJournal
from bayplan.fit.store.kinds import Kind, kind_handlers
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import PriorityClass

T = TypeVar("T", bound=KubeObject)


class JournaledObjects:
    """The objects of a cluster, with edits that can be undone."""

    def __init__(self, cluster: ClusterState) -> None:
        self.cluster = cluster
        self.budgets = DisruptionBudgets()
        """All disruption budgets; to be read, not written."""
        self._priority_classes: dict[str, PriorityClass] = {}
        self._kinds = kind_handlers(cluster, self.budgets, self._priority_classes)
        self._journal = ForkJournal()

    # -- reading -------------------------------------------------------------------------------

    def get(self, kind: type[T], key: str) -> T | None:
        """An object by its kind and key; a pod is shown on the node it is assumed to be on."""
        found = self._find(kind, key) if kind in self._kinds else None
        if not isinstance(found, kind):
            return None
        return found if kind is Pod else private_copy(found)

    def counted_pod(self, key: str) -> Pod | None:
        """A pod as it counts: on the node that it is assumed to be on, or nominated for the node
        that is kept for it, whatever has been observed of it.
        """
        record = self.cluster.pods.by_key.get(key)
        return (
            None if record is None else self.cluster.nominations.with_nomination(placed_pod(record))
        )

    def objects(self) -> Iterator[KubeObject]:
        """All objects, as they would have to be put to get this snapshot again."""
        shared = self.shared_objects()
        return (one if isinstance(one, Pod) else private_copy(one) for one in shared)

    def shared_objects(self) -> Iterator[KubeObject]:
        """The same without copies, for a caller that changes nothing."""
        return (one for handler in self._kinds.values() for one in handler.every())

    def pods_on(self, node: str) -> list[Pod]:
        """The pods on a node, assumed ones too."""
        return [placed_pod(record) for record in self.cluster.pods.by_node.get(node, {}).values()]

    def priority(self, pod: Pod) -> int:
        """A pod's priority: its own, or that of its class, or the default class's."""
        if pod.spec.priority is not None:
            return pod.spec.priority
        return self.class_priority(pod.spec.priority_class_name)

    def class_priority(self, name: str) -> int:
        """The value of a priority class; without a name, the default class's."""
        classes = self._priority_classes
        if not classes:
            return 0
        named = classes.get(name)
        if named is None and not name:
            return min((one.value for one in classes.values() if one.global_default), default=0)
        return named.value if named else 0

    def _find(self, kind: Kind, key: str) -> KubeObject | None:
        return self._kinds[kind].find(key)

    # -- edits, each with the way back ---------------------------------------------------------

    def _write(self, obj: KubeObject) -> None:
        """Add or replace a valid object that is no pod."""
        kind = type(obj)
        self._note(kind, obj.key)
        self._kinds[kind].put(obj)

    def _erase(self, kind: Kind, key: str) -> None:
        """Remove an object, if it is there."""
        if self._find(kind, key) is not None:
            self._note(kind, key)
            self._kinds[kind].remove(key)

    def _write_pod(
        self, pod: Pod, key: str, signature: PodSignature, node: str | None = None
    ) -> PodRecord:
        """Add or replace a pod, on a node (by default its own); return its record."""
        if self._journal.depth:
            self._note(Pod, key)
        return self.cluster.put_pod(pod, key, node_of(pod) if node is None else node, signature)

    def _add_pod(self, pod: Pod, key: str, node: str, signature: PodSignature) -> None:
        """Add a pod that is not there yet, on a node."""
        self.cluster.add_pod(pod, key, node, signature)
        self._journal.note(self.cluster.remove_pod, key)

    def _restore_pod(self, record: PodRecord) -> None:
        """Make a pod again what it was on record."""
        self._note(Pod, record.key)
        self.cluster.restore_pod((record, record.pod))

    def _move_pod(self, record: PodRecord, node: str) -> None:
        """Move a pod to a node, or (empty) off its own."""
        self._journal.note(self._move_back, record.key, record.node)
        self.cluster.move_pod(record, node)

    def _move_back(self, key: str, node: str) -> None:
        self.cluster.move_pod(self.cluster.pods.by_key[key], node)

    def _uncount_pods(self, node: str) -> None:
        """Stop counting the pods of a node."""
        records = self.cluster.records_on(node)
        self._journal.note(self._count_again, node, records)
        self.cluster.uncount_all(records)

    def _count_again(self, node: str, records: list[PodRecord]) -> None:
        """Count the pods of a node again, but those that are counted by now: they were moved, and
        moved back. All are in the order that they were in.
        """
        self.cluster.count_all([record for record in records if record.slot == NO_SLOT])
        self.cluster.pods.reorder(node, records)

    def _set_nomination(self, key: str, node: str | None) -> None:
        """Nominate a pod for a node (empty: for none) whatever its status; None ends that."""
        before = self.cluster.nominations.by_scheduler.get(key)
        self._journal.note(self.cluster.nominate, key, before)
        self.cluster.nominate(key, node)

    def _note(self, kind: Kind, key: str) -> None:
        if not self._journal.depth:
            return
        handler = self._kinds[kind]
        kept = (handler.keep or handler.find)(key)
        if kept is None:
            self._journal.note(handler.remove, key)
        else:
            self._journal.note(handler.put, kept)
