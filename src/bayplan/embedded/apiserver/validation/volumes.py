"""Validation of persistent volumes.

A volume has one source. Most sources only have required fields, which are a table. Field names in
errors are kube-apiserver's, which are not always those of the field.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject, clone
from bayplan.embedded.apiserver.schema.internal import difference, internal_form
from bayplan.embedded.apiserver.validation.causes import (
    IMMUTABLE,
    bad_value,
    forbidden_field,
    immutable,
    not_supported,
    required,
    too_long,
)
from bayplan.embedded.apiserver.validation.names import dns_label, name_problems, subdomain
from bayplan.embedded.apiserver.validation.numbers import basic_problems, not_positive
from bayplan.embedded.apiserver.validation.selectors import (
    expression_deprecations,
    node_selector_problems,
)
from bayplan.embedded.apiserver.validation.volumesources import SourceRule, source_rule

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_DRIVER_LETTERS = 63
_INLINE = "in the context of inline volumes"
SOURCES = {
    "hostPath": ("hostPath", "hostPath"),
    "gcePersistentDisk": ("gcePersistentDisk", "persistentDisk"),
    "awsElasticBlockStore": ("awsElasticBlockStore", "awsElasticBlockStore"),
    "glusterfs": ("glusterfs", "glusterfs"),
    "flocker": ("flocker", "flocker"),
    "nfs": ("nfs", "nfs"),
    "rbd": ("rbd", "rbd"),
    "quobyte": ("quobyte", "quobyte"),
    "cephfs": ("cephFS", "cephfs"),
    "iscsi": ("iscsi", "iscsi"),
    "cinder": ("cinder", "cinder"),
    "fc": ("fc", "fc"),
    "flexVolume": ("", "flexVolume"),
    "azureFile": ("azureFile", "azureFile"),
    "vsphereVolume": ("vsphereVolume", "vsphereVolume"),
    "photonPersistentDisk": ("photonPersistentDisk", "photonPersistentDisk"),
    "portworxVolume": ("portworxVolume", "portworxVolume"),
    "azureDisk": ("azureDisk", "azureDisk"),
    "scaleIO": ("scaleIO", "scaleIO"),
    "local": ("local", "local"),
    "storageos": ("storageos", "storageos"),
    "csi": ("csi", "csi"),
}
"""Sources in the order of validation, with the name in an error about a second source and in
errors about the source itself. A source that cannot be second has no such name.
"""
_MOUNTABLE = frozenset(
    (
        *("gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte"),
        *("iscsi", "cinder", "cephfs", "azureFile", "vsphereVolume", "azureDisk"),
        "photonPersistentDisk",
    )
)
"""Sources that support the mount options annotation."""


def volume_problems(volume: JsonObject) -> list[FieldCause]:
    """Return the problems of a persistent volume."""
    found = volume_spec_problems(volume["spec"], volume["metadata"].get("name") or "", "spec")
    mounts = MOUNT_OPTIONS in (volume["metadata"].get("annotations") or {})
    if mounts and not _MOUNTABLE & volume["spec"].keys():
        detail = "may not specify mount options for this volume type"
        found.append(forbidden_field(f"metadata.annotations.{MOUNT_OPTIONS}", detail))
    return found


def volume_spec_problems(
    spec: JsonObject, name: str, field: str, *, inline: bool = False
) -> list[FieldCause]:
    """Return the problems of a volume's spec, also of one inside an attachment."""
    found = _inline_problems(spec, field) if inline else []
    modes = spec.get("accessModes") or []
    if not modes:
        found.append(required(f"{field}.accessModes"))
    found += access_mode_problems(modes, f"{field}.accessModes")
    if not inline:
        found += _capacity_problems(spec.get("capacity") or {}, f"{field}.capacity")
    found += _policy_problems(spec, field, inline=inline)
    found += _affinity_problems(spec, field, inline=inline)
    found += _source_problems(spec, name, field)
    found += _root_problems(spec, field)
    found += _class_problems(spec, field, inline=inline)
    found += _mode_problems(spec, field, inline=inline)
    return found if inline else found + _attribute_problems(spec, field)


