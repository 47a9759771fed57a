"""Where a container finds its volumes: as directories, or as devices."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    forbidden_field,
    missing,
    not_supported,
    required,
)
from bayplan.embedded.apiserver.validation.paths import descending_problems
from bayplan.embedded.apiserver.validation.pods.choices import choice

Volumes = dict[str, JsonObject]
"""The volumes of a pod that are in order, by name."""
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def mount_problems(container: JsonObject, at: str, volumes: Volumes) -> list[Cause]:
    """What is wrong with a container's mounts and devices."""
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
) -> list[Cause]:
    found: list[Cause] = []
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
            why = "must not already exist as a path in volumeDevices"
            found.append(bad_value(f"{place}.mountPath", path, why))
        found += _manner_problems(container, mount, at, place)
    return found


def _name_problems(name: str, place: str, volumes: Volumes) -> list[Cause]:
    found = [] if name else [required(f"{place}.name")]
    return found if name in volumes else [*found, missing(f"{place}.name", name)]


def _manner_problems(container: JsonObject, mount: JsonObject, at: str, place: str) -> list[Cause]:
    """Which part of a volume is mounted, and how; upstream names the list, not the mount."""
    part, pattern = mount.get("subPath") or "", mount.get("subPathExpr") or ""
    found = descending_problems(part, f"{at}.subPath") if part else []
    if pattern:
        if part:
            why = "subPathExpr and subPath are mutually exclusive"
            found.append(bad_value(f"{place}.subPathExpr", pattern, why))
        found += descending_problems(pattern, f"{at}.subPathExpr")
    propagation = mount.get("mountPropagation")
    found += choice(propagation, f"{at}.mountPropagation", _PROPAGATIONS)
    privileged = (container.get("securityContext") or {}).get("privileged")
    if propagation == "Bidirectional" and not privileged:
        why = "Bidirectional mount propagation is available only to privileged containers"
        found.append(forbidden_field(f"{at}.mountPropagation", why))
    return found + _recursive_problems(mount, f"{at}.recursiveReadOnly")


def _recursive_problems(mount: JsonObject, at: str) -> list[Cause]:
    wanted = mount.get("recursiveReadOnly")
    if wanted in (None, "Disabled"):
        return []
    if wanted not in _RECURSIVE:
        return [not_supported(at, wanted, _RECURSIVE)]
    found = []
    if not mount.get("readOnly"):
        found.append(forbidden_field(at, "may only be specified when readOnly is true"))
    if mount.get("mountPropagation") not in (None, "None"):
        why = "may only be specified when mountPropagation is None or not specified"
        found.append(forbidden_field(at, why))
    return found


def _device_list_problems(
    devices: list[JsonObject], at: str, volumes: Volumes, mounted: dict[str, str]
) -> list[Cause]:
    found: list[Cause] = []
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
            why = "must not already exist as a path in volumeMounts"
            found.append(bad_value(place, path, why))
        names.add(name)
    return found


def _device_name_problems(name: str, at: str, names: set[str], volumes: Volumes) -> list[Cause]:
    found = [] if name else [required(at)]
    if name and name in names:
        found.append(bad_value(at, name, "must be unique"))
    volume = volumes.get(name)
    if volume is None:
        found.append(missing(at, name))
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        found.append(bad_value(at, name, why))
    return found


def _device_path_problems(path: str, at: str, paths: set[str]) -> list[Cause]:
    found = [] if path else [required(at)]
    if path in paths:
        found.append(bad_value(at, path, "must be unique"))
    if ".." in path.split("/"):
        found.append(bad_value(at, path, "can not contain backsteps ('..')"))
    else:
        paths.add(path)
    return found
