"""Putting any object into a cluster and taking it out again, kind by kind.

Every kind has a shelf: how to find an object, put one (new or changed) and remove one. Putting back
what was there before undoes any change, which is all that forks need. Of a pod that is what was
counted, since its object is not ours alone and may have changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.pods import PodRecord, placed_on
from bayplan.fit.state.workloads import Budgets
from bayplan.fit.store.validation import admit, admit_pod
from bayplan.kube.devices import DeviceClass, ResourceClaim
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.kube.workloads import (
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

Kind = type[KubeObject]
T = TypeVar("T", bound=KubeObject)


@dataclass(frozen=True, slots=True)
class Shelf:
    """How objects of one kind are kept."""

    find: Callable[[str], KubeObject | None]
    put: Callable[[Any], None]
    remove: Callable[[str], object]
    every: Callable[[], Iterable[KubeObject]]
    keep: Callable[[str], object] | None = None
    """What it takes to bring an object back, if not the object."""
    bring_back: Callable[[Any], None] | None = None


class Objects:
    """All objects of a cluster, by kind and key."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.budgets = Budgets()
        self.priority_classes: dict[str, PriorityClass] = {}
        self._namespaces: dict[str, Namespace] = {}
        self._shelves: dict[Kind, Shelf] = {
            Node: Shelf(self._find_node, self._put_node, cluster.remove_node, self._every_node),
            Pod: Shelf(
                self._find_pod,
                self._put_pod,
                cluster.remove_pod,
                self._every_pod,
                cluster.keep_pod,
                cluster.bring_back,
            ),
            CSINode: Shelf(
                cluster.csinodes.get,
                lambda csinode: cluster.set_csinode(csinode.name, csinode),
                lambda name: cluster.set_csinode(name, None),
                cluster.csinodes.values,
            ),
            VolumeAttachment: Shelf(
                cluster.volume_attachments.by_name.get,
                cluster.put_attachment,
                cluster.remove_attachment,
                cluster.volume_attachments.by_name.values,
            ),
            PodDisruptionBudget: Shelf(
                self.budgets.by_key.get,
                self.budgets.put,
                self.budgets.remove,
                self.budgets.by_key.values,
            ),
            PriorityClass: _plain(self.priority_classes),
            ResourceClaim: _plain(cluster.devices.claims),
            DeviceClass: _plain(cluster.devices.classes),
            Namespace: Shelf(
                self._namespaces.get,
                self._put_namespace,
                self._remove_namespace,
                self._namespaces.values,
            ),
            **_storage_shelves(cluster),
            **_workload_shelves(cluster),
        }

    def knows(self, kind: Kind) -> bool:
        """Whether objects of this kind matter here."""
        return kind in self._shelves

    def find(self, kind: Kind, key: str) -> KubeObject | None:
        """The object of a key, if it is there."""
        return self._shelves[kind].find(key)

    def admit(self, obj: T) -> T:
        """The object as it can be put; whatever can be wrong with it is raised here."""
        return admit(obj, self._cluster.shapes)

    def shape(self, pod: Pod) -> PodSignature:
        """A pod's shape; ObjectError if there is something wrong with it."""
        return admit_pod(pod, self._cluster.shapes)

    def keep(self, kind: Kind, key: str) -> object:
        """What `restore` needs to make an object again what it now is; None if it is not there."""
        shelf = self._shelves[kind]
        return (shelf.keep or shelf.find)(key)

    def restore(self, kind: Kind, key: str, kept: object) -> None:
        """Make an object again what it was."""
        shelf = self._shelves[kind]
        if kept is None:
            shelf.remove(key)
        else:
            (shelf.bring_back or shelf.put)(kept)

    def put(self, obj: KubeObject) -> None:
        """Add or replace an object that was admitted."""
        self._shelves[type(obj)].put(obj)

    def remove(self, kind: Kind, key: str) -> None:
        """Remove an object that is there."""
        self._shelves[kind].remove(key)

    def __iter__(self) -> Iterator[KubeObject]:
        for shelf in self._shelves.values():
            yield from shelf.every()

    # -- nodes, pods, namespaces ---------------------------------------------------------------

    def _find_node(self, name: str) -> Node | None:
        return self._cluster.node_named(name)

    def _every_node(self) -> Iterable[Node]:
        return [node for node in self._cluster.nodes if node is not None]

    def _put_node(self, node: Node) -> None:
        if node.name in self._cluster.slots.by_name:
            self._cluster.replace_node(node)
        else:
            self._cluster.add_node(node)

    def _find_pod(self, key: str) -> Pod | None:
        record = self._cluster.pods.by_key.get(key)
        return None if record is None else placed_pod(record)

    def counted_pod(self, key: str) -> Pod | None:
        """A pod as it counts: on the node that it is assumed on, or nominated as was told."""
        pod = self._find_pod(key)
        return None if pod is None else self._cluster.nominations.shown(pod)

    def _every_pod(self) -> Iterable[Pod]:
        told = self._cluster.nominations.shown
        return [told(placed_pod(record)) for record in self._cluster.pods.by_key.values()]

    def _put_pod(self, pod: Pod) -> None:
        self._cluster.put_pod(pod, pod.key, node_of(pod), self.shape(pod))

    def _put_namespace(self, namespace: Namespace) -> None:
        self._namespaces[namespace.name] = namespace
        if self._cluster.namespaces.put(namespace.name, namespace.metadata.labels):
            self._cluster.census.namespace_changed(namespace.name)

    def _remove_namespace(self, name: str) -> None:
        del self._namespaces[name]
        self._cluster.namespaces.remove(name)
        self._cluster.census.namespace_changed(name)


