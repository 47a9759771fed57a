"""A pod's volumes: one source each, said in full."""

from __future__ import annotations

import re

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    not_supported,
    out_of_range,
    required,
    too_long,
)
from bayplan.embedded.apiserver.validation.names import dns_label, name_problems, subdomain
from bayplan.embedded.apiserver.validation.paths import backstep_problems, descending_problems
from bayplan.embedded.apiserver.validation.pods.choices import (
    Rule,
    choice,
    needed,
    optional_name,
    required_choice,
    required_name,
)
from bayplan.embedded.apiserver.validation.pods.claimtemplates import claim_template_problems
from bayplan.embedded.apiserver.validation.pods.mounts import Volumes
from bayplan.embedded.apiserver.validation.pods.projections import (
    config_problems,
    downward_problems,
    projected_problems,
    secret_problems,
)
from bayplan.kube.quantity import parse as amount

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate",
    "Socket",
)  # fmt: skip
_ISCSI = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([0-9A-Za-z\-.]+)(:[^,;*&$|\s]+)\Z"),
    "eui": re.compile(r"^eui.[0-9A-Za-z]{16}\Z"),
    "naa": re.compile(r"^naa.[0-9A-Za-z]{32}\Z"),
}
_DISK_URIS = {
    True: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/"
    "{disk-id}",
    False: "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
}


def volume_list_problems(spec: JsonObject, at: str, pod: str | None) -> tuple[Volumes, list[Cause]]:
    """The volumes that are in order, and what is wrong with the others.

    `pod` is the pod's name, after which its own claims are named; None for a template.
    """
    volumes = spec.get("volumes") or ()
    own = {
        f"{pod}-{one.get('name')}" for one in volumes if pod and one.get("ephemeral") is not None
    }
    good: Volumes = {}
    found: list[Cause] = []
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
            why = "must not reference a PVC that gets created for an ephemeral volume"
            found.append(bad_value(f"{place}.persistentVolumeClaim.claimName", claim, why))
    return good, found


def _source_problems(volume: JsonObject, at: str, pod: str | None) -> list[Cause]:
    said = [kind for kind in _RULES if volume.get(kind) is not None]
    if not said:
        return [required(at, "must specify a volume type")]
    first, *others = said
    found = []
    if first == "image" and pod is not None:
        found += needed("reference")(volume[first], f"{at}.image")
    found += _RULES[first](volume[first], f"{at}.{_FIELDS.get(first, first)}")
    why = "may not specify more than 1 volume type"
    found += [forbidden_field(f"{at}.{_SPELLED.get(kind, kind)}", why) for kind in others]
    if volume.get("iscsi") is not None:
        found += _portal_problems(volume, at)
    if first == "ephemeral" and pod and volume.get("name"):
        claim = f"{pod}-{volume['name']}"
        found += [
            bad_value(f"{at}.name", volume["name"], f'PVC name "{claim}": {why}')
            for why in subdomain(claim)
        ]
    return found


_FIELDS = {"gcePersistentDisk": "persistentDisk"}
_SPELLED = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Where kube-apiserver calls a field otherwise than the API does."""


def _empty_dir(source: JsonObject, at: str) -> list[Cause]:
    if amount(source.get("sizeLimit") or "0") >= 0:
        return []
    return [forbidden_field(f"{at}.sizeLimit", "SizeLimit field must be a valid resource quantity")]


def _host_path(source: JsonObject, at: str) -> list[Cause]:
    if not source.get("path"):
        return [required(f"{at}.path")]
    found = backstep_problems(source["path"], f"{at}.path")
    return found + choice(source.get("type"), f"{at}.type", _HOST_PATH_TYPES)


def _git_repo(source: JsonObject, at: str) -> list[Cause]:
    found = needed("repository")(source, at)
    return found + descending_problems(source.get("directory") or "", f"{at}.directory")


def _disk(name: str) -> Rule:
    """A cloud's disk by its name, perhaps one partition of it."""

    def check(source: JsonObject, at: str) -> list[Cause]:
        found = needed(name)(source, at)
        partition = source.get("partition") or 0
        if not 0 <= partition <= 255:
            found.append(out_of_range(f"{at}.partition", partition, 1, 255))
        return found

    return check


def _nfs(source: JsonObject, at: str) -> list[Cause]:
    found, path = needed("server", "path")(source, at), source.get("path") or ""
    if not path.startswith("/"):
        found.append(bad_value(f"{at}.path", path, "must be an absolute path"))
    return found


def _iscsi(source: JsonObject, at: str) -> list[Cause]:
    found = needed("targetPortal", "iqn")(source, at)
    if source.get("iqn"):
        found += _initiator_problems(source["iqn"], f"{at}.iqn")
    found += _lun_problems(source.get("lun") or 0, at)
    chap = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if chap and source.get("secretRef") is None:
        found.append(required(f"{at}.secretRef"))
    if source.get("initiatorName") is not None:
        found += _initiator_problems(source["initiatorName"], f"{at}.initiatorname")
    return found


def _initiator_problems(name: str, at: str) -> list[Cause]:
    pattern = _ISCSI.get(name[:3])
    if pattern is None:
        return [bad_value(at, name, "must be valid format starting with iqn, eui, or naa")]
    return [] if pattern.search(name) else [bad_value(at, name, "must be valid format")]


def _lun_problems(lun: int, at: str) -> list[Cause]:
    return [] if 0 <= lun <= 255 else [out_of_range(f"{at}.lun", lun, 0, 255)]


