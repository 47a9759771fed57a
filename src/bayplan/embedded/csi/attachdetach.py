"""What pods on a node need is to be attached, what none needs is to be detached.

Keyed by node: the volumes of its pods that have not ended are compared with its VolumeAttachments.
A volume that only one node may write to, and that another still has, waits for that one. The
attachments of a node that is gone go too. Whether the cloud does it is the attacher's business.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import (
    Controller,
    Create,
    Delete,
    Plan,
    RequeueAfter,
    Stage,
    Tell,
)
from bayplan.embedded.control.facts import AttachmentFacts, read_attachment
from bayplan.embedded.control.storages import ATTACHMENTS, CLAIMS, NODES, PODS, VOLUMES
from bayplan.embedded.csi.drivers import Driver
from bayplan.embedded.csi.volumes import Volumes

MULTI_ATTACH_SECONDS = 10.0
_SOURCE = "attachdetach-controller"
_SHARED = ("ReadWriteMany", "ReadOnlyMany")


class AttachDetach(Controller[str]):
    """Keyed by node."""

    name = "attach-detach"
    storages = (PODS, CLAIMS, NODES, ATTACHMENTS)

    def __init__(self, stage: Stage, volumes: Volumes) -> None:
        self._stage = stage
        self._volumes = volumes

    def notice(self, change: Change) -> Iterable[str]:
        """Nodes whose pods with claims come or end, whose claims were bound, or that are gone."""
        key = change.entry.key
        if key.storage == NODES:
            return (key.name,) if change.deleted else ()
        if key.storage == ATTACHMENTS:
            return self._released(change)
        if key.storage == PODS:
            return self._pod_node(change)
        users = self._stage.view.pods_using(key.namespace, key.name)
        return sorted({pod.node for _, pod in users if pod.node})

    def _pod_node(self, change: Change) -> Iterable[str]:
        node = change.entry.fields.get("spec.nodeName", "")
        if not node or _same(change):
            return ()
        volumes = change.entry.object()["spec"].get("volumes") or ()
        claims = any("persistentVolumeClaim" in one or "ephemeral" in one for one in volumes)
        return (node,) if claims else ()

    def _released(self, change: Change) -> Iterable[str]:
        """Whoever waits for a volume that was detached elsewhere."""
        if not change.deleted:
            return ()
        volume = read_attachment(change.entry.data).volume
        pods = (self._stage.view.pods[key] for key in self._volumes.users(volume))
        return sorted({pod.node for pod in pods if pod.node})

    def decide(self, key: str) -> Plan:
        """Compare what is needed with what there is."""
        present = {one.volume: one for one in self._stage.view.attachments_on(key)}
        if self._stage.view.get(NODES, "", key) is None:
            return [_detach(one) for one in present.values()]
        needed = self._needed(key)
        plan: Plan = [
            _detach(one)
            for volume, one in present.items()
            if volume not in needed and not one.metadata.deletion_timestamp
        ]
        for volume, driver in sorted(needed.items(), key=lambda item: item[0]):
            if volume not in present:
                plan += self._attach(key, volume, driver)
        return plan

    def _needed(self, node: str) -> dict[str, Driver]:
        needed: dict[str, Driver] = {}
        for _, pod in self._stage.view.pods_on(node):
            if pod.spec.volumes and not pod.terminal:
                needed |= self._volumes.needed(pod)
        return needed

    def _attach(self, node: str, volume: str, driver: Driver) -> Plan:
        holders = [one.spec.node_name for one in self._stage.view.attachments_of(volume)]
        if holders and not self._shared(volume):
            return [*self._tell_waiting(node, volume, holders), RequeueAfter(MULTI_ATTACH_SECONDS)]
        return [Create(ATTACHMENTS, attachment_object(volume, driver.name, node))]

    def _shared(self, volume: str) -> bool:
        found = self._stage.view.get(VOLUMES, "", volume) or {"spec": {}}
        return any(mode in _SHARED for mode in found["spec"].get("accessModes") or ())

    def _tell_waiting(self, node: str, volume: str, holders: list[str]) -> Plan:
        said = (
            f'Multi-Attach error for volume "{volume}" Volume is already exclusively attached to '
            f"node {holders[0]} and can't be attached to another"
        )
        return [
            Tell(key, "FailedAttachVolume", said, "Warning", _SOURCE)
            for key, pod in self._stage.view.pods_on(node)
            if volume in self._volumes.needed(pod)
        ]


def attachment_object(volume: str, driver: str, node: str) -> JsonObject:
    """The VolumeAttachment of a volume to a node, named as Kubernetes names it."""
    digest = hashlib.sha256(f"{volume}{driver}{node}".encode()).hexdigest()
    return {
        "metadata": {"name": f"csi-{digest}", "finalizers": [f"external-attacher/{driver}"]},
        "spec": {
            "attacher": driver,
            "nodeName": node,
            "source": {"persistentVolumeName": volume},
        },
    }


def _detach(one: AttachmentFacts) -> Delete:
    return Delete(Key(ATTACHMENTS, "", one.metadata.name), one.metadata.uid)


def _same(change: Change) -> bool:
    """Whether a change of a pod means nothing to its volumes."""
    before, after = change.previous, change.entry
    return (
        before is not None
        and not change.deleted
        and before.fields.get("spec.nodeName") == after.fields.get("spec.nodeName")
        and before.fields.get("status.phase") == after.fields.get("status.phase")
    )
