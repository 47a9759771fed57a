"""Validation of a pod's volumes, mounts and devices.

A container has a volume as a directory (a mount) or as a device.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    missing,
    not_supported,
    required,
)
from bayplan.embedded.apiserver.validation.claims import claim_spec_problems
from bayplan.embedded.apiserver.validation.names import (
    annotation_problems,
    descending_problems,
    dns_label,
    label_problems,
    name_problems,
    subdomain,
)
from bayplan.embedded.apiserver.validation.pods.choices import (
    Rule,
    choice,
    needed,
    optional_name,
    required_choice,
    required_name,
)
from bayplan.embedded.apiserver.validation.pods.environment import (
    config_problems,
    downward_problems,
    projected_problems,
    secret_problems,
)
from bayplan.embedded.apiserver.validation.volumes import driver_name_problems
from bayplan.embedded.apiserver.validation.volumesources import (
    initiator_problems,
    lun_problems,
    source_rule,
)
from bayplan.kube.quantity import parse as amount

Volumes = dict[str, JsonObject]
"""The valid volumes of a pod, by name."""
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def mount_problems(container: JsonObject, at: str, volumes: Volumes) -> list[FieldCause]:
    """Return the problems of a container's mounts and devices."""
    mounts = container.get("volumeMounts") or []
    devices = container.get("volumeDevices") or []
    mounted = {one.get("name") or "": one.get("mountPath") or "" for one in mounts}
    attached = {one.get("name") or "": one.get("devicePath") or "" for one in devices}
    return [
        *_mount_list_problems(container, mounts, f"{at}.volumeMounts", volumes, attached),
        *_device_list_problems(devices, f"{at}.volumeDevices", volumes, mounted),
    ]


def _mount_list_problems(
    container: JsonObject,
    mounts: list[JsonObject],
    at: str,
    volumes: Volumes,
    attached: dict[str, str],
) -> list[FieldCause]:
    found: list[FieldCause] = []
    paths: set[str] = set()
    for index, mount in enumerate(mounts):
        place, name, path = f"{at}[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        found += _name_problems(name, place, volumes)
        if not path:
            found.append(required(f"{place}.mountPath"))
        if path in paths:
            found.append(bad_value(f"{place}.mountPath", path, "must be unique"))
        paths.add(path)
        if name in attached:
            found.append(
                bad_value(f"{place}.name", name, "must not already exist in volumeDevices")
            )
        if path in attached.values():
            detail = "must not already exist as a path in volumeDevices"
            found.append(bad_value(f"{place}.mountPath", path, detail))
        found += _mount_option_problems(container, mount, at, place)
    return found


def _name_problems(name: str, place: str, volumes: Volumes) -> list[FieldCause]:
    found = [] if name else [required(f"{place}.name")]
    return found if name in volumes else [*found, missing(f"{place}.name", name)]


def _mount_option_problems(
    container: JsonObject, mount: JsonObject, at: str, place: str
) -> list[FieldCause]:
    """Return the problems of subPath, propagation and read-only mode of a mount."""
    part, pattern = mount.get("subPath") or "", mount.get("subPathExpr") or ""
    found = descending_problems(part, f"{at}.subPath") if part else []
    if pattern:
        if part:
            detail = "subPathExpr and subPath are mutually exclusive"
            found.append(bad_value(f"{place}.subPathExpr", pattern, detail))
        found += descending_problems(pattern, f"{at}.subPathExpr")
    propagation = mount.get("mountPropagation")
    found += choice(propagation, f"{at}.mountPropagation", _PROPAGATIONS)
    privileged = (container.get("securityContext") or {}).get("privileged")
    if propagation == "Bidirectional" and not privileged:
        detail = "Bidirectional mount propagation is available only to privileged containers"
        found.append(forbidden_field(f"{at}.mountPropagation", detail))
    return found + _recursive_problems(mount, f"{at}.recursiveReadOnly")


