"""CSI drivers, claims and volumes: their objects and relations."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import ControllerContext, Edit
from bayplan.embedded.control.facts import PodFacts
from bayplan.embedded.control.view import CLAIMS, VOLUMES, StoreView
from bayplan.kube.storage import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """One CSI driver of the cluster."""

    name: str
    topology_key: str = "topology.kubernetes.io/zone"
    """Volumes are accessible where this label has the same value; empty: everywhere."""
    provision_seconds: float = 2.0
    attach_seconds: float = 3.0
    detach_seconds: float = 2.0
    attach_required: bool = True

    def csi_driver(self) -> dict[str, object]:
        """Return its CSIDriver object."""
        spec = {"attachRequired": self.attach_required}
        return {"metadata": {"name": self.name}, "spec": spec}


PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def phase(claim: JsonObject) -> str:
    """Return Pending, Bound or Lost."""
    return str((claim.get("status") or {}).get("phase") or "Pending")


def storage_request(claim: JsonObject) -> str:
    """Return the requested size of a claim."""
    return str(claim["spec"]["resources"]["requests"]["storage"])


def volume_object(claim: JsonObject, class_: JsonObject, driver: Driver, domain: str) -> JsonObject:
    """Return a volume for a claim, in a topology domain (or accessible everywhere)."""
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
    """Return the claimRef of a claim."""
    meta = claim["metadata"]
    reference = {name: meta[name] for name in ("namespace", "name", "uid")}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference}


def bound_spec(volume: str) -> Edit:
    """Return the edit that sets a claim's volume name."""

    def edit(claim: JsonObject) -> JsonObject:
        claim["spec"]["volumeName"] = volume
        notes = claim["metadata"].setdefault("annotations", {})
        notes.update({BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"})
        return claim

    return edit


def bound_status(volume: JsonObject) -> Edit:
    """Return the edit that sets a bound claim's status."""

    def edit(claim: JsonObject) -> JsonObject:
        claim["status"] = {
            "phase": "Bound",
            "accessModes": volume["spec"]["accessModes"],
            "capacity": dict(volume["spec"]["capacity"]),
        }
        return claim

    return edit


def claimed_by(reference: JsonObject) -> Edit:
    """Return the edit that sets a volume's claimRef."""

    def edit(volume: JsonObject) -> JsonObject:
        volume["spec"]["claimRef"] = reference
        return volume

    return edit


def with_phase(phase_: str) -> Edit:
    """Return the edit that sets a volume's phase."""

    def edit(volume: JsonObject) -> JsonObject:
        volume.setdefault("status", {})["phase"] = phase_
        return volume

    return edit


def without_selected_node(claim: JsonObject) -> JsonObject:
    """Remove the selected-node annotation of a claim."""
    (claim["metadata"].get("annotations") or {}).pop(SELECTED_NODE, None)
    return claim


def _affinity(key: str, value: str) -> JsonObject:
    wanted = {"key": key, "operator": "In", "values": [value]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}


class VolumeIndex:
    """The volumes of pods, and whether they are attached."""

    def __init__(self, context: ControllerContext, drivers: Mapping[str, Driver]) -> None:
        self._view = context.view
        self._drivers = drivers

    def needed(self, pod: PodFacts) -> dict[str, Driver]:
        """Return the attachable volumes of a pod by name; those of unbound claims are unknown."""
        found = {}
        for claim in pod.claims:
            name = self._bound(pod.metadata.namespace, claim)
            driver = self._driver(name) if name else None
            if name and driver is not None and driver.attach_required:
                found[name] = driver
        return found

    def is_ready(self, pod: PodFacts) -> bool:
        """Return whether all claims of a pod are bound and their volumes attached."""
        if not pod.spec.volumes:
            return True
        names = [self._bound(pod.metadata.namespace, claim) for claim in pod.claims]
        if not all(names):
            return False
        return all(self.is_attached(name, pod.node) for name in self.needed(pod))

    def is_attached(self, volume: str, node: str) -> bool:
        """Return whether a volume is attached to a node."""
        found = self._view.attachments_of(volume)
        return any(one.spec.node_name == node and one.status.attached for one in found)

    def concerned(self, change: WatchCacheEvent) -> list[ObjectKey]:
        """Return the pods that a change of a claim or an attachment may concern."""
        key = change.entry.key
        if key.storage == CLAIMS:
            return [pod for pod, _ in self._view.pods_using(key.namespace, key.name)]
        found = self._view.attachments.get(key.name)
        return self.users(found.volume) if found is not None and found.status.attached else []

    def users(self, volume: str) -> list[ObjectKey]:
        """Return the pods that use a volume by its claim."""
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


def chosen_node(view: StoreView, key: ObjectKey, claim: JsonObject) -> str:
    """Return the selected node of a claim, or the node of a bound pod that uses it."""
    selected = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
    if selected:
        return str(selected)
    users = view.pods_using(key.namespace, key.name)
    return next((pod.node for _, pod in users if pod.node), "")


def claims_of_bound_pod(view: StoreView, change: WatchCacheEvent) -> list[ObjectKey]:
    """Return the claims of a newly bound pod."""
    was = change.previous.fields.get("spec.nodeName") if change.previous else ""
    pod = view.pods.get(change.entry.key)
    if pod is None or was or not pod.node:
        return []
    return [ObjectKey(CLAIMS, change.entry.key.namespace, claim) for claim in pod.claims]
