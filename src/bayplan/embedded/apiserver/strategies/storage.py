"""Strategies of claims, volumes, storage classes, CSI drivers and attachments."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.strategy import (
    Now,
    RestStrategy,
    child,
    fill,
    round_amounts,
)
from bayplan.embedded.apiserver.validation import claims, storage
from bayplan.embedded.apiserver.validation.volumes import (
    volume_change_problems,
    volume_problems,
    volume_warnings,
)

SOURCES: dict[str, JsonObject] = {
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "iscsi": {"iscsiInterface": "default"},
    "hostPath": {"type": ""},
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "readOnly": False,
        "kind": "Shared",
    },
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
"""Defaults of the in-tree volume sources."""
_KEPT_BY_STATUS = ("labels", "annotations", "finalizers", "ownerReferences")


def default_claim_spec(spec: JsonObject) -> None:
    """Set the defaults of a claim's spec."""
    fill(spec, volumeMode="Filesystem")
    resources = spec.get("resources") or {}
    for field in ("limits", "requests"):
        round_amounts(resources.get(field))


def _default_claim(claim: JsonObject) -> None:
    default_claim_spec(child(claim, "spec"))


def _new_claim(claim: JsonObject) -> None:
    claim["status"] = {"phase": "Pending"}
    _settle_sources(claim["spec"], {})


def _changed_claim(new: JsonObject, old: JsonObject) -> None:
    _settle_sources(new["spec"], old["spec"])


def _claim_status(new: JsonObject, _: JsonObject, __: Now) -> None:
    status = child(new, "status")
    fill(status, phase="Pending")
    for field in ("capacity", "allocatedResources"):
        round_amounts(status.get(field))


def _settle_sources(spec: JsonObject, old: JsonObject) -> None:
    """Set both data source fields alike, without unknown kinds."""
    reference = spec.get("dataSourceRef")
    if reference and reference.get("namespace") and not old.get("dataSourceRef"):
        del spec["dataSourceRef"]
    had = old.get("dataSource") or old.get("dataSourceRef")
    if not had and not spec.get("dataSourceRef") and not _is_known(spec.get("dataSource") or {}):
        spec.pop("dataSource", None)
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {key: reference[key] for key in reference if key != "namespace"}


def _is_known(source: JsonObject) -> bool:
    named = (source.get("apiGroup") or "", source.get("kind"))
    snapshot = ("snapshot.storage.k8s.io", "VolumeSnapshot")
    return named in (("", "PersistentVolumeClaim"), snapshot)


def default_volume_spec(spec: JsonObject) -> None:
    """Set the defaults of a volume's spec."""
    for source, defaults in SOURCES.items():
        if spec.get(source) is not None:
            fill(spec[source], **defaults)


def _default_volume(volume: JsonObject) -> None:
    spec = child(volume, "spec")
    fill(spec, volumeMode="Filesystem", persistentVolumeReclaimPolicy="Retain")
    round_amounts(spec.get("capacity"))
    default_volume_spec(spec)


def _new_volume(volume: JsonObject) -> None:
    created = volume["metadata"]["creationTimestamp"]
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": created}


def _volume_status(new: JsonObject, old: JsonObject, now: Now) -> None:
    """Set the last transition time when the phase changes."""
    status, before = child(new, "status"), old.get("status") or {}
    fill(status, phase="Pending")
    since, time = before.get("lastPhaseTransitionTime"), status.get("lastPhaseTransitionTime")
    if status["phase"] != before.get("phase"):
        if time in (None, since):
            status["lastPhaseTransitionTime"] = now()
    elif time is None and since is not None:
        status["lastPhaseTransitionTime"] = since


def _default_class(obj: JsonObject) -> None:
    fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _default_driver(driver: JsonObject) -> None:
    fill(
        child(driver, "spec"),
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        volumeLifecycleModes=["Persistent"],
        requiresRepublish=False,
        seLinuxMount=False,
    )


def _changed_driver(new: JsonObject, old: JsonObject) -> None:
    """Count changes in the generation, from the first one on."""
    if new["spec"] != old["spec"]:
        new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1


def _default_attachment(obj: JsonObject) -> None:
    inline = ((obj.get("spec") or {}).get("source") or {}).get("inlineVolumeSpec")
    if inline is not None:
        default_volume_spec(inline)


def _attachment_status(new: JsonObject, old: JsonObject, _: Now) -> None:
    """Keep the metadata in a status update."""
    for field in _KEPT_BY_STATUS:
        if field in old["metadata"]:
            new["metadata"][field] = old["metadata"][field]
        else:
            new["metadata"].pop(field, None)


STORAGE = {
    "persistentvolumeclaims": RestStrategy(
        default=_default_claim,
        prepare_create=_new_claim,
        prepare_update=_changed_claim,
        prepare_status=_claim_status,
        validate=claims.claim_problems,
        validate_update=claims.claim_change_problems,
        validate_status=claims.claim_status_problems,
        warnings=claims.claim_warnings,
        returns_deleted=True,
    ),
    "persistentvolumes": RestStrategy(
        default=_default_volume,
        prepare_create=_new_volume,
        prepare_status=_volume_status,
        validate=volume_problems,
        validate_update=volume_change_problems,
        warnings=volume_warnings,
        returns_deleted=True,
    ),
    "storageclasses.storage.k8s.io": RestStrategy(
        default=_default_class,
        validate=storage.class_problems,
        validate_update=storage.class_change_problems,
        warnings=storage.class_warnings,
        returns_deleted=True,
    ),
    "volumeattributesclasses.storage.k8s.io": RestStrategy(
        validate=storage.attributes_class_problems,
        validate_update=storage.attributes_class_change_problems,
        returns_deleted=True,
    ),
    "csidrivers.storage.k8s.io": RestStrategy(
        default=_default_driver,
        prepare_update=_changed_driver,
        validate=storage.driver_problems,
        validate_update=storage.driver_change_problems,
        warnings=storage.driver_warnings,
        returns_deleted=True,
    ),
    "csinodes.storage.k8s.io": RestStrategy(
        validate=storage.csi_node_problems,
        validate_update=storage.csi_node_change_problems,
        returns_deleted=True,
    ),
    "csistoragecapacities.storage.k8s.io": RestStrategy(
        validate=storage.capacity_problems,
        validate_update=storage.capacity_change_problems,
        warnings=storage.capacity_warnings,
    ),
    "volumeattachments.storage.k8s.io": RestStrategy(
        default=_default_attachment,
        prepare_status=_attachment_status,
        validate=storage.attachment_problems,
        validate_update=storage.attachment_change_problems,
        validate_status=storage.attachment_status_problems,
        returns_deleted=True,
    ),
}
