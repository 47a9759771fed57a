"""How objects of each kind are kept in a cluster's state: found, put, removed and listed.

Putting back what was there before undoes any change, which is all that forks need. Of a pod that is
what was counted, since its object is not ours alone and may have changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.pods import placed_pod
from bayplan.fit.state.workloads import DisruptionBudgets
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


@dataclass(frozen=True, slots=True)
class KindHandler:
    """How objects of one kind are kept."""

    find: Callable[[str], KubeObject | None]
    put: Callable[[Any], object]
    """Add or replace an object, or bring back what `keep` gave."""
    remove: Callable[[str], object]
    every: Callable[[], Iterable[KubeObject]]
    keep: Callable[[str], object] | None = None
    """What it takes to bring an object back, if not the object."""


def kind_handlers(
    cluster: ClusterState, budgets: DisruptionBudgets, priority_classes: dict[str, PriorityClass]
) -> dict[Kind, KindHandler]:
    """The handlers of all kinds that matter to scheduling."""
    return {
        Node: _node_handler(cluster),
        Pod: _pod_handler(cluster),
        CSINode: KindHandler(
            cluster.csinodes.get,
            lambda csinode: cluster.set_csinode(csinode.name, csinode),
            lambda name: cluster.set_csinode(name, None),
            cluster.csinodes.values,
        ),
        VolumeAttachment: KindHandler(
            cluster.volume_attachments.by_name.get,
            cluster.put_attachment,
            cluster.remove_attachment,
            cluster.volume_attachments.by_name.values,
        ),
        PodDisruptionBudget: KindHandler(
            budgets.by_key.get, budgets.put, budgets.remove, budgets.by_key.values
        ),
        PriorityClass: _plain(priority_classes),
        ResourceClaim: _plain(cluster.devices.claims),
        DeviceClass: _plain(cluster.devices.classes),
        Namespace: _namespace_handler(cluster),
        **_storage_handlers(cluster),
        **_workload_handlers(cluster),
    }


def _plain(objects: dict[str, Any]) -> KindHandler:
    """A kind of which nothing is counted."""

    def put(obj: KubeObject) -> None:
        objects[obj.key] = obj

    return KindHandler(objects.get, put, lambda key: objects.pop(key, None), objects.values)


def _node_handler(cluster: ClusterState) -> KindHandler:
    def put(node: Node) -> None:
        if node.name in cluster.slots.by_name:
            cluster.replace_node(node)
        else:
            cluster.add_node(node)

    return KindHandler(
        cluster.node_named,
        put,
        cluster.remove_node,
        lambda: [node for node in cluster.nodes if node is not None],
    )


def _pod_handler(cluster: ClusterState) -> KindHandler:
    records = cluster.pods.by_key

    def find(key: str) -> Pod | None:
        record = records.get(key)
        return None if record is None else placed_pod(record)

    def every() -> list[Pod]:
        return [
            cluster.nominations.with_nomination(placed_pod(record)) for record in records.values()
        ]

    return KindHandler(find, cluster.restore_pod, cluster.remove_pod, every, cluster.keep_pod)


def _namespace_handler(cluster: ClusterState) -> KindHandler:
    namespaces: dict[str, Namespace] = {}

    def put(namespace: Namespace) -> None:
        namespaces[namespace.name] = namespace
        if cluster.namespaces.put(namespace.name, namespace.metadata.labels):
            cluster.pod_counts.namespace_changed(namespace.name)

    def remove(name: str) -> None:
        del namespaces[name]
        cluster.namespaces.remove(name)
        cluster.pod_counts.namespace_changed(name)

    return KindHandler(namespaces.get, put, remove, namespaces.values)


def _recounting(
    cluster: ClusterState, claims: Callable[[str], Iterable[str]], change: Callable[[Any], None]
) -> Callable[[Any], None]:
    """A change after which the pods of some claims may use other volumes."""

    def apply(subject: Any) -> None:
        key = subject if isinstance(subject, str) else subject.key
        records = cluster.recount_claims(list(claims(key)))
        change(subject)
        cluster.count_again(records)

    return apply


def _claim_handler(cluster: ClusterState) -> KindHandler:
    storage = cluster.storage
    replace = _recounting(cluster, lambda key: [key], storage.put_claim)
    remove = _recounting(cluster, lambda key: [key], storage.remove_claim)

    def put(claim: PersistentVolumeClaim) -> None:
        if not storage.refresh_claim(claim):
            replace(claim)

    return KindHandler(storage.claims.get, put, remove, storage.claims.values)


def _storage_handlers(cluster: ClusterState) -> dict[Kind, KindHandler]:
    storage = cluster.storage
    of_volume, of_class = storage.claims_of_volume.of, storage.claims_of_class.of
    return {
        PersistentVolumeClaim: _claim_handler(cluster),
        PersistentVolume: KindHandler(
            storage.volumes.get,
            _recounting(cluster, of_volume, cluster.put_volume),
            _recounting(cluster, of_volume, cluster.remove_volume),
            storage.volumes.values,
        ),
        StorageClass: KindHandler(
            storage.classes.get,
            _recounting(cluster, of_class, storage.put_class),
            _recounting(cluster, of_class, storage.remove_class),
            storage.classes.values,
        ),
        CSIDriver: KindHandler(
            storage.drivers.get, cluster.put_driver, cluster.remove_driver, storage.drivers.values
        ),
        CSIStorageCapacity: KindHandler(
            storage.find_capacity,
            storage.put_capacity,
            storage.remove_capacity,
            storage.every_capacity,
        ),
    }


def _workload_handlers(cluster: ClusterState) -> dict[Kind, KindHandler]:
    workloads = cluster.workloads

    def find_service(key: str) -> Service | None:
        namespace, _, name = key.partition("/")
        return workloads.services.get(namespace, {}).get(name)

    def controllers(kind: Kind) -> KindHandler:
        name = kind.__name__
        return KindHandler(
            lambda key: workloads.controllers.get((name, key)),
            workloads.put_controller,
            lambda key: workloads.remove_controller(name, key),
            lambda: [c for c in workloads.controllers.values() if type(c) is kind],
        )

    return {
        Service: KindHandler(
            find_service,
            workloads.put_service,
            workloads.remove_service,
            lambda: [s for services in workloads.services.values() for s in services.values()],
        ),
        **{kind: controllers(kind) for kind in (ReplicaSet, ReplicationController, StatefulSet)},
    }