def _inline_problems(spec: JsonObject, field: str) -> list[FieldCause]:
    found = [
        forbidden_field(f"{field}.{name}", f"may not be specified {_INLINE}")
        for name in ("claimRef", "capacity")
        if spec.get(name) is not None
    ]
    if spec.get("csi") is None:
        found.append(required(f"{field}.csi", f"has to be specified {_INLINE}"))
    return found


def access_mode_problems(modes: list[str], field: str) -> list[FieldCause]:
    """Return the problems of access modes."""
    found = [not_supported(field, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        detail = "may not use ReadWriteOncePod with other access modes"
        found.append(forbidden_field(field, detail))
    return found


def _capacity_problems(capacity: JsonObject, field: str) -> list[FieldCause]:
    found = [] if capacity else [required(field)]
    if "storage" not in capacity or len(capacity) > 1:
        found.append(not_supported(field, dict(sorted(capacity.items())) or None, ("storage",)))
    for name, amount in capacity.items():
        found += basic_problems(amount, f"{field}[{name}]")
        found += not_positive(amount, f"{field}[{name}]")
    return found


def _policy_problems(spec: JsonObject, field: str, *, inline: bool) -> list[FieldCause]:
    policy, place = (
        spec.get("persistentVolumeReclaimPolicy"),
        f"{field}.persistentVolumeReclaimPolicy",
    )
    if not policy or policy in (("Retain",) if inline else _RECLAIM_POLICIES):
        return []
    if inline:
        return [forbidden_field(place, f"may only be Retain {_INLINE}")]
    return [not_supported(place, policy, _RECLAIM_POLICIES)]


def _affinity_problems(spec: JsonObject, field: str, *, inline: bool) -> list[FieldCause]:
    affinity, place = spec.get("nodeAffinity"), f"{field}.nodeAffinity"
    if affinity is None:
        return []
    if inline:
        return [forbidden_field(place, f"may not be specified {_INLINE}")]
    if affinity.get("required") is None:
        return [required(f"{place}.required", "must specify required node constraints")]
    return node_selector_problems(affinity["required"], f"{place}.required")


def _source_problems(spec: JsonObject, name: str, field: str) -> list[FieldCause]:
    given = [source for source in SOURCES if spec.get(source) is not None]
    if not given:
        return [required(field, "must specify a volume type")]
    found: list[FieldCause] = []
    for index, source in enumerate(given):
        second, message = SOURCES[source]
        if index and second:
            detail = "may not specify more than 1 volume type"
            found.append(forbidden_field(f"{field}.{second}", detail))
            continue
        found += _rule_of(source, name)(spec[source], f"{field}.{message}")
        if source == "local" and spec.get("nodeAffinity") is None:
            detail = "Local volume requires node affinity"
            found.append(required(f"{field}.nodeAffinity", detail))
    return found


def _rule_of(source: str, name: str) -> SourceRule:
    return csi_problems if source == "csi" else source_rule(source, name)


def driver_name_problems(name: str, field: str) -> list[FieldCause]:
    """Return the problems of the name of a CSI driver."""
    if not name:
        return [required(field)]
    found = [too_long(field, _DRIVER_LETTERS)] if len(name.encode()) > _DRIVER_LETTERS else []
    return found + [bad_value(field, name, detail) for detail in subdomain(name.lower())]


def csi_problems(csi: JsonObject, field: str) -> list[FieldCause]:
    """Return the problems of a volume of a CSI driver."""
    found = driver_name_problems(csi.get("driver") or "", f"{field}.driver")
    if not csi.get("volumeHandle"):
        found.append(required(f"{field}.volumeHandle"))
    for name in ("controllerPublish", "controllerExpand", "nodePublish", "nodeExpand"):
        if (secret := csi.get(f"{name}SecretRef")) is not None:
            found += _secret_problems(secret, f"{field}.{name}SecretRef")
    return found


def _secret_problems(secret: JsonObject, field: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    rules: dict[str, Callable[[str], list[str]]] = {"name": subdomain, "namespace": dns_label}
    for name, rule in rules.items():
        value = secret.get(name)
        found += (
            name_problems(rule, value, f"{field}.{name}")
            if value
            else [required(f"{field}.{name}")]
        )
    return found


def _root_problems(spec: JsonObject, field: str) -> list[FieldCause]:
    path = (spec.get("hostPath") or {}).get("path")
    recycled = spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    if not path or not recycled or posixpath.normpath(path) not in ("/", "//"):
        return []
    detail = "may not be 'recycle' for a hostPath mount of '/'"
    return [forbidden_field(f"{field}.persistentVolumeReclaimPolicy", detail)]


def _class_problems(spec: JsonObject, field: str, *, inline: bool) -> list[FieldCause]:
    name = spec.get("storageClassName")
    if not name:
        return []
    if inline:
        return [forbidden_field(f"{field}.storageClassName", f"may not be specified {_INLINE}")]
    return name_problems(subdomain, name, f"{field}.storageClassName")


def _mode_problems(spec: JsonObject, field: str, *, inline: bool) -> list[FieldCause]:
    mode = spec.get("volumeMode")
    if mode is None or mode in (("Filesystem",) if inline else VOLUME_MODES):
        return []
    if inline:
        detail = f"may not specify volumeMode other than Filesystem {_INLINE}"
        return [forbidden_field(f"{field}.volumeMode", detail)]
    return [not_supported(f"{field}.volumeMode", mode, VOLUME_MODES)]


def _attribute_problems(spec: JsonObject, field: str) -> list[FieldCause]:
    name, place = spec.get("volumeAttributesClassName"), f"{field}.volumeAttributesClassName"
    if name is None:
        return []
    found = (
        name_problems(subdomain, name, place)
        if name
        else [required(place, "an empty string is disallowed")]
    )
    if spec.get("csi") is None:
        detail = "has to be specified when using volumeAttributesClassName"
        found.append(required(f"{field}.csi", detail))
    return found


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


def volume_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a change: source, volume mode and node affinity are immutable."""
    found: list[FieldCause] = []
    before, after = _sources(old["spec"]), _sources(new["spec"])
    if "csi" in before and "csi" in after and "controllerExpandSecretRef" not in before["csi"]:
        after["csi"] = {**after["csi"]}
        after["csi"].pop("controllerExpandSecretRef", None)
    if after != before:
        detail = "spec.persistentvolumesource is immutable after creation"
        shown = difference(before, after, "core.PersistentVolumeSource")
        found.append(forbidden_field("spec.persistentvolumesource", f"{detail}\n{shown}"))
    if new["spec"].get("volumeMode") != old["spec"].get("volumeMode"):
        found.append(immutable("volumeMode", new["spec"].get("volumeMode")))
    affinity = old["spec"].get("nodeAffinity")
    if affinity is not None and new["spec"].get("nodeAffinity") != affinity:
        found += _affinity_change_problems(new["spec"].get("nodeAffinity"), affinity)
    name = "volumeAttributesClassName"
    if old["spec"].get(name) is not None and new["spec"].get(name) is None:
        detail = "update from non-nil value to nil is forbidden"
        found.append(forbidden_field(f"spec.{name}", detail))
    return found


def _affinity_change_problems(new: JsonObject | None, old: JsonObject) -> list[FieldCause]:
    if new is not None and new == _with_new_labels(old, new):
        return []
    shown = internal_form(new, "core.VolumeNodeAffinity") if new is not None else None
    detail = f"{IMMUTABLE}, except for updating from beta label to GA"
    return [bad_value("nodeAffinity", shown, detail)]


def _with_new_labels(old: JsonObject, new: JsonObject) -> JsonObject:
    """Return the old node affinity with renamed labels where the new one has them."""
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
    """Return the warnings about deprecated fields of a volume."""
    spec, annotations = volume["spec"], volume["metadata"].get("annotations") or {}
    found = [
        f"metadata.annotations[{key}]: {message}"
        for key, message in _OLD_ANNOTATIONS.items()
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
    return found + [
        message for source, message in _OLD_SOURCES.items() if spec.get(source) is not None
    ]
