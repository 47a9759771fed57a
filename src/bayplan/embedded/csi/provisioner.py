"""Claims get volumes: those made by hand, or new ones, at once or for their first consumer.

A volume whose `claimRef` names a claim is that claim's, which is also how a scheduler hands over a
volume that it chose. Claims that no driver of the cluster provisions take the smallest volume that
is left and suits them; those that wait for their first consumer do so only when its node is known,
and take one that can be used there. Both sides are marked; the provisioner completes the binding.

A claim of a class that binds immediately is provisioned in some domain that has the driver. One
that waits for its first consumer is provisioned once a scheduler has chosen a node for it (the
annotation `selected-node`) or a pod that uses it has been bound by hand, in that node's domain. If
the driver is not on that node, the choice is taken back, as external-provisioner does. Only claims
of the cluster's own drivers are served; a claim that names a volume itself is tied to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.rest.selectors import select
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import (
    Controller,
    Create,
    Edit,
    Plan,
    RequeueAfter,
    Stage,
    Tell,
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


class Binder(Controller[Key]):
    """Keyed by claim."""

    name = "volume-binder"
    storages = (CLAIMS, VOLUMES, PODS)

    def __init__(self, stage: Stage, drivers: Mapping[str, Driver]) -> None:
        self._view = stage.view
        self._drivers = drivers
        self._named: dict[Key, str] = {}
        """Volumes by the claim that their `claimRef` names."""
        self._free: set[str] = set()

    def notice(self, change: Change) -> Iterable[Key]:
        """Claims, those of pods that were bound, and, for a volume that is free, all of them."""
        key = change.entry.key
        if key.storage == CLAIMS:
            return () if change.deleted else (key,)
        if key.storage == PODS:
            return claims_of_bound_pod(self._view, change)
        return self._notice_volume(change)

    def _notice_volume(self, change: Change) -> Iterable[Key]:
        name = change.entry.key.name
        reference = change.entry.object()["spec"].get("claimRef")
        self._free.discard(name)
        if reference:
            claim = Key(CLAIMS, reference.get("namespace", ""), reference.get("name", ""))
            if change.deleted:
                self._named.pop(claim, None)
                return ()
            self._named[claim] = name
            return (claim,)
        if change.deleted:
            return ()
        self._free.add(name)
        return [entry.key for entry in self._view.store.list(CLAIMS)]

    def decide(self, key: Key) -> Plan:
        """Tie the claim to a volume, if there is one for it."""
        claim = self._view.object(key)
        if claim is None or claim["spec"].get("volumeName") or volumes.phase(claim) == "Bound":
            return []
        volume = self._found(key, claim)
        if volume is None:
            return []
        name, reference = volume["metadata"]["name"], volumes.claim_reference(claim)
        return [
            Update(Key(VOLUMES, "", name), volumes.claimed_by(reference)),
            Update(key, _with_volume(name)),
        ]

    def _found(self, key: Key, claim: JsonObject) -> JsonObject | None:
        class_ = self._view.get(CLASSES, "", claim["spec"].get("storageClassName") or "") or {}
        named = self._view.get(VOLUMES, "", self._named.get(key, ""))
        if named is not None and _names(named, claim):
            return named
        if class_.get("provisioner") in self._drivers:
            return None
        node = chosen_node(self._view, key, claim)
        if class_.get("volumeBindingMode") == "WaitForFirstConsumer" and not node:
            return None
        entry = self._view.store.get(Key(NODES, "", node)) if node else None
        place = _decode_node(entry.data) if entry is not None else None
        free = (self._view.get(VOLUMES, "", name) for name in sorted(self._free))
        return best_volume(claim, [one for one in free if one is not None], place)


def best_volume(
    claim: JsonObject, volumes: Iterable[JsonObject], node: Node | None
) -> JsonObject | None:
    """The smallest free volume that suits a claim, and can be used on its node if it has one."""
    suiting = [one for one in volumes if _suits(claim, one) and _usable(one, node)]
    return min(suiting, key=lambda one: (_size(one), one["metadata"]["name"]), default=None)


def _names(volume: JsonObject, claim: JsonObject) -> bool:
    reference, meta = volume["spec"].get("claimRef") or {}, claim["metadata"]
    same = (reference.get("namespace"), reference.get("name")) == (meta["namespace"], meta["name"])
    return same and reference.get("uid") in (None, "", meta["uid"])


def _suits(claim: JsonObject, volume: JsonObject) -> bool:
    wanted, offered = claim["spec"], volume["spec"]
    selector = wanted.get("selector")
    return (
        not offered.get("claimRef")
        and "deletionTimestamp" not in volume["metadata"]
        and (offered.get("storageClassName") or "") == (wanted.get("storageClassName") or "")
        and offered.get("volumeMode") == wanted.get("volumeMode")
        and set(wanted["accessModes"]) <= set(offered.get("accessModes") or ())
        and (not selector or select(selector, volume["metadata"].get("labels") or {}))
        and _size(volume) >= parse(volumes.storage_request(claim))
    )


def _usable(volume: JsonObject, node: Node | None) -> bool:
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


class Provisioner(Controller[Key]):
    """Keyed by claim."""

    name = "csi-provisioner"
    storages = (CLAIMS, PODS, VOLUMES, CLASSES)

    def __init__(self, stage: Stage, drivers: Mapping[str, Driver]) -> None:
        self._stage = stage
        self._drivers = drivers
        self._due: dict[str, float] = {}
        self._told: set[str] = set()

    def notice(self, change: Change) -> Iterable[Key]:
        """Claims, those of pods that were bound, and those of volumes that came."""
        key = change.entry.key
        if key.storage == CLAIMS:
            return () if change.deleted else (key,)
        if key.storage == PODS:
            return claims_of_bound_pod(self._stage.view, change)
        if key.storage == CLASSES:
            return [entry.key for entry in self._stage.view.store.list(CLAIMS)]
        volume = self._stage.view.object(key) or {}
        claim = (volume.get("spec") or {}).get("claimRef") or {}
        return (Key(CLAIMS, claim.get("namespace", ""), claim["name"]),) if claim else ()

    def decide(self, key: Key) -> Plan:
        """Provision, bind, or wait."""
        claim = self._stage.view.object(key)
        if claim is None or volumes.phase(claim) == "Bound":
            return self._forget(claim)
        name = claim["spec"].get("volumeName") or f"pvc-{claim['metadata']['uid']}"
        volume = self._stage.view.get(VOLUMES, "", name)
        if volume is not None:
            return self._bind(key, claim, volume)
        class_ = self._stage.view.get(CLASSES, "", claim["spec"].get("storageClassName") or "")
        driver = self._drivers.get((class_ or {}).get("provisioner", ""))
        if class_ is None or driver is None or claim["spec"].get("volumeName"):
            return []
        return self._provision(key, claim, class_, driver)

    def _forget(self, claim: JsonObject | None) -> Plan:
        if claim is not None:
            self._due.pop(claim["metadata"]["uid"], None)
            self._told.discard(claim["metadata"]["uid"])
        return []

    def _provision(self, key: Key, claim: JsonObject, class_: JsonObject, driver: Driver) -> Plan:
        node = chosen_node(self._stage.view, key, claim)
        if class_.get("volumeBindingMode") == "WaitForFirstConsumer":
            if not node:
                return self._tell_waiting(key, claim["metadata"]["uid"])
            if not self._has_driver(node, driver.name):
                return self._refuse_node(key, claim, node, driver)
        domain = self._domain(class_, driver, node)
        if domain is None:
            return [RequeueAfter(RETRY_SECONDS)]
        if self._stage.faults.find("provision-fails", driver=driver.name, zone=domain):
            said = "failed to provision volume: the cloud refused to make it (injected fault)"
            told = Tell(key, "ProvisioningFailed", said, "Warning", driver.name)
            return [told, RequeueAfter(RETRY_SECONDS)]
        return self._make(key, claim, class_, driver, domain)

    def _make(
        self, key: Key, claim: JsonObject, class_: JsonObject, driver: Driver, domain: str
    ) -> Plan:
        now, uid = self._stage.seconds(), claim["metadata"]["uid"]
        due = self._due.setdefault(uid, now + self._stage.about(driver.provision_seconds))
        if now < due:
            return [RequeueAfter(due - now)]
        volume = volumes.volume_object(claim, class_, driver, domain)
        said = f"Successfully provisioned volume pvc-{uid}"
        told = Tell(key, "ProvisioningSucceeded", said, source=driver.name)
        return [Create(VOLUMES, volume), told]

    def _bind(self, key: Key, claim: JsonObject, volume: JsonObject) -> Plan:
        name = volume["metadata"]["name"]
        reference = volume["spec"].get("claimRef")
        if reference and reference.get("uid") not in (None, "", claim["metadata"]["uid"]):
            return []
        whole, volume_key = volumes.claim_reference(claim), Key(VOLUMES, "", name)
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
        found = self._stage.view.get(CSI_NODES, "", node) or {}
        entries = (found.get("spec") or {}).get("drivers") or ()
        return any(one["name"] == driver for one in entries)

    def _refuse_node(self, key: Key, claim: JsonObject, node: str, driver: Driver) -> Plan:
        said = f"failed to provision volume: driver {driver.name} is not on node {node}"
        plan: Plan = [Tell(key, "ProvisioningFailed", said, "Warning", driver.name)]
        if SELECTED_NODE in (claim["metadata"].get("annotations") or {}):
            return [*plan, Update(key, volumes.without_selected_node)]
        return [*plan, RequeueAfter(RETRY_SECONDS)]

    def _domain(self, class_: JsonObject, driver: Driver, node: str) -> str | None:
        """The topology domain for a volume; nothing where the driver knows none, None if unsure."""
        if not driver.topology_key:
            return ""
        if node:
            found = self._stage.view.get(NODES, "", node) or {"metadata": {}}
            return (found["metadata"].get("labels") or {}).get(driver.topology_key)
        allowed = _allowed(class_, driver.topology_key) or self._domains(driver)
        return self._stage.rng.choice(allowed) if allowed else None

    def _domains(self, driver: Driver) -> list[str]:
        """Where the driver is, in order."""
        labels = [node["metadata"].get("labels") or {} for node in self._stage.view.all(NODES)]
        return sorted({one[driver.topology_key] for one in labels if driver.topology_key in one})

    def _tell_waiting(self, key: Key, uid: str) -> Plan:
        if uid in self._told:
            return []
        self._told.add(uid)
        said = "waiting for first consumer to be created before binding"
        return [Tell(key, "WaitForFirstConsumer", said, source=_BINDER)]


def _allowed(class_: JsonObject, key: str) -> list[str]:
    """The domains that a class restricts itself to, in order."""
    found = {
        value
        for term in class_.get("allowedTopologies") or ()
        for expression in term.get("matchLabelExpressions") or ()
        if expression.get("key") == key
        for value in expression.get("values") or ()
    }
    return sorted(found)
