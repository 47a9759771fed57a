"""Validation of volume sources.

Most sources only have required fields, which are a table. The others have a rule each.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    not_supported,
    out_of_range,
    required,
)
from bayplan.embedded.apiserver.validation.names import backstep_problems, dns_label, name_problems

SourceRule = Callable[[JsonObject, str], list[FieldCause]]
"""Returns the problems of a source at a field."""

_NEEDS = {
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "glusterfs": ("endpoints", "path"),
    "rbd": ("monitors", "image"),
    "cephfs": ("monitors",),
    "cinder": ("volumeID",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "scaleIO": ("gateway", "system", "volumeName"),
}
_HOST_PATH_TYPES = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate"),
    "Socket",
)
_TENANT_LETTERS = 65
_HOST_PORTS = "must be a host:port pair or multiple pairs separated by commas"
_HOST_PORT = re.compile(r"(\[[^\[\]]*\]|[^\[\]:]*):[^\[\]:]*\Z")
_INITIATORS = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)\Z"),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}\Z"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}\Z"),
}
_TARGET_LETTERS = 64
_CACHING_MODES = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS = ("Dedicated", "Managed", "Shared")
_MANAGED_DISK = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/"
    "{disk-id}"
)
_BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def _needs(source: JsonObject, names: tuple[str, ...], field: str) -> list[FieldCause]:
    return [required(f"{field}.{name}") for name in names if not source.get(name)]


def _host_path(source: JsonObject, field: str) -> list[FieldCause]:
    if not source.get("path"):
        return [required(f"{field}.path")]
    found, type_ = backstep_problems(source["path"], f"{field}.path"), source.get("type")
    if type_ is not None and type_ not in _HOST_PATH_TYPES:
        found.append(not_supported(f"{field}.type", type_, _HOST_PATH_TYPES))
    return found


def _local(source: JsonObject, field: str) -> list[FieldCause]:
    found = _needs(source, ("path",), field)
    return found or backstep_problems(source["path"], f"{field}.path")


def _partition(source: JsonObject, field: str) -> list[FieldCause]:
    number = source.get("partition") or 0
    return [] if 0 <= number <= 255 else [out_of_range(f"{field}.partition", number, 1, 255)]


def _glusterfs(source: JsonObject, field: str) -> list[FieldCause]:
    namespace, place = source.get("endpointsNamespace"), f"{field}.endpointsNamespace"
    if namespace == "":
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        return [bad_value(place, "", detail)]
    return name_problems(dns_label, namespace, place) if namespace else []


def _flocker(source: JsonObject, field: str) -> list[FieldCause]:
    name, uuid = source.get("datasetName") or "", source.get("datasetUUID") or ""
    found: list[FieldCause] = []
    if not name and not uuid:
        found.append(required(field, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        found.append(bad_value(field, "resource", detail))
    if "/" in name:
        found.append(bad_value(f"{field}.datasetName", name, "must not contain '/'"))
    return found


def _nfs(source: JsonObject, field: str) -> list[FieldCause]:
    found, path = _needs(source, ("server", "path"), field), source.get("path") or ""
    if not path.startswith("/"):
        found.append(bad_value(f"{field}.path", path, "must be an absolute path"))
    return found


def _quobyte(source: JsonObject, field: str) -> list[FieldCause]:
    registry, tenant = source.get("registry") or "", source.get("tenant") or ""
    found: list[FieldCause] = []
    if not registry:
        found.append(required(f"{field}.registry", _HOST_PORTS))
    elif len(tenant.encode()) >= _TENANT_LETTERS:
        detail = "must be a UUID and may not exceed a length of 64 characters"
        found.append(required(f"{field}.tenant", detail))
    else:
        wrong = [pair for pair in registry.split(",") if not _HOST_PORT.match(pair)]
        found += [bad_value(f"{field}.registry", registry, _HOST_PORTS) for _ in wrong[:1]]
    return found + _needs(source, ("volume",), field)


def _iscsi(volume: str, source: JsonObject, field: str) -> list[FieldCause]:
    portal, initiator = source.get("targetPortal") or "", source.get("initiatorName")
    found = _needs(source, ("targetPortal",), field)
    if initiator is not None and len(f"{volume}:{portal}".encode()) > _TARGET_LETTERS:
        detail = (
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
            "iscsi.initiatorName is specified."
        )
        found.append(bad_value(f"{field}.targetportal", portal, detail))
    name = source.get("iqn") or ""
    found += initiator_problems(name, f"{field}.iqn") if name else [required(f"{field}.iqn")]
    found += lun_problems(source.get("lun") or 0, field)
    secret = source.get("secretRef")
    if secret is None and (source.get("chapAuthDiscovery") or source.get("chapAuthSession")):
        found.append(required(f"{field}.secretRef"))
    found += _secret(source, ("name",), field)
    if initiator is not None:
        found += initiator_problems(initiator, f"{field}.initiatorname")
    return found


def initiator_problems(
    name: str, field: str, detail: str = "must be valid format"
) -> list[FieldCause]:
    """Return the problems of an iSCSI name; `detail` is the message for unknown formats."""
    rule = _INITIATORS.get(name[:3])
    if rule is None:
        return [bad_value(field, name, detail)]
    return [] if rule.search(name) else [bad_value(field, name, "must be valid format")]


def lun_problems(number: int, field: str) -> list[FieldCause]:
    """Return the problems of a LUN."""
    return [] if 0 <= number <= 255 else [out_of_range(f"{field}.lun", number, 0, 255)]


def _secret(source: JsonObject, names: tuple[str, ...], field: str) -> list[FieldCause]:
    secret = source.get("secretRef")
    return [] if secret is None else _needs(secret, names, f"{field}.secretRef")


def _cinder(source: JsonObject, field: str) -> list[FieldCause]:
    return _secret(source, ("name", "namespace"), field)


def _fc(source: JsonObject, field: str) -> list[FieldCause]:
    names, ids, lun = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    found: list[FieldCause] = []
    if not names and not ids:
        detail = "must specify either targetWWNs or wwids, but not both"
        found.append(required(f"{field}.targetWWNs", detail))
    if names and ids:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        found.append(bad_value(f"{field}.targetWWNs", names, detail))
    if names and lun is None:
        found.append(required(f"{field}.lun", "lun is required if targetWWNs is specified"))
    return found + (lun_problems(lun, field) if names and lun is not None else [])


def _flex(source: JsonObject, field: str) -> list[FieldCause]:
    found = _needs(source, ("driver",), field)
    for key in source.get("options") or ():
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            found.append(bad_value(f"{field}.options[{key}]", key, detail))
    return found


def _azure_file(source: JsonObject, field: str) -> list[FieldCause]:
    named = source.get("secretNamespace") != ""
    return [] if named else [required(f"{field}.secretNamespace")]


def _azure_disk(source: JsonObject, field: str) -> list[FieldCause]:
    found = _needs(source, ("diskName", "diskURI"), field)
    caching, kind, uri = source.get("cachingMode"), source.get("kind"), source.get("diskURI") or ""
    if caching is not None and caching not in _CACHING_MODES:
        found.append(not_supported(f"{field}.cachingMode", caching, _CACHING_MODES))
    if kind is not None and kind not in _DISK_KINDS:
        found.append(not_supported(f"{field}.kind", kind, _DISK_KINDS))
    wanted = _MANAGED_DISK if kind == "Managed" else _BLOB_DISK
    start = "/subscriptions/" if kind == "Managed" else "https://"
    if kind is not None and not uri.startswith(start):
        found.append(not_supported(f"{field}.diskURI", uri, (wanted,)))
    return found


def _storage_os(source: JsonObject, field: str) -> list[FieldCause]:
    found = _needs(source, ("volumeName",), field)
    for name in ("volumeName", "volumeNamespace"):
        if source.get(name):
            found += name_problems(dns_label, source[name], f"{field}.{name}")
    return found + _secret(source, ("name", "namespace"), field)


_RULES: dict[str, SourceRule] = {
    "hostPath": _host_path,
    "gcePersistentDisk": _partition,
    "awsElasticBlockStore": _partition,
    "glusterfs": _glusterfs,
    "flocker": _flocker,
    "nfs": _nfs,
    "quobyte": _quobyte,
    "cinder": _cinder,
    "fc": _fc,
    "flexVolume": _flex,
    "azureFile": _azure_file,
    "azureDisk": _azure_disk,
    "local": _local,
    "storageos": _storage_os,
}


def source_rule(source: str, volume: str) -> SourceRule:
    """Return the rule for a source of a volume."""
    if source == "iscsi":
        return partial(_iscsi, volume)

    def check(given: JsonObject, field: str) -> list[FieldCause]:
        found = _needs(given, _NEEDS.get(source, ()), field)
        rule = _RULES.get(source)
        return found if rule is None else found + rule(given, field)

    return check
