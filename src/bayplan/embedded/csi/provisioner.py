"""Claims get volumes: at once, or when it is known where their first consumer goes.

A claim of a class that binds immediately is provisioned in some domain that has the driver. One
that waits for its first consumer is provisioned once a scheduler has chosen a node for it (the
annotation `selected-node`) or a pod that uses it has been bound by hand, in that node's domain. If
the driver is not on that node, the choice is taken back, as external-provisioner does. Only claims
of the cluster's own drivers are served; a claim that names a volume itself is tied to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import (
    Controller,
    Create,
    Plan,
    RequeueAfter,
    Stage,
    Tell,
    Update,
)
from bayplan.embedded.control.storages import CLAIMS, CLASSES, CSI_NODES, NODES, PODS, VOLUMES
from bayplan.embedded.csi import claims
from bayplan.embedded.csi.drivers import Driver
from bayplan.embedded.csi.volumes import chosen_node, claims_of_bound_pod
from bayplan.kube.storage import SELECTED_NODE

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
        if claim is None or claims.phase(claim) == "Bound":
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
        volume = claims.volume_object(claim, class_, driver, domain)
        said = f"Successfully provisioned volume pvc-{uid}"
        told = Tell(key, "ProvisioningSucceeded", said, source=driver.name)
        return [Create(VOLUMES, volume), told]

    def _bind(self, key: Key, claim: JsonObject, volume: JsonObject) -> Plan:
        name = volume["metadata"]["name"]
        reference = volume["spec"].get("claimRef")
        if reference and reference.get("uid") not in (None, "", claim["metadata"]["uid"]):
            return []
        whole, volume_key = claims.claim_reference(claim), Key(VOLUMES, "", name)
        plan: Plan = []
        if reference != whole:
            plan.append(Update(volume_key, claims.claimed_by(whole)))
        return [
            *plan,
            Update(volume_key, claims.with_phase("Bound"), "status"),
            Update(key, claims.bound_spec(name)),
            Update(key, claims.bound_status(volume), "status"),
        ]

    def _has_driver(self, node: str, driver: str) -> bool:
        found = self._stage.view.get(CSI_NODES, "", node) or {}
        entries = (found.get("spec") or {}).get("drivers") or ()
        return any(one["name"] == driver for one in entries)

    def _refuse_node(self, key: Key, claim: JsonObject, node: str, driver: Driver) -> Plan:
        said = f"failed to provision volume: driver {driver.name} is not on node {node}"
        plan: Plan = [Tell(key, "ProvisioningFailed", said, "Warning", driver.name)]
        if SELECTED_NODE in (claim["metadata"].get("annotations") or {}):
            return [*plan, Update(key, claims.without_selected_node)]
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