def _portal_problems(volume: JsonObject, at: str) -> list[Cause]:
    source, name = volume["iscsi"], volume.get("name") or ""
    portal = f"{name}:{source.get('targetPortal') or ''}"
    if source.get("initiatorName") is None or len(portal) <= 64:
        return []
    why = (
        "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
        "iscsi.initiatorName is specified."
    )
    return [bad_value(f"{at}.name", name, why)]


def _flocker(source: JsonObject, at: str) -> list[Cause]:
    name, uid = source.get("datasetName") or "", source.get("datasetUUID")
    found = []
    if not name and not uid:
        found.append(required(at, "one of datasetName and datasetUUID is required"))
    if name and uid:
        why = "datasetName and datasetUUID can not be specified simultaneously"
        found.append(bad_value(at, "resource", why))
    if "/" in name:
        found.append(bad_value(f"{at}.datasetName", name, "must not contain '/'"))
    return found


def _fibre_channel(source: JsonObject, at: str) -> list[Cause]:
    targets, ids, field = source.get("targetWWNs"), source.get("wwids"), f"{at}.targetWWNs"
    if not targets:
        why = "must specify either targetWWNs or wwids, but not both"
        return [] if ids else [required(field, why)]
    found = []
    if ids:
        why = "targetWWNs and wwids can not be specified simultaneously"
        found.append(bad_value(field, targets, why))
    if source.get("lun") is None:
        found.append(required(f"{at}.lun", "lun is required if targetWWNs is specified"))
    else:
        found += _lun_problems(source["lun"], at)
    return found


def _cinder(source: JsonObject, at: str) -> list[Cause]:
    found = needed("volumeID")(source, at)
    if source.get("secretRef") is not None:
        found += needed("name")(source["secretRef"], f"{at}.secretRef")
    return found


def _flex(source: JsonObject, at: str) -> list[Cause]:
    found = needed("driver")(source, at)
    for key in source.get("options") or {}:
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            found.append(bad_value(f"{at}.options[{key}]", key, why))
    return found


def _quobyte(source: JsonObject, at: str) -> list[Cause]:
    registry, found = source.get("registry") or "", []
    pairs = "must be a host:port pair or multiple pairs separated by commas"
    if not registry:
        found.append(required(f"{at}.registry", pairs))
    elif len(source.get("tenant") or "") >= 65:
        why = "must be a UUID and may not exceed a length of 64 characters"
        found.append(required(f"{at}.tenant", why))
    else:
        found += [
            bad_value(f"{at}.registry", registry, pairs)
            for pair in registry.split(",")
            if not re.fullmatch(r"([^:\[\]]*|\[[^\[\]]*\]):[^:\[\]]*", pair)
        ]
    return found + needed("volume")(source, at)


def _azure_disk(source: JsonObject, at: str) -> list[Cause]:
    found = needed("diskName", "diskURI")(source, at)
    kind, uri = source.get("kind"), source.get("diskURI") or ""
    caching = source.get("cachingMode")
    found += choice(caching, f"{at}.cachingMode", ("None", "ReadOnly", "ReadWrite"))
    found += choice(kind, f"{at}.kind", ("Dedicated", "Managed", "Shared"))
    if kind is not None:
        managed = kind == "Managed"
        if not uri.startswith("/subscriptions/" if managed else "https://"):
            found.append(not_supported(f"{at}.diskURI", uri, (_DISK_URIS[managed],)))
    return found


def _storage_os(source: JsonObject, at: str) -> list[Cause]:
    found = required_name(source.get("volumeName"), f"{at}.volumeName", dns_label)
    found += optional_name(source.get("volumeNamespace"), f"{at}.volumeNamespace", dns_label)
    if source.get("secretRef") is not None:
        found += needed("name")(source["secretRef"], f"{at}.secretRef")
    return found


def driver_name_problems(name: str, at: str) -> list[Cause]:
    """What is wrong with the name of a CSI driver."""
    if not name:
        return [required(at)]
    found = [too_long(at, 63)] if len(name) > 63 else []
    return found + [bad_value(at, name, why) for why in subdomain(name.lower())]


def _csi(source: JsonObject, at: str) -> list[Cause]:
    found = driver_name_problems(source.get("driver") or "", f"{at}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is not None:
        name = secret.get("name")
        if not name:
            found.append(required(f"{at}.nodePublishSecretRef.name"))
        else:
            found += name_problems(subdomain, name, f"{at}.name")
    return found


def _ephemeral(source: JsonObject, at: str) -> list[Cause]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{at}.volumeClaimTemplate")]
    return claim_template_problems(template, f"{at}.volumeClaimTemplate")


def _image(source: JsonObject, at: str) -> list[Cause]:
    return required_choice(source.get("pullPolicy"), f"{at}.pullPolicy", PULL_POLICIES)


_RULES: dict[str, Rule] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "secret": secret_problems,
    "nfs": _nfs,
    "iscsi": _iscsi,
    "glusterfs": needed("endpoints", "path"),
    "flocker": _flocker,
    "persistentVolumeClaim": needed("claimName"),
    "rbd": needed("monitors", "image"),
    "cinder": _cinder,
    "cephfs": needed("monitors"),
    "quobyte": _quobyte,
    "downwardAPI": downward_problems,
    "fc": _fibre_channel,
    "flexVolume": _flex,
    "configMap": config_problems,
    "azureFile": needed("secretName", "shareName"),
    "vsphereVolume": needed("volumePath"),
    "photonPersistentDisk": needed("pdID"),
    "portworxVolume": needed("volumeID"),
    "azureDisk": _azure_disk,
    "storageos": _storage_os,
    "projected": projected_problems,
    "scaleIO": needed("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
"""Every kind of volume, in the order in which they are looked at."""
