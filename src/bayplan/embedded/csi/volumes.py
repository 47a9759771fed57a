"""Drivers, claims and volumes: how they belong together, which pods need, and what is there."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import Edit, Stage
from bayplan.embedded.control.facts import PodFacts
from bayplan.embedded.control.view import CLAIMS, VOLUMES, View
from bayplan.kube.storage import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """One driver of the cluster."""

    name: str
    topology_key: str = "topology.kubernetes.io/zone"
    """Volumes can be used where this label has the same value; empty: everywhere."""
    provision_seconds: float = 2.0
    attach_seconds: float = 3.0
    detach_seconds: float = 2.0
    attach_required: bool = True

    def csi_driver(self) -> dict[str, object]:
        """Its CSIDriver object."""
        spec = {"attachRequired": self.attach_required}
        return {"metadata": {"name": self.name}, "spec": spec}


PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def phase(claim: JsonObject) -> str:
    """Pending, Bound or Lost."""
    return str((claim.get("status") or {}).get("phase") or "Pending")


def storage_request(claim: JsonObject) -> str:
    """How much the claim wants."""
    return str(claim["spec"]["resources"]["requests"]["storage"])


def volume_object(claim: JsonObject, class_: JsonObject, driver: Driver, domain: str) -> JsonObject:
    """A volume that was made for a claim, in a topology domain (or everywhere)."""
    meta, spec = claim["metadata"], claim["spec"]
    volume: JsonObject = {
        "metadata": {
            "name": f"pvc-{meta['uid']}",
            "annotations": {PROVISIONED_BY: driver.name},
        },
        "spec": {
            "capacity": {"storage": storage_request(claim)},
            "accessModes": spec["accessModes"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "storageClassName": class_["metadata"]["name"],
            "persistentVolumeReclaimPolicy": class_.get("reclaimPolicy", "Delete"),
            "claimRef": claim_reference(claim),
            "csi": {"driver": driver.name, "volumeHandle": f"vol-{meta['uid']}"},
        },
    }
    if domain:
        volume["spec"]["nodeAffinity"] = _affinity(driver.topology_key, domain)
    return volume


def claim_reference(claim: JsonObject) -> JsonObject:
    """How a volume names its claim."""
    meta = claim["metadata"]
    reference = {name: meta[name] for name in ("namespace", "name", "uid")}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference}


def bound_spec(volume: str) -> Edit:
    """Tie a claim to its volume."""

    def edit(claim: JsonObject) -> JsonObject:
        claim["spec"]["volumeName"] = volume
        notes = claim["metadata"].setdefault("annotations", {})
        notes.update({BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"})
        return claim

    return edit


def bound_status(volume: JsonObject) -> Edit:
    """Say in a claim's status what it got."""

    def edit(claim: JsonObject) -> JsonObject:
        claim["status"] = {
            "phase": "Bound",
            "accessModes": volume["spec"]["accessModes"],
            "capacity": dict(volume["spec"]["capacity"]),
        }
        return claim

    return edit


def claimed_by(reference: JsonObject) -> Edit:
    """Say in a volume whose it is."""

    def edit(volume: JsonObject) -> JsonObject:
        volume["spec"]["claimRef"] = reference
        return volume

    return edit


def with_phase(phase_: str) -> Edit:
    """Say how a volume stands."""

    def edit(volume: JsonObject) -> JsonObject:
        volume.setdefault("status", {})["phase"] = phase_
        return volume

    return edit


def without_selected_node(claim: JsonObject) -> JsonObject:
    """Let the scheduler choose a node anew."""
    (claim["metadata"].get("annotations") or {}).pop(SELECTED_NODE, None)
    return claim


def _affinity(key: str, value: str) -> JsonObject:
    wanted = {"key": key, "operator": "In", "values": [value]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}


class Volumes:
    """Which volumes a pod needs, and whether they are attached to its node."""

    def __init__(self, stage: Stage, drivers: Mapping[str, Driver]) -> None:
        self._view = stage.view
        self._drivers = drivers

    def needed(self, pod: PodFacts) -> dict[str, Driver]:
        """The attachable volumes of a pod, by name; those of unbound claims are not known yet."""
        found = {}
        for claim in pod.claims:
            name = self._bound(pod.metadata.namespace, claim)
            driver = self._driver(name) if name else None
            if name and driver is not None and driver.attach_required:
                found[name] = driver
        return found

    def ready(self, pod: PodFacts) -> bool:
        """Whether all its claims are bound, and their volumes attached to its node."""
        if not pod.spec.volumes:
            return True
        names = [self._bound(pod.metadata.namespace, claim) for claim in pod.claims]
        if not all(names):
            return False
        return all(self.attached(name, pod.node) for name in self.needed(pod))

    def attached(self, volume: str, node: str) -> bool:
        """Whether a volume is attached to a node."""
        found = self._view.attachments_of(volume)
        return any(one.spec.node_name == node and one.status.attached for one in found)

    def concerned(self, change: Change) -> list[Key]:
        """The pods that wait for what a change of a claim or an attachment brought."""
        key = change.entry.key
        if key.storage == CLAIMS:
            return [pod for pod, _ in self._view.pods_using(key.namespace, key.name)]
        found = self._view.attachments.get(key.name)
        return self.users(found.volume) if found is not None and found.status.attached else []

    def users(self, volume: str) -> list[Key]:
        """The pods that use a volume by its claim."""
        found = self._view.get(VOLUMES, "", volume) or {}
        claim = (found.get("spec") or {}).get("claimRef") or {}
        namespace, name = claim.get("namespace", ""), claim.get("name", "")
        return [pod for pod, _ in self._view.pods_using(namespace, name)]

    def _bound(self, namespace: str, claim: str) -> str:
        found = self._view.get(CLAIMS, namespace, claim)
        if found is None or phase(found) != "Bound":
            return ""
        return str(found["spec"].get("volumeName") or "")

    def _driver(self, volume: str) -> Driver | None:
        found = self._view.get(VOLUMES, "", volume) or {}
        return self._drivers.get(((found.get("spec") or {}).get("csi") or {}).get("driver", ""))


def chosen_node(view: View, key: Key, claim: JsonObject) -> str:
    """The node that a scheduler chose for a claim, or that a pod with it was bound to."""
    selected = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
    if selected:
        return str(selected)
    users = view.pods_using(key.namespace, key.name)
    return next((pod.node for _, pod in users if pod.node), "")


def claims_of_bound_pod(view: View, change: Change) -> list[Key]:
    """The claims of a pod that has just got its node."""
    was = change.previous.fields.get("spec.nodeName") if change.previous else ""
    pod = view.pods.get(change.entry.key)
    if pod is None or was or not pod.node:
        return []
    return [Key(CLAIMS, change.entry.key.namespace, claim) for claim in pod.claims]
