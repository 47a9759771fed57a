"""Binding of claims to existing volumes, and provisioning of new ones.

A volume whose `claimRef` names a claim belongs to that claim, which is also how a scheduler binds a
volume that it chose. Claims that no driver of the cluster provisions get the smallest available
matching volume; with WaitForFirstConsumer only when the node of a consumer is known, and then a
volume that is accessible there. `PersistentVolumeBinder` sets both references; `Provisioner`
completes the binding.

A claim of a class with Immediate binding is provisioned in some topology domain of the driver. One
with WaitForFirstConsumer is provisioned once a scheduler has set the annotation `selected-node`, or
a pod that uses it was bound, in that node's domain. If the driver is not on that node, the
annotation is removed, as external-provisioner does. Only claims of the cluster's own drivers are
provisioned; a claim with a volume name is bound to that volume.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.rest.selectors import matches_selector
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import (
    Controller,
    ControllerContext,
    Create,
    Edit,
    Plan,
    RecordEvent,
    RequeueAfter,
    Update,
)
from bayplan.embedded.control.view import CLAIMS, CLASSES, CSI_NODES, NODES, PODS, VOLUMES
from bayplan.embedded.csi import volumes
from bayplan.embedded.csi.volumes import Driver, chosen_node, claims_of_bound_pod
from bayplan.kube.nodes import Node, NodeSelector
from bayplan.kube.quantity import parse
from bayplan.kube.selectors import compile_node_selector
from bayplan.kube.storage import SELECTED_NODE

_decode_node = msgspec.json.Decoder(Node).decode


class PersistentVolumeBinder(Controller[ObjectKey]):
    """Binds claims to existing volumes; keyed by claim."""

    name = "volume-binder"
    storages = (CLAIMS, VOLUMES, PODS)

    def __init__(self, context: ControllerContext, drivers: Mapping[str, Driver]) -> None:
        self._view = context.view
        self._drivers = drivers
        self._named: dict[ObjectKey, str] = {}
        """Volumes by the claim that their `claimRef` names."""
        self._free: set[str] = set()

    def notice(self, change: WatchCacheEvent) -> Iterable[ObjectKey]:
        """Return claims, those of newly bound pods and, for an available volume, all."""
        key = change.entry.key
        if key.storage == CLAIMS:
            return () if change.deleted else (key,)
        if key.storage == PODS:
            return claims_of_bound_pod(self._view, change)
        return self._notice_volume(change)

    def _notice_volume(self, change: WatchCacheEvent) -> Iterable[ObjectKey]:
        name = change.entry.key.name
        reference = change.entry.object()["spec"].get("claimRef")
        self._free.discard(name)
        if reference:
            claim = ObjectKey(CLAIMS, reference.get("namespace", ""), reference.get("name", ""))
            if change.deleted:
                self._named.pop(claim, None)
                return ()
            self._named[claim] = name
            return (claim,)
        if change.deleted:
            return ()
        self._free.add(name)
        return [entry.key for entry in self._view.store.list(CLAIMS)]

    def decide(self, key: ObjectKey) -> Plan:
        """Bind the claim to a volume, if there is a matching one."""
        claim = self._view.object(key)
        if claim is None or claim["spec"].get("volumeName") or volumes.phase(claim) == "Bound":
            return []
        volume = self._found(key, claim)
        if volume is None:
            return []
        name, reference = volume["metadata"]["name"], volumes.claim_reference(claim)
        return [
            Update(ObjectKey(VOLUMES, "", name), volumes.claimed_by(reference)),
            Update(key, _with_volume(name)),
        ]

    def _found(self, key: ObjectKey, claim: JsonObject) -> JsonObject | None:
        class_ = self._view.get(CLASSES, "", claim["spec"].get("storageClassName") or "") or {}
        named = self._view.get(VOLUMES, "", self._named.get(key, ""))
        if named is not None and _is_claimed_by(named, claim):
            return named
        if class_.get("provisioner") in self._drivers:
            return None
        node = chosen_node(self._view, key, claim)
        if class_.get("volumeBindingMode") == "WaitForFirstConsumer" and not node:
            return None
        entry = self._view.store.get(ObjectKey(NODES, "", node)) if node else None
        place = _decode_node(entry.data) if entry is not None else None
        free = (self._view.get(VOLUMES, "", name) for name in sorted(self._free))
        return best_volume(claim, [one for one in free if one is not None], place)


def best_volume(
    claim: JsonObject, volumes: Iterable[JsonObject], node: Node | None
) -> JsonObject | None:
    """Return the smallest available volume that matches a claim and its node."""
    suiting = [one for one in volumes if _matches(claim, one) and _is_accessible(one, node)]
    return min(suiting, key=lambda one: (_size(one), one["metadata"]["name"]), default=None)


def _is_claimed_by(volume: JsonObject, claim: JsonObject) -> bool:
    reference, meta = volume["spec"].get("claimRef") or {}, claim["metadata"]
    same = (reference.get("namespace"), reference.get("name")) == (meta["namespace"], meta["name"])
    return same and reference.get("uid") in (None, "", meta["uid"])


def _matches(claim: JsonObject, volume: JsonObject) -> bool:
    wanted, offered = claim["spec"], volume["spec"]
    selector = wanted.get("selector")
    return (
        not offered.get("claimRef")
        and "deletionTimestamp" not in volume["metadata"]
        and (offered.get("storageClassName") or "") == (wanted.get("storageClassName") or "")
        and offered.get("volumeMode") == wanted.get("volumeMode")
        and set(wanted["accessModes"]) <= set(offered.get("accessModes") or ())
        and (not selector or matches_selector(selector, volume["metadata"].get("labels") or {}))
        and _size(volume) >= parse(volumes.storage_request(claim))
    )


def _is_accessible(volume: JsonObject, node: Node | None) -> bool:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if node is None or not required:
        return True
    return compile_node_selector(msgspec.convert(required, NodeSelector)).matches(node)


def _size(volume: JsonObject) -> float:
    return float(parse(volume["spec"]["capacity"]["storage"]))


def _with_volume(name: str) -> Edit:
    def edit(claim: JsonObject) -> JsonObject:
        claim["spec"]["volumeName"] = name
        return claim

    return edit


RETRY_SECONDS = 15.0
_BINDER = "persistentvolume-controller"


class Provisioner(Controller[ObjectKey]):
    """Provisions volumes and completes bindings; keyed by claim."""

    name = "csi-provisioner"
    storages = (CLAIMS, PODS, VOLUMES, CLASSES)

    def __init__(self, context: ControllerContext, drivers: Mapping[str, Driver]) -> None:
        self._context = context
        self._drivers = drivers
        self._due: dict[str, float] = {}
        self._reported: set[str] = set()

    def notice(self, change: WatchCacheEvent) -> Iterable[ObjectKey]:
        """Return claims, those of newly bound pods, and those of new volumes."""
        key = change.entry.key
        if key.storage == CLAIMS:
            return () if change.deleted else (key,)
        if key.storage == PODS:
            return claims_of_bound_pod(self._context.view, change)
        if key.storage == CLASSES:
            return [entry.key for entry in self._context.view.store.list(CLAIMS)]
        volume = self._context.view.object(key) or {}
        claim = (volume.get("spec") or {}).get("claimRef") or {}
        return (ObjectKey(CLAIMS, claim.get("namespace", ""), claim["name"]),) if claim else ()

    def decide(self, key: ObjectKey) -> Plan:
        """Provision, bind, or wait."""
        claim = self._context.view.object(key)
        if claim is None or volumes.phase(claim) == "Bound":
            return self._forget(claim)
        name = claim["spec"].get("volumeName") or f"pvc-{claim['metadata']['uid']}"
        volume = self._context.view.get(VOLUMES, "", name)
        if volume is not None:
            return self._bind(key, claim, volume)
        class_ = self._context.view.get(CLASSES, "", claim["spec"].get("storageClassName") or "")
        driver = self._drivers.get((class_ or {}).get("provisioner", ""))
        if class_ is None or driver is None or claim["spec"].get("volumeName"):
            return []
        return self._provision(key, claim, class_, driver)

    def _forget(self, claim: JsonObject | None) -> Plan:
        if claim is not None:
            self._due.pop(claim["metadata"]["uid"], None)
            self._reported.discard(claim["metadata"]["uid"])
        return []

    def _provision(
        self, key: ObjectKey, claim: JsonObject, class_: JsonObject, driver: Driver
    ) -> Plan:
        node = chosen_node(self._context.view, key, claim)
        if class_.get("volumeBindingMode") == "WaitForFirstConsumer":
            if not node:
                return self._report_waiting(key, claim["metadata"]["uid"])
            if not self._has_driver(node, driver.name):
                return self._refuse_node(key, claim, node, driver)
        domain = self._domain(class_, driver, node)
        if domain is None:
            return [RequeueAfter(RETRY_SECONDS)]
        if self._context.faults.find("provision-fails", driver=driver.name, zone=domain):
            message = "failed to provision volume: the cloud refused to create it (injected fault)"
            event = RecordEvent(key, "ProvisioningFailed", message, "Warning", driver.name)
            return [event, RequeueAfter(RETRY_SECONDS)]
        return self._make(key, claim, class_, driver, domain)

    def _make(
        self, key: ObjectKey, claim: JsonObject, class_: JsonObject, driver: Driver, domain: str
    ) -> Plan:
        now, uid = self._context.seconds(), claim["metadata"]["uid"]
        due = self._due.setdefault(uid, now + self._context.about(driver.provision_seconds))
        if now < due:
            return [RequeueAfter(due - now)]
        volume = volumes.volume_object(claim, class_, driver, domain)
        message = f"Successfully provisioned volume pvc-{uid}"
        event = RecordEvent(key, "ProvisioningSucceeded", message, source=driver.name)
        return [Create(VOLUMES, volume), event]

    def _bind(self, key: ObjectKey, claim: JsonObject, volume: JsonObject) -> Plan:
        name = volume["metadata"]["name"]
        reference = volume["spec"].get("claimRef")
        if reference and reference.get("uid") not in (None, "", claim["metadata"]["uid"]):
            return []
        whole, volume_key = volumes.claim_reference(claim), ObjectKey(VOLUMES, "", name)
        plan: Plan = []
        if reference != whole:
            plan.append(Update(volume_key, volumes.claimed_by(whole)))
        return [
            *plan,
            Update(volume_key, volumes.with_phase("Bound"), "status"),
            Update(key, volumes.bound_spec(name)),
            Update(key, volumes.bound_status(volume), "status"),
        ]

    def _has_driver(self, node: str, driver: str) -> bool:
        found = self._context.view.get(CSI_NODES, "", node) or {}
        entries = (found.get("spec") or {}).get("drivers") or ()
        return any(one["name"] == driver for one in entries)

    def _refuse_node(self, key: ObjectKey, claim: JsonObject, node: str, driver: Driver) -> Plan:
        message = f"failed to provision volume: driver {driver.name} is not on node {node}"
        plan: Plan = [RecordEvent(key, "ProvisioningFailed", message, "Warning", driver.name)]
        if SELECTED_NODE in (claim["metadata"].get("annotations") or {}):
            return [*plan, Update(key, volumes.without_selected_node)]
        return [*plan, RequeueAfter(RETRY_SECONDS)]

    def _domain(self, class_: JsonObject, driver: Driver, node: str) -> str | None:
        """Return the topology domain for a volume; empty without topology, None if unknown."""
        if not driver.topology_key:
            return ""
        if node:
            found = self._context.view.get(NODES, "", node) or {"metadata": {}}
            return (found["metadata"].get("labels") or {}).get(driver.topology_key)
        allowed = _allowed(class_, driver.topology_key) or self._domains(driver)
        return self._context.rng.choice(allowed) if allowed else None

    def _domains(self, driver: Driver) -> list[str]:
        """Return the topology domains of the driver, sorted."""
        labels = [node["metadata"].get("labels") or {} for node in self._context.view.all(NODES)]
        return sorted({one[driver.topology_key] for one in labels if driver.topology_key in one})

    def _report_waiting(self, key: ObjectKey, uid: str) -> Plan:
        if uid in self._reported:
            return []
        self._reported.add(uid)
        message = "waiting for first consumer to be created before binding"
        return [RecordEvent(key, "WaitForFirstConsumer", message, source=_BINDER)]


def _allowed(class_: JsonObject, key: str) -> list[str]:
    """Return the allowed topology domains of a class, in order."""
    found = {
        value
        for term in class_.get("allowedTopologies") or ()
        for expression in term.get("matchLabelExpressions") or ()
        if expression.get("key") == key
        for value in expression.get("values") or ()
    }
    return sorted(found)
