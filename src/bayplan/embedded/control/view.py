"""The controllers' view of the store: objects decoded lazily, with some indexes.

Returned objects are shared and must not be changed; use an `Update`. Every iteration is sorted, so
that the same history leads to the same decisions.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TypeAlias

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey, StoreEntry
from bayplan.embedded.apiserver.store.store import ApiObjectStore
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.facts import AttachmentFacts, PodFacts, read_attachment, read_pod
from bayplan.kube.kinds import names_of

PODS = names_of("Pod").resource
NODES = names_of("Node").resource
LEASES = names_of("Lease").resource
CSI_NODES = names_of("CSINode").resource
CSI_DRIVERS = names_of("CSIDriver").resource
ATTACHMENTS = names_of("VolumeAttachment").resource
CLASSES = names_of("StorageClass").resource
CLAIMS = names_of("PersistentVolumeClaim").resource
VOLUMES = names_of("PersistentVolume").resource
EVENTS = names_of("Event").resource
CONFIG_MAPS = names_of("ConfigMap").resource
DEPLOYMENTS = names_of("Deployment").resource
REPLICA_SETS = names_of("ReplicaSet").resource
STATEFUL_SETS = names_of("StatefulSet").resource
DAEMON_SETS = names_of("DaemonSet").resource
JOBS = names_of("Job").resource
BUDGETS = names_of("PodDisruptionBudget").resource


IndexKey: TypeAlias = tuple[str, ...]
"""Index key of pods: ("node", name), ("claim", namespace, name), …"""
_DECODED = 2048
"""Limit of decoded objects; dropping all at once is cheaper than tracking their use."""


class StoreView:
    """The current objects of the cluster."""

    def __init__(self, store: ApiObjectStore) -> None:
        self.store = store
        self.pods: dict[ObjectKey, PodFacts] = {}
        self.attachments: dict[str, AttachmentFacts] = {}
        self._places: dict[IndexKey, set[ObjectKey]] = defaultdict(set)
        self._order: dict[IndexKey, list[ObjectKey]] = {}
        """The sorted keys of an index key, cached until they change."""
        self._attached_to: dict[str, set[str]] = defaultdict(set)
        self._attached: dict[str, set[str]] = defaultdict(set)
        self._decoded: dict[ObjectKey, tuple[int, JsonObject]] = {}
        for storage in (PODS, ATTACHMENTS):
            for entry in store.list(storage):
                self.observe(WatchCacheEvent(entry, None, deleted=False))
        store.listeners.append(self.observe)

    def observe(self, change: WatchCacheEvent) -> None:
        """Update the indexes."""
        key = change.entry.key
        if change.deleted:
            self._decoded.pop(key, None)
        if key.storage == PODS:
            self._observe_pod(key, change)
        elif key.storage == ATTACHMENTS:
            self._observe_attachment(key.name, change)

    def get(self, storage: str, namespace: str, name: str) -> JsonObject | None:
        """Return an object, read-only, or None."""
        return self.object(ObjectKey(storage, namespace, name))

    def object(self, key: ObjectKey) -> JsonObject | None:
        """Return the object of a key, read-only, or None."""
        entry = self.store.get(key)
        return None if entry is None else self._decode(entry)

    def all(self, storage: str) -> list[JsonObject]:
        """Return all objects of a resource, sorted."""
        return [self._decode(entry) for entry in self.store.list(storage)]

    def pods_on(self, node: str) -> list[tuple[ObjectKey, PodFacts]]:
        """Return the pods on a node, sorted."""
        return self._sorted(("node", node))

    def count_on(self, node: str) -> int:
        """Return the number of pods on a node, including terminal ones."""
        return len(self._places.get(("node", node), ()))

    def pods_using(self, namespace: str, claim: str) -> list[tuple[ObjectKey, PodFacts]]:
        """Return the pods that use a claim, sorted."""
        return self._sorted(("claim", namespace, claim))

    def pods_in(self, namespace: str) -> list[tuple[ObjectKey, PodFacts]]:
        """Return the pods of a namespace, sorted."""
        return self._sorted(("namespace", namespace))

    def pods_of(self, uid: str) -> list[tuple[ObjectKey, PodFacts]]:
        """Return the pods of a controller, sorted."""
        return self._sorted(("owner", uid))

    def attachments_on(self, node: str) -> list[AttachmentFacts]:
        """Return the attachments to a node, sorted."""
        return [self.attachments[name] for name in sorted(self._attached_to.get(node, ()))]

    def attachments_of(self, volume: str) -> list[AttachmentFacts]:
        """Return the attachments of a volume, sorted."""
        return [self.attachments[name] for name in sorted(self._attached.get(volume, ()))]

    def _sorted(self, place: IndexKey) -> list[tuple[ObjectKey, PodFacts]]:
        order = self._order.get(place)
        if order is None:
            order = sorted(self._places.get(place, ()))
            if order:
                self._order[place] = order
        pods = self.pods
        return [(key, pods[key]) for key in order]

    def _decode(self, entry: StoreEntry) -> JsonObject:
        found = self._decoded.get(entry.key)
        if found is None or found[0] != entry.revision:
            if len(self._decoded) >= _DECODED:
                self._decoded.clear()
            found = self._decoded[entry.key] = (entry.revision, entry.object())
        return found[1]

    def _observe_pod(self, key: ObjectKey, change: WatchCacheEvent) -> None:
        before = self.pods.pop(key, None)
        after = None if change.deleted else read_pod(change.entry.data)
        if before is not None and after is not None and before.uid == after.uid:
            self._move(key, before.node, after.node)
        else:
            self._replace(key, before, after)
        if after is not None:
            self.pods[key] = after

    def _move(self, key: ObjectKey, before: str, after: str) -> None:
        """Update the index of a changed pod: only its node can change."""
        if before != after:
            self._drop(key, ("node", before))
            self._put(key, ("node", after))

    def _replace(self, key: ObjectKey, before: PodFacts | None, after: PodFacts | None) -> None:
        for place in _places(before) if before is not None else ():
            self._drop(key, place)
        for place in _places(after) if after is not None else ():
            self._put(key, place)

    def _put(self, key: ObjectKey, place: IndexKey) -> None:
        self._places[place].add(key)
        self._order.pop(place, None)

    def _drop(self, key: ObjectKey, place: IndexKey) -> None:
        self._order.pop(place, None)
        keys = self._places[place]
        keys.discard(key)
        if not keys:
            del self._places[place]

    def _observe_attachment(self, name: str, change: WatchCacheEvent) -> None:
        before = self.attachments.pop(name, None)
        if before is not None:
            self._attached_to[before.spec.node_name].discard(name)
            self._attached[before.volume].discard(name)
        if not change.deleted:
            after = self.attachments[name] = read_attachment(change.entry.data)
            self._attached_to[after.spec.node_name].add(name)
            self._attached[after.volume].add(name)


def _places(pod: PodFacts) -> list[IndexKey]:
    """Return the index keys of a pod."""
    namespace, owner = pod.metadata.namespace, pod.controller
    places: list[IndexKey] = [("namespace", namespace), ("node", pod.node)]
    if owner is not None:
        places.append(("owner", owner.uid))
    return places + [("claim", namespace, claim) for claim in pod.claims]
