"""Volumes whose claims are gone: kept as Released, or deleted once they are detached."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import Controller, Delete, Plan, Stage, Update
from bayplan.embedded.control.facts import read_attachment
from bayplan.embedded.control.storages import ATTACHMENTS, CLAIMS, VOLUMES
from bayplan.embedded.csi.claims import with_phase


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