def _recursive_problems(mount: JsonObject, at: str) -> list[FieldCause]:
    wanted = mount.get("recursiveReadOnly")
    if wanted in (None, "Disabled"):
        return []
    if wanted not in _RECURSIVE:
        return [not_supported(at, wanted, _RECURSIVE)]
    found = []
    if not mount.get("readOnly"):
        found.append(forbidden_field(at, "may only be specified when readOnly is true"))
    if mount.get("mountPropagation") not in (None, "None"):
        detail = "may only be specified when mountPropagation is None or not specified"
        found.append(forbidden_field(at, detail))
    return found


def _device_list_problems(
    devices: list[JsonObject], at: str, volumes: Volumes, mounted: dict[str, str]
) -> list[FieldCause]:
    found: list[FieldCause] = []
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(devices):
        name, path = device.get("name") or "", device.get("devicePath") or ""
        field, place = f"{at}[{index}].name", f"{at}[{index}].devicePath"
        found += _device_name_problems(name, field, names, volumes)
        found += _device_path_problems(path, place, paths)
        if name in mounted:
            found.append(bad_value(field, name, "must not already exist in volumeMounts"))
        if path in mounted.values():
            detail = "must not already exist as a path in volumeMounts"
            found.append(bad_value(place, path, detail))
        names.add(name)
    return found


