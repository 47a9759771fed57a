"""What of a persistent volume must stay as it was, and what of one nobody should use now."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject, clone
from bayplan.embedded.apiserver.schema.internal import difference, internal_form
from bayplan.embedded.apiserver.validation.causes import (
    IMMUTABLE,
    bad_value,
    forbidden_field,
    immutable,
)
from bayplan.embedded.apiserver.validation.nodeselectors import expression_deprecations
from bayplan.embedded.apiserver.validation.volumes import MOUNT_OPTIONS, SOURCES

_OLD_SOURCES = {
    "cephfs": "spec.cephfs: deprecated in v1.28, non-functional in v1.31+",
    "photonPersistentDisk": (
        "spec.photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+"
    ),
    "scaleIO": "spec.scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "storageos": "spec.storageOS: deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "spec.glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "rbd": "spec.rbd: deprecated in v1.28, non-functional in v1.31+",
}
OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
CLASS_ADVICE = 'deprecated since v1.8; use "storageClassName" attribute instead'
_OLD_ANNOTATIONS = {
    OLD_CLASS: CLASS_ADVICE,
    MOUNT_OPTIONS: 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_RENAMED_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


def volume_change_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """What of a volume must stay as it was: its source, its mode, where it can be reached."""
    found: list[Cause] = []
    before, after = _sources(old["spec"]), _sources(new["spec"])
    if "csi" in before and "csi" in after and "controllerExpandSecretRef" not in before["csi"]:
        after["csi"] = {**after["csi"]}
        after["csi"].pop("controllerExpandSecretRef", None)
    if after != before:
        why = "spec.persistentvolumesource is immutable after creation"
        shown = difference(before, after, "core.PersistentVolumeSource")
        found.append(forbidden_field("spec.persistentvolumesource", f"{why}\n{shown}"))
    if new["spec"].get("volumeMode") != old["spec"].get("volumeMode"):
        found.append(immutable("volumeMode", new["spec"].get("volumeMode")))
    affinity = old["spec"].get("nodeAffinity")
    if affinity is not None and new["spec"].get("nodeAffinity") != affinity:
        found += _affinity_change_problems(new["spec"].get("nodeAffinity"), affinity)
    name = "volumeAttributesClassName"
    if old["spec"].get(name) is not None and new["spec"].get(name) is None:
        why = "update from non-nil value to nil is forbidden"
        found.append(forbidden_field(f"spec.{name}", why))
    return found


def _affinity_change_problems(new: JsonObject | None, old: JsonObject) -> list[Cause]:
    if new is not None and new == _with_new_labels(old, new):
        return []
    shown = internal_form(new, "core.VolumeNodeAffinity") if new is not None else None
    why = f"{IMMUTABLE}, except for updating from beta label to GA"
    return [bad_value("nodeAffinity", shown, why)]


def _with_new_labels(old: JsonObject, new: JsonObject) -> JsonObject:
    """What nodes a volume was bound to, with labels under their new name where they got it."""
    old = clone(old)
    for before, after in zip(_expressions(old), _expressions(new), strict=False):
        if _RENAMED_LABELS.get(before.get("key") or "") == after.get("key"):
            before["key"] = after.get("key")
    return old


def _expressions(affinity: JsonObject) -> list[JsonObject]:
    terms = (affinity.get("required") or {}).get("nodeSelectorTerms") or ()
    return [
        one
        for term in terms
        for name in ("matchExpressions", "matchFields")
        for one in term.get(name) or ()
    ]


def _sources(spec: JsonObject) -> JsonObject:
    return {source: spec[source] for source in SOURCES if spec.get(source) is not None}


def volume_warnings(volume: JsonObject, _: JsonObject | None) -> list[str]:
    """What of a volume nobody should use now."""
    spec, annotations = volume["spec"], volume["metadata"].get("annotations") or {}
    found = [
        f"metadata.annotations[{key}]: {said}"
        for key, said in _OLD_ANNOTATIONS.items()
        if key in annotations
    ]
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        found.append(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
            "Instead, the recommended approach is to use dynamic provisioning."
        )
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms")
    for index, term in enumerate(terms or ()):
        field = f"spec.nodeAffinity.required.nodeSelectorTerms[{index}].matchExpressions"
        found += expression_deprecations(term.get("matchExpressions"), field)
    return found + [said for source, said in _OLD_SOURCES.items() if spec.get(source) is not None]
