"""The cloud attaches and detaches, or refuses.

It refuses when the machine's real limit is reached, whatever CSINode claims: the attachment carries
the error, the pods get FailedAttachVolume, and it is tried again with growing pauses. A finalizer
keeps an attachment that is being deleted until the cloud has let the volume go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import (
    Controller,
    Edit,
    Plan,
    RequeueAfter,
    Stage,
    Tell,
    Update,
)
from bayplan.embedded.control.facts import AttachmentFacts, read_attachment
from bayplan.embedded.control.storages import ATTACHMENTS, NODES
from bayplan.embedded.csi.drivers import Driver
from bayplan.embedded.csi.volumes import Volumes
from bayplan.embedded.nodes.fleet import Fleet

MOST_PAUSE = 120.0
STUCK_SECONDS = 30.0
_SOURCE = "attachdetach-controller"


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
