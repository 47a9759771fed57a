"""Protection of claims and volumes in use, and the reclaim policy of released volumes.

The server adds a protection finalizer to each. It is removed from a deleted claim once no bound pod
uses it, and from a deleted volume once it is not bound to a claim.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import (
    Controller,
    ControllerContext,
    Delete,
    Edit,
    Plan,
    Update,
)
from bayplan.embedded.control.facts import read_attachment, read_pod
from bayplan.embedded.control.view import ATTACHMENTS, CLAIMS, PODS, VOLUMES
from bayplan.embedded.csi.volumes import with_phase

_FINALIZERS = {
    CLAIMS: "kubernetes.io/pvc-protection",
    VOLUMES: "kubernetes.io/pv-protection",
}


class StorageProtection(Controller[ObjectKey]):
    """Removes protection finalizers; keyed by claim or volume."""

    name = "volume-protection"
    storages = (CLAIMS, VOLUMES, PODS)

    def __init__(self, context: ControllerContext) -> None:
        self._view = context.view

    def notice(self, change: WatchCacheEvent) -> Iterable[ObjectKey]:
        """Return deleted claims and volumes, and the claims of deleted pods."""
        entry = change.entry
        if entry.key.storage != PODS:
            return (entry.key,) if entry.is_terminating and not change.deleted else ()
        if not change.deleted:
            return ()
        return [
            ObjectKey(CLAIMS, entry.key.namespace, claim) for claim in read_pod(entry.data).claims
        ]

    def decide(self, key: ObjectKey) -> Plan:
        """Remove the finalizer of an object that is not in use."""
        obj, finalizer = self._view.object(key), _FINALIZERS[key.storage]
        meta = obj["metadata"] if obj is not None else {}
        if "deletionTimestamp" not in meta or finalizer not in meta.get("finalizers", ()):
            return []
        return [] if self._is_needed(key, obj or {}) else [Update(key, _without(finalizer))]

    def _is_needed(self, key: ObjectKey, obj: JsonObject) -> bool:
        if key.storage == VOLUMES:
            return bool((obj.get("status") or {}).get("phase") == "Bound")
        return any(pod.node for _, pod in self._view.pods_using(key.namespace, key.name))


def _without(finalizer: str) -> Edit:
    def edit(obj: JsonObject) -> JsonObject:
        meta = obj["metadata"]
        meta["finalizers"] = [one for one in meta.get("finalizers") or () if one != finalizer]
        return obj

    return edit


class VolumeReclaim(Controller[str]):
    """Releases or deletes volumes; keyed by volume."""

    name = "volume-reclaim"
    storages = (CLAIMS, VOLUMES, ATTACHMENTS)

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def notice(self, change: WatchCacheEvent) -> Iterable[str]:
        """Return new volumes, and those of deleted claims or attachments."""
        key = change.entry.key
        if key.storage == VOLUMES:
            return (key.name,) if change.previous is None else ()
        if not change.deleted:
            return ()
        if key.storage == CLAIMS:
            name = change.entry.object()["spec"].get("volumeName")
        else:
            name = read_attachment(change.entry.data).volume
        return (name,) if name else ()

    def decide(self, key: str) -> Plan:
        """Release or delete a volume whose claim is deleted."""
        volume = self._context.view.get(VOLUMES, "", key)
        if volume is None:
            return []
        reference = volume["spec"].get("claimRef")
        if not reference:
            return _show(volume, "Available")
        claim = self._context.view.get(CLAIMS, reference.get("namespace", ""), reference["name"])
        if claim is not None and reference.get("uid") in (None, "", claim["metadata"]["uid"]):
            return []
        if not reference.get("uid"):
            return []
        return self._reclaim(key, volume)

    def _reclaim(self, key: str, volume: JsonObject) -> Plan:
        released = _show(volume, "Released")
        kept = volume["spec"].get("persistentVolumeReclaimPolicy") != "Delete"
        if kept or self._context.view.attachments_of(key):
            return released
        return [*released, Delete(ObjectKey(VOLUMES, "", key), volume["metadata"]["uid"])]


def _show(volume: JsonObject, phase: str) -> Plan:
    if (volume.get("status") or {}).get("phase") == phase:
        return []
    return [Update(ObjectKey(VOLUMES, "", volume["metadata"]["name"]), with_phase(phase), "status")]
