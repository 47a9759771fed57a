"""Claims and volumes that are deleted stay while they are needed; released ones are reclaimed.

The server gives each a finalizer when it is made. It comes off a claim that is being deleted once
no pod that has a node names it, and off a volume once it is bound to no claim.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import Controller, Delete, Edit, Plan, Stage, Update
from bayplan.embedded.control.facts import read_attachment, read_pod
from bayplan.embedded.control.view import ATTACHMENTS, CLAIMS, PODS, VOLUMES
from bayplan.embedded.csi.volumes import with_phase

_FINALIZERS = {
    CLAIMS: "kubernetes.io/pvc-protection",
    VOLUMES: "kubernetes.io/pv-protection",
}


class Protection(Controller[Key]):
    """Keyed by claim or volume."""

    name = "volume-protection"
    storages = (CLAIMS, VOLUMES, PODS)

    def __init__(self, stage: Stage) -> None:
        self._view = stage.view

    def notice(self, change: Change) -> Iterable[Key]:
        """What is being deleted, and what pods that are gone have used."""
        entry = change.entry
        if entry.key.storage != PODS:
            return (entry.key,) if entry.deleting and not change.deleted else ()
        if not change.deleted:
            return ()
        return [Key(CLAIMS, entry.key.namespace, claim) for claim in read_pod(entry.data).claims]

    def decide(self, key: Key) -> Plan:
        """Let go of what nobody needs."""
        obj, finalizer = self._view.object(key), _FINALIZERS[key.storage]
        meta = obj["metadata"] if obj is not None else {}
        if "deletionTimestamp" not in meta or finalizer not in meta.get("finalizers", ()):
            return []
        return [] if self._is_needed(key, obj or {}) else [Update(key, _without(finalizer))]

    def _is_needed(self, key: Key, obj: JsonObject) -> bool:
        if key.storage == VOLUMES:
            return bool((obj.get("status") or {}).get("phase") == "Bound")
        return any(pod.node for _, pod in self._view.pods_using(key.namespace, key.name))


def _without(finalizer: str) -> Edit:
    def edit(obj: JsonObject) -> JsonObject:
        meta = obj["metadata"]
        meta["finalizers"] = [one for one in meta.get("finalizers") or () if one != finalizer]
        return obj

    return edit


class Reclaim(Controller[str]):
    """Keyed by volume."""

    name = "volume-reclaim"
    storages = (CLAIMS, VOLUMES, ATTACHMENTS)

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def notice(self, change: Change) -> Iterable[str]:
        """Volumes of claims or attachments that are gone, and new volumes."""
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
        """Release or delete a volume whose claim is gone."""
        volume = self._stage.view.get(VOLUMES, "", key)
        if volume is None:
            return []
        reference = volume["spec"].get("claimRef")
        if not reference:
            return _show(volume, "Available")
        claim = self._stage.view.get(CLAIMS, reference.get("namespace", ""), reference["name"])
        if claim is not None and reference.get("uid") in (None, "", claim["metadata"]["uid"]):
            return []
        if not reference.get("uid"):
            return []
        return self._reclaim(key, volume)

    def _reclaim(self, key: str, volume: JsonObject) -> Plan:
        released = _show(volume, "Released")
        kept = volume["spec"].get("persistentVolumeReclaimPolicy") != "Delete"
        if kept or self._stage.view.attachments_of(key):
            return released
        return [*released, Delete(Key(VOLUMES, "", key), volume["metadata"]["uid"])]


def _show(volume: JsonObject, phase: str) -> Plan:
    if (volume.get("status") or {}).get("phase") == phase:
        return []
    return [Update(Key(VOLUMES, "", volume["metadata"]["name"]), with_phase(phase), "status")]
