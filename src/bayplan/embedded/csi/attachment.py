"""The attach/detach controller, and the attacher of the simulated CSI drivers.

`AttachDetach` is keyed by node: it compares the volumes of the node's non-terminal pods with its
VolumeAttachments. A volume that is not shared, and is attached to another node, waits for that one.
Attachments of deleted nodes are deleted.

`Attacher` is keyed by VolumeAttachment. It refuses above the machine's real limit, whatever CSINode
has: the attachment gets the error, the pods get FailedAttachVolume, and it retries with growing
delays. A finalizer keeps a deleted attachment until the volume is detached.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import (
    Controller,
    ControllerContext,
    Create,
    Delete,
    Edit,
    Plan,
    RecordEvent,
    RequeueAfter,
    Update,
)
from bayplan.embedded.control.facts import AttachmentFacts, read_attachment
from bayplan.embedded.control.view import ATTACHMENTS, CLAIMS, NODES, PODS, VOLUMES
from bayplan.embedded.csi.volumes import Driver, VolumeIndex
from bayplan.embedded.nodes.fleet import Fleet

MULTI_ATTACH_SECONDS = 10.0
_SOURCE = "attachdetach-controller"
_SHARED = ("ReadWriteMany", "ReadOnlyMany")


class AttachDetach(Controller[str]):
    """The attach/detach controller; keyed by node."""

    name = "attach-detach"
    storages = (PODS, CLAIMS, NODES, ATTACHMENTS)

    def __init__(self, context: ControllerContext, volumes: VolumeIndex) -> None:
        self._context = context
        self._volumes = volumes

    def notice(self, change: WatchCacheEvent) -> Iterable[str]:
        """Return nodes whose pods, bound claims or existence changed."""
        key = change.entry.key
        if key.storage == NODES:
            return (key.name,) if change.deleted else ()
        if key.storage == ATTACHMENTS:
            return self._released_nodes(change)
        if key.storage == PODS:
            return self._pod_node(change)
        users = self._context.view.pods_using(key.namespace, key.name)
        return sorted({pod.node for _, pod in users if pod.node})

    def _pod_node(self, change: WatchCacheEvent) -> Iterable[str]:
        node = change.entry.fields.get("spec.nodeName", "")
        if not node or _has_same_volumes(change):
            return ()
        volumes = change.entry.object()["spec"].get("volumes") or ()
        claims = any("persistentVolumeClaim" in one or "ephemeral" in one for one in volumes)
        return (node,) if claims else ()

    def _released_nodes(self, change: WatchCacheEvent) -> Iterable[str]:
        """Return the nodes that wait for a volume that was detached."""
        if not change.deleted:
            return ()
        volume = read_attachment(change.entry.data).volume
        pods = (self._context.view.pods[key] for key in self._volumes.users(volume))
        return sorted({pod.node for pod in pods if pod.node})

    def decide(self, key: str) -> Plan:
        """Compare needed and existing attachments."""
        present = {one.volume: one for one in self._context.view.attachments_on(key)}
        if self._context.view.get(NODES, "", key) is None:
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
        for _, pod in self._context.view.pods_on(node):
            if pod.spec.volumes and not pod.is_terminal:
                needed |= self._volumes.needed(pod)
        return needed

    def _attach(self, node: str, volume: str, driver: Driver) -> Plan:
        holders = [one.spec.node_name for one in self._context.view.attachments_of(volume)]
        if holders and not self._is_shared(volume):
            return [
                *self._report_multi_attach(node, volume, holders),
                RequeueAfter(MULTI_ATTACH_SECONDS),
            ]
        return [Create(ATTACHMENTS, attachment_object(volume, driver.name, node))]

    def _is_shared(self, volume: str) -> bool:
        found = self._context.view.get(VOLUMES, "", volume) or {"spec": {}}
        return any(mode in _SHARED for mode in found["spec"].get("accessModes") or ())

    def _report_multi_attach(self, node: str, volume: str, holders: list[str]) -> Plan:
        message = (
            f'Multi-Attach error for volume "{volume}" Volume is already exclusively attached to '
            f"node {holders[0]} and can't be attached to another"
        )
        return [
            RecordEvent(key, "FailedAttachVolume", message, "Warning", _SOURCE)
            for key, pod in self._context.view.pods_on(node)
            if volume in self._volumes.needed(pod)
        ]


def attachment_object(volume: str, driver: str, node: str) -> JsonObject:
    """Return the VolumeAttachment of a volume to a node, named as in Kubernetes."""
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
    return Delete(ObjectKey(ATTACHMENTS, "", one.metadata.name), one.metadata.uid)


def _has_same_volumes(change: WatchCacheEvent) -> bool:
    """Return whether a change of a pod does not concern its volumes."""
    before, after = change.previous, change.entry
    return (
        before is not None
        and not change.deleted
        and before.fields.get("spec.nodeName") == after.fields.get("spec.nodeName")
        and before.fields.get("status.phase") == after.fields.get("status.phase")
    )


MAX_PAUSE = 120.0
STUCK_SECONDS = 30.0


class Attacher(Controller[str]):
    """The attacher of the CSI drivers; keyed by VolumeAttachment."""

    name = "csi-attacher"
    storages = (ATTACHMENTS,)

    def __init__(
        self,
        context: ControllerContext,
        fleet: Fleet,
        volumes: VolumeIndex,
        drivers: Mapping[str, Driver],
    ) -> None:
        self._context = context
        self._fleet = fleet
        self._volumes = volumes
        self._drivers = drivers
        self._due: dict[str, float] = {}
        self._tries: dict[str, int] = {}

    def notice(self, change: WatchCacheEvent) -> Iterable[str]:
        """Return every attachment and, when one is removed, the refused ones of the node."""
        name = change.entry.key.name
        if not change.deleted:
            return (name,)
        self._tries.pop(name, None)
        for kind in ("attach", "detach"):
            self._due.pop(f"{kind} {name}", None)
        node = read_attachment(change.entry.data).spec.node_name
        refused = [
            one.metadata.name
            for one in self._context.view.attachments_on(node)
            if one.metadata.name in self._tries
        ]
        for other in refused:
            self._due.pop(f"attach {other}", None)
        return refused

    def decide(self, key: str) -> Plan:
        """Attach, refuse, detach, or wait for the cloud."""
        one = self._context.view.attachments.get(key)
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
        detail = self._obstacle(one, driver)
        if detail:
            return self._refuse(one, detail)
        self._tries.pop(one.metadata.name, None)
        return [Update(_key(one), _attached, "status"), *self._record_attached(one)]

    def _obstacle(self, one: AttachmentFacts, driver: Driver) -> str:
        node = one.spec.node_name
        if self._context.faults.find("attach-fails", **self._about(node, driver)):
            return "the cloud refused to attach it (injected fault)"
        limit = self._real_limit(node, driver.name)
        used = sum(
            other.status.attached and other.spec.attacher == driver.name
            for other in self._context.view.attachments_on(node)
        )
        if limit is not None and used >= limit:
            return f"maximum number of volumes ({limit}) is attached to instance {node}"
        return ""

    def _real_limit(self, node: str, driver: str) -> int | None:
        machine = self._fleet.find(node)
        settings = machine.instance.group.drivers.get(driver) if machine is not None else None
        return settings.real_limit if settings is not None else None

    def _refuse(self, one: AttachmentFacts, detail: str) -> Plan:
        name = one.metadata.name
        tries = self._tries[name] = self._tries.get(name, -1) + 1
        pause = min(MAX_PAUSE, 2.0**tries)
        self._due[f"attach {name}"] = self._context.seconds() + pause
        message = f'AttachVolume.Attach failed for volume "{one.volume}" : rpc error: {detail}'
        error: JsonObject = {"time": self._context.now(), "message": detail}
        return [
            Update(_key(one), lambda obj: _failed(obj, error), "status"),
            *self._record_event(one, "FailedAttachVolume", message, warning=True),
            RequeueAfter(pause),
        ]

    def _record_attached(self, one: AttachmentFacts) -> Plan:
        message = f'AttachVolume.Attach succeeded for volume "{one.volume}"'
        return self._record_event(one, "SuccessfulAttachVolume", message, warning=False)

    def _record_event(
        self, one: AttachmentFacts, reason: str, message: str, *, warning: bool
    ) -> Plan:
        pods = self._context.view.pods_on(one.spec.node_name)
        return [
            RecordEvent(key, reason, message, "Warning" if warning else "Normal", _SOURCE)
            for key, pod in pods
            if pod.spec.volumes and one.volume in self._volumes.needed(pod)
        ]

    def _detach(self, one: AttachmentFacts, driver: Driver) -> Plan:
        gone = self._context.view.store.get(ObjectKey(NODES, "", one.spec.node_name)) is None
        if one.status.attached and not gone:
            about = self._about(one.spec.node_name, driver)
            if self._context.faults.find("detach-sticks", **about):
                return [RequeueAfter(STUCK_SECONDS)]
            left = self._left(f"detach {one.metadata.name}", driver.detach_seconds)
            if left > 0:
                return [RequeueAfter(left)]
        return [Update(_key(one), _released(driver.name))]

    def _about(self, node: str, driver: Driver) -> dict[str, str]:
        """Return the fields that a fault can target."""
        about = {"node": node, "driver": driver.name}
        machine = self._fleet.find(node)
        if machine is not None:
            about |= {"group": machine.instance.group.name, "zone": machine.instance.zone}
        return about

    def _left(self, what: str, seconds: float) -> float:
        """Return the seconds that the cloud still needs for an operation since its first call."""
        now = self._context.seconds()
        return self._due.setdefault(what, now + self._context.about(seconds)) - now


def _key(one: AttachmentFacts) -> ObjectKey:
    return ObjectKey(ATTACHMENTS, "", one.metadata.name)


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