def node_of(pod: Pod) -> str:
    """The node on which a pod uses something, or empty."""
    return "" if pod.is_terminal else pod.spec.node_name


def placed_pod(record: PodRecord) -> Pod:
    """The pod as an object, on the node it is assumed to be on."""
    return record.pod if record.pod.is_terminal else placed_on(record.pod, record.node)


def _plain(shelf: dict[str, Any]) -> Shelf:
    """A kind that is only kept."""

    def put(obj: KubeObject) -> None:
        shelf[obj.key] = obj

    return Shelf(shelf.get, put, lambda key: shelf.pop(key, None), shelf.values)


def _recounting(
    cluster: Cluster, claims: Callable[[str], Iterable[str]], change: Callable[[Any], None]
) -> Callable[[Any], None]:
    """A change after which the pods of some claims may use other volumes."""

    def apply(subject: Any) -> None:
        key = subject if isinstance(subject, str) else subject.key
        records = cluster.recount_claims(list(claims(key)))
        change(subject)
        cluster.count_again(records)

    return apply


def _claim_shelf(cluster: Cluster) -> Shelf:
    storage = cluster.storage
    replace = _recounting(cluster, lambda key: [key], storage.put_claim)
    remove = _recounting(cluster, lambda key: [key], storage.remove_claim)

    def put(claim: PersistentVolumeClaim) -> None:
        if not storage.refresh_claim(claim):
            replace(claim)

    return Shelf(storage.claims.get, put, remove, storage.claims.values)


def _storage_shelves(cluster: Cluster) -> dict[Kind, Shelf]:
    storage = cluster.storage
    of_volume, of_class = storage.claims_of_volume.of, storage.claims_of_class.of
    return {
        PersistentVolumeClaim: _claim_shelf(cluster),
        PersistentVolume: Shelf(
            storage.volumes.get,
            _recounting(cluster, of_volume, cluster.put_volume),
            _recounting(cluster, of_volume, cluster.remove_volume),
            storage.volumes.values,
        ),
        StorageClass: Shelf(
            storage.classes.get,
            _recounting(cluster, of_class, storage.put_class),
            _recounting(cluster, of_class, storage.remove_class),
            storage.classes.values,
        ),
        CSIDriver: Shelf(
            storage.drivers.get, cluster.put_driver, cluster.remove_driver, storage.drivers.values
        ),
        CSIStorageCapacity: Shelf(
            storage.find_capacity,
            storage.put_capacity,
            storage.remove_capacity,
            storage.every_capacity,
        ),
    }


def _workload_shelves(cluster: Cluster) -> dict[Kind, Shelf]:
    workloads = cluster.workloads

    def find_service(key: str) -> Service | None:
        namespace, _, name = key.partition("/")
        return workloads.services.get(namespace, {}).get(name)

    def controllers(kind: Kind) -> Shelf:
        name = kind.__name__
        return Shelf(
            lambda key: workloads.controllers.get((name, key)),
            workloads.put_controller,
            lambda key: workloads.remove_controller(name, key),
            lambda: [c for c in workloads.controllers.values() if type(c) is kind],
        )

    return {
        Service: Shelf(
            find_service,
            workloads.put_service,
            workloads.remove_service,
            lambda: [s for services in workloads.services.values() for s in services.values()],
        ),
        **{kind: controllers(kind) for kind in (ReplicaSet, ReplicationController, StatefulSet)},
    }
