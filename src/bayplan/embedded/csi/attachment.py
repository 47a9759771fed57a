"""What pods on a node need is attached, what none needs is detached; the cloud may refuse.

Keyed by node: the volumes of its pods that have not ended are compared with its VolumeAttachments.
A volume that only one node may write to, and that another still has, waits for that one. The
attachments of a node that is gone go too. Whether the cloud does it is the attacher's business.

It refuses when the machine's real limit is reached, whatever CSINode claims: the attachment carries
the error, the pods get FailedAttachVolume, and it is tried again with growing pauses. A finalizer
keeps an attachment that is being deleted until the cloud has let the volume go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import (
    Controller,
    Create,
    Delete,
    Edit,
    Plan,
    RequeueAfter,
    Stage,
    Tell,
    Update,
)
from bayplan.embedded.control.facts import AttachmentFacts, read_attachment
from bayplan.embedded.control.view import ATTACHMENTS, CLAIMS, NODES, PODS, VOLUMES
from bayplan.embedded.csi.volumes import Driver, Volumes
from bayplan.embedded.nodes.fleet import Fleet

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


MOST_PAUSE = 120.0
STUCK_SECONDS = 30.0


class Attacher(Controller[str]):
    """Keyed by VolumeAttachment."""

    name = "csi-attacher"
    storages = (ATTACHMENTS,)

    def __init__(
        self, stage: Stage, fleet: Fleet, volumes: Volumes, drivers: Mapping[str, Driver]
    ) -> None:
        self._stage = stage
        self._fleet = fleet
        self._volumes = volumes
        self._drivers = drivers
        self._due: dict[str, float] = {}
        self._tries: dict[str, int] = {}

    def notice(self, change: Change) -> Iterable[str]:
        """Every attachment; and, when one goes, those that were refused on the same node."""
        name = change.entry.key.name
        if not change.deleted:
            return (name,)
        self._tries.pop(name, None)
        for kind in ("attach", "detach"):
            self._due.pop(f"{kind} {name}", None)
        node = read_attachment(change.entry.data).spec.node_name
        refused = [
            one.metadata.name
            for one in self._stage.view.attachments_on(node)
            if one.metadata.name in self._tries
        ]
        for other in refused:
            self._due.pop(f"attach {other}", None)
        return refused

    def decide(self, key: str) -> Plan:
        """Attach, refuse, detach, or wait for the cloud."""
        one = self._stage.view.attachments.get(key)
        driver = self._drivers.get(one.spec.attacher) if one is not None else None
        if one is None or driver is None:
            return []
        if one.metadata.deletion_timestamp:
            return self._detach(one, driver)
        return [] if one.status.attached else self._attach(one, driver)

    def _attach(self, one: AttachmentFacts, driver: Driver) -> Plan:
        left = self._left(f"attach {one.metadata.name}", driver.attach_seconds)
        if left > 0:
            return [RequeueAfter(left)]
        why = self._obstacle(one, driver)
        if why:
            return self._refuse(one, why)
        self._tries.pop(one.metadata.name, None)
        return [Update(_key(one), _attached, "status"), *self._told_attached(one)]

    def _obstacle(self, one: AttachmentFacts, driver: Driver) -> str:
        node = one.spec.node_name
        if self._stage.faults.find("attach-fails", **self._about(node, driver)):
            return "the cloud refused to attach it (injected fault)"
        limit = self._real_limit(node, driver.name)
        used = sum(
            other.status.attached and other.spec.attacher == driver.name
            for other in self._stage.view.attachments_on(node)
        )
        if limit is not None and used >= limit:
            return f"maximum number of volumes ({limit}) is attached to instance {node}"
        return ""

    def _real_limit(self, node: str, driver: str) -> int | None:
        machine = self._fleet.find(node)
        settings = machine.instance.group.drivers.get(driver) if machine is not None else None
        return settings.real_limit if settings is not None else None

    def _refuse(self, one: AttachmentFacts, why: str) -> Plan:
        name = one.metadata.name
        tries = self._tries[name] = self._tries.get(name, -1) + 1
        pause = min(MOST_PAUSE, 2.0**tries)
        self._due[f"attach {name}"] = self._stage.seconds() + pause
        said = f'AttachVolume.Attach failed for volume "{one.volume}" : rpc error: {why}'
        error: JsonObject = {"time": self._stage.now(), "message": why}
        return [
            Update(_key(one), lambda obj: _failed(obj, error), "status"),
            *self._tell(one, "FailedAttachVolume", said, warning=True),
            RequeueAfter(pause),
        ]

    def _told_attached(self, one: AttachmentFacts) -> Plan:
        said = f'AttachVolume.Attach succeeded for volume "{one.volume}"'
        return self._tell(one, "SuccessfulAttachVolume", said, warning=False)

    def _tell(self, one: AttachmentFacts, reason: str, said: str, *, warning: bool) -> Plan:
        pods = self._stage.view.pods_on(one.spec.node_name)
        return [
            Tell(key, reason, said, "Warning" if warning else "Normal", _SOURCE)
            for key, pod in pods
            if pod.spec.volumes and one.volume in self._volumes.needed(pod)
        ]

    def _detach(self, one: AttachmentFacts, driver: Driver) -> Plan:
        gone = self._stage.view.store.get(Key(NODES, "", one.spec.node_name)) is None
        if one.status.attached and not gone:
            about = self._about(one.spec.node_name, driver)
            if self._stage.faults.find("detach-sticks", **about):
                return [RequeueAfter(STUCK_SECONDS)]
            left = self._left(f"detach {one.metadata.name}", driver.detach_seconds)
            if left > 0:
                return [RequeueAfter(left)]
        return [Update(_key(one), _released(driver.name))]

    def _about(self, node: str, driver: Driver) -> dict[str, str]:
        """What a fault may be aimed by."""
        about = {"node": node, "driver": driver.name}
        machine = self._fleet.find(node)
        if machine is not None:
            about |= {"group": machine.instance.group.name, "zone": machine.instance.zone}
        return about

    def _left(self, what: str, seconds: float) -> float:
        """How long the cloud still takes for something that it began when first asked."""
        now = self._stage.seconds()
        return self._due.setdefault(what, now + self._stage.about(seconds)) - now


def _key(one: AttachmentFacts) -> Key:
    return Key(ATTACHMENTS, "", one.metadata.name)


def _attached(obj: JsonObject) -> JsonObject:
    obj["status"] = {"attached": True}
    return obj


def _failed(obj: JsonObject, error: JsonObject) -> JsonObject:
    obj["status"] = {"attached": False, "attachError": error}
    return obj


def _released(driver: str) -> Edit:
    finalizer = f"external-attacher/{driver}"

    def edit(obj: JsonObject) -> JsonObject:
        meta = obj["metadata"]
        meta["finalizers"] = [one for one in meta.get("finalizers") or () if one != finalizer]
        return obj

    return edit
