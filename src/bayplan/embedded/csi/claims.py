"""What a claim and its volume look like once they belong to each other."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.control.controller import Edit
from bayplan.embedded.csi.drivers import Driver
from bayplan.kube.storage import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE

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