def _device_name_problems(
    name: str, at: str, names: set[str], volumes: Volumes
) -> list[FieldCause]:
    found = [] if name else [required(at)]
    if name and name in names:
        found.append(bad_value(at, name, "must be unique"))
    volume = volumes.get(name)
    if volume is None:
        found.append(missing(at, name))
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        detail = (
            "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        )
        found.append(bad_value(at, name, detail))
    return found


def _device_path_problems(path: str, at: str, paths: set[str]) -> list[FieldCause]:
    found = [] if path else [required(at)]
    if path in paths:
        found.append(bad_value(at, path, "must be unique"))
    if ".." in path.split("/"):
        found.append(bad_value(at, path, "can not contain backsteps ('..')"))
    else:
        paths.add(path)
    return found


def claim_template_problems(template: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems of the claim template of an ephemeral volume."""
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    found = annotation_problems(meta.get("annotations") or {}, f"{at}.metadata.annotations")
    found += label_problems(meta.get("labels") or {}, f"{at}.metadata.labels")
    found += [
        forbidden_field(f"{at}.metadata.{name}", "cannot be set")
        for name, value in meta.items()
        if value and name not in ("annotations", "labels")
    ]
    return found + claim_spec_problems(spec, f"{at}.spec")


PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_INITIATOR = "must be valid format starting with iqn, eui, or naa"


def volume_list_problems(
    spec: JsonObject, at: str, pod: str | None
) -> tuple[Volumes, list[FieldCause]]:
    """Return the valid volumes, and the problems of the others.

    `pod` is the pod's name, from which claims get theirs; None for a template.
    """
    volumes = spec.get("volumes") or ()
    own = {
        f"{pod}-{one.get('name')}" for one in volumes if pod and one.get("ephemeral") is not None
    }
    good: Volumes = {}
    found: list[FieldCause] = []
    for index, volume in enumerate(volumes):
        place, name = f"{at}[{index}]", volume.get("name") or ""
        wrong = _source_problems(volume, place, pod)
        wrong += required_name(name, f"{place}.name", dns_label)
        if name in good:
            wrong.append(duplicate(f"{place}.name", name))
        if wrong:
            found += wrong
        else:
            good[name] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in own:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            found.append(bad_value(f"{place}.persistentVolumeClaim.claimName", claim, detail))
    return good, found


def _source_problems(volume: JsonObject, at: str, pod: str | None) -> list[FieldCause]:
    sources = [kind for kind in volume if kind in _RULES and volume[kind] is not None]
    sources.sort(key=_ORDER.index)
    if not sources:
        return [required(at, "must specify a volume type")]
    first, *others = sources
    found = []
    if first == "image" and pod is not None:
        found += needed("reference")(volume[first], f"{at}.image")
    found += _RULES[first](volume[first], f"{at}.{_FIELDS.get(first, first)}")
    detail = "may not specify more than 1 volume type"
    found += [forbidden_field(f"{at}.{_SPELLED.get(kind, kind)}", detail) for kind in others]
    if volume.get("iscsi") is not None:
        found += _portal_problems(volume, at)
    if first == "ephemeral" and pod and volume.get("name"):
        claim = f"{pod}-{volume['name']}"
        found += [
            bad_value(f"{at}.name", volume["name"], f'PVC name "{claim}": {detail}')
            for detail in subdomain(claim)
        ]
    return found


_FIELDS = {"gcePersistentDisk": "persistentDisk"}
_SPELLED = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Fields that kube-apiserver's errors name differently."""


def _empty_dir(source: JsonObject, at: str) -> list[FieldCause]:
    if amount(source.get("sizeLimit") or "0") >= 0:
        return []
    return [forbidden_field(f"{at}.sizeLimit", "SizeLimit field must be a valid resource quantity")]


def _git_repo(source: JsonObject, at: str) -> list[FieldCause]:
    found = needed("repository")(source, at)
    return found + descending_problems(source.get("directory") or "", f"{at}.directory")


def _iscsi(source: JsonObject, at: str) -> list[FieldCause]:
    found = needed("targetPortal", "iqn")(source, at)
    if source.get("iqn"):
        found += initiator_problems(source["iqn"], f"{at}.iqn", _INITIATOR)
    found += lun_problems(source.get("lun") or 0, at)
    chap = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if chap and source.get("secretRef") is None:
        found.append(required(f"{at}.secretRef"))
    if source.get("initiatorName") is not None:
        place = f"{at}.initiatorname"
        found += initiator_problems(source["initiatorName"], place, _INITIATOR)
    return found


def _portal_problems(volume: JsonObject, at: str) -> list[FieldCause]:
    source, name = volume["iscsi"], volume.get("name") or ""
    portal = f"{name}:{source.get('targetPortal') or ''}"
    if source.get("initiatorName") is None or len(portal) <= 64:
        return []
    detail = (
        "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
        "iscsi.initiatorName is specified."
    )
    return [bad_value(f"{at}.name", name, detail)]


def _cinder(source: JsonObject, at: str) -> list[FieldCause]:
    found = needed("volumeID")(source, at)
    if source.get("secretRef") is not None:
        found += needed("name")(source["secretRef"], f"{at}.secretRef")
    return found


def _storage_os(source: JsonObject, at: str) -> list[FieldCause]:
    found = required_name(source.get("volumeName"), f"{at}.volumeName", dns_label)
    found += optional_name(source.get("volumeNamespace"), f"{at}.volumeNamespace", dns_label)
    if source.get("secretRef") is not None:
        found += needed("name")(source["secretRef"], f"{at}.secretRef")
    return found


def _csi(source: JsonObject, at: str) -> list[FieldCause]:
    found = driver_name_problems(source.get("driver") or "", f"{at}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is not None:
        name = secret.get("name")
        if not name:
            found.append(required(f"{at}.nodePublishSecretRef.name"))
        else:
            found += name_problems(subdomain, name, f"{at}.name")
    return found


def _ephemeral(source: JsonObject, at: str) -> list[FieldCause]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{at}.volumeClaimTemplate")]
    return claim_template_problems(template, f"{at}.volumeClaimTemplate")


def _image(source: JsonObject, at: str) -> list[FieldCause]:
    return required_choice(source.get("pullPolicy"), f"{at}.pullPolicy", PULL_POLICIES)


_OWN_RULES: dict[str, Rule] = {
    "emptyDir": _empty_dir,
    "gitRepo": _git_repo,
    "secret": secret_problems,
    "iscsi": _iscsi,
    "persistentVolumeClaim": needed("claimName"),
    "cinder": _cinder,
    "downwardAPI": downward_problems,
    "configMap": config_problems,
    "storageos": _storage_os,
    "projected": projected_problems,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
_ORDER = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs",
    "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte",
    "downwardAPI", "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume",
    "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO",
    "csi", "ephemeral", "image",
)  # fmt: skip
_RULES: dict[str, Rule] = {
    kind: _OWN_RULES[kind] if kind in _OWN_RULES else source_rule(kind, "") for kind in _ORDER
}
"""The rules of every volume source, in the order of validation."""
