"""A snapshot that follows a store: what the model says about a simulated cluster at any moment."""

from __future__ import annotations

import logging

from bayplan.embedded.apiserver.errors import qualified
from bayplan.embedded.apiserver.store.entry import Entry, Key
from bayplan.embedded.apiserver.store.journal import Change
from bayplan.embedded.apiserver.store.store import Store
from bayplan.fit import Snapshot
from bayplan.kube.codec import KINDS, Kind, ObjectError, decode_as
from bayplan.kube.pods import Pod

log = logging.getLogger(__name__)

_PLURALS = {
    "Node": "nodes",
    "Pod": "pods",
    "Namespace": "namespaces",
    "Service": "services",
    "ReplicationController": "replicationcontrollers",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "PriorityClass": "priorityclasses",
    "RuntimeClass": "runtimeclasses",
    "StorageClass": "storageclasses",
    "CSINode": "csinodes",
    "CSIDriver": "csidrivers",
    "CSIStorageCapacity": "csistoragecapacities",
    "VolumeAttachment": "volumeattachments",
}
MIRRORED: dict[str, Kind] = {
    qualified(KINDS[name].group, plural): KINDS[name] for name, plural in _PLURALS.items()
}
"""The kinds that the model looks at, by where the server keeps them."""
_ENDED = ("Succeeded", "Failed")


class Mirror:
    """Keeps a snapshot equal to a store."""

    def __init__(self, store: Store) -> None:
        self.snapshot = Snapshot()
        for storage, kind in MIRRORED.items():
            self.snapshot.put_all(
                decode_as(kind, entry.data) for entry in store.list(storage) if not _ended(entry)
            )
        self._store = store
        store.listeners.append(self._observe)

    def pod(self, key: Key) -> Pod | None:
        """A pod as the model knows it."""
        return self.snapshot.get(Pod, f"{key.namespace}/{key.name}")

    def _observe(self, change: Change) -> None:
        entry = change.entry
        kind = MIRRORED.get(entry.key.storage)
        if kind is None:
            return
        if change.deleted or _ended(entry):
            place = f"{entry.key.namespace}/{entry.key.name}".removeprefix("/")
            self.snapshot.observe_gone(kind.type, place)
            return
        try:
            self.snapshot.observe(decode_as(kind, entry.data))
        except ObjectError as problem:
            log.warning("not looked at: %s", problem)


def _ended(entry: Entry) -> bool:
    return entry.key.storage == "pods" and entry.fields.get("status.phase") in _ENDED
