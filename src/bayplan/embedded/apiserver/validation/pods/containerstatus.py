"""What a node says of a container: whose it is, what it got, and which images it mounts."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    required,
    too_long,
)
from bayplan.embedded.apiserver.validation.pods.choices import choice, id_problems

_LISTS = {
    "containerStatuses": "containers",
    "initContainerStatuses": "initContainers",
    "ephemeralContainerStatuses": "",
}
_HEALTHS = ("Healthy", "Unhealthy", "Unknown")
_LONGEST_MESSAGE = 1024
_LONGEST_IMAGE = 256


def container_status_problems(status: JsonObject, spec: JsonObject) -> list[Cause]:
    """What is wrong with the statuses of a pod's containers."""
    found: list[Cause] = []
    for field, kind in _LISTS.items():
        for index, one in enumerate(status.get(field) or ()):
            at = f"status.{field}[{index}]"
            if one.get("user") is not None:
                found += _user_problems(one["user"], spec, f"{at}.user.linux")
            if one.get("allocatedResourcesStatus"):
                found += _health_problems(one, spec, kind, f"{at}.allocatedResourcesStatus")
            for number, mount in enumerate(one.get("volumeMounts") or ()):
                found += _mount_problems(mount, f"{at}.volumeMounts[{number}].volumeStatus")
    return found


def _user_problems(user: JsonObject, spec: JsonObject, at: str) -> list[Cause]:
    linux = user.get("linux")
    if linux is None:
        return []
    if (spec.get("os") or {}).get("name", "linux") == "windows":
        return [forbidden_field(at, "cannot be set for a windows pod")]
    found = id_problems(linux.get("uid") or 0, f"{at}.uid")
    found += id_problems(linux.get("gid") or 0, f"{at}.gid")
    for index, group in enumerate(linux.get("supplementalGroups") or ()):
        found += id_problems(group, f"{at}.supplementalGroups[{index}]")
    return found


def _health_problems(one: JsonObject, spec: JsonObject, kind: str, at: str) -> list[Cause]:
    if not kind:
        return [forbidden_field(at, "must not be specified in container status")]
    owners = (owner for owner in spec.get(kind) or () if owner.get("name") == one.get("name"))
    owner, found = next(owners, None), list[Cause]()
    for index, resource in enumerate(one["allocatedResourcesStatus"]):
        if owner is not None:
            name = resource.get("name") or ""
            found += _owned_problems(name, owner.get("resources") or {}, f"{at}[{index}].name")
        found += _device_problems(resource.get("resources") or [], f"{at}[{index}].resources")
    return found


def _owned_problems(name: str, resources: JsonObject, at: str) -> list[Cause]:
    if name.startswith("claim:"):
        claims = [
            "/".join(filter(None, (f"claim:{one.get('name')}", one.get("request"))))
            for one in resources.get("claims") or ()
        ]
        why = (
            "must match one of the container's resource claims in a format "
            "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
        )
        return [] if name in claims else [bad_value(at, name, why)]
    why = "must match one of the container's resource requests"
    return [] if name in (resources.get("requests") or {}) else [bad_value(at, name, why)]


def _device_problems(devices: list[JsonObject], at: str) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for index, device in enumerate(devices):
        found += choice(device.get("health") or "", f"{at}[{index}].health", _HEALTHS)
        message, name = device.get("message"), device.get("resourceID") or ""
        if message == "":
            found.append(required(f"{at}[{index}].message", "must be non-empty if specified"))
        elif len(message or "") > _LONGEST_MESSAGE:
            found.append(too_long(f"{at}[{index}].message", _LONGEST_MESSAGE))
        if name in seen:
            found.append(duplicate(f"{at}[{index}].resourceID", name))
        seen.add(name)
    return found


def _mount_problems(mount: JsonObject, at: str) -> list[Cause]:
    image = (mount.get("volumeStatus") or {}).get("image")
    if image is None:
        return []
    reference, field = image.get("imageRef") or "", f"{at}.imageVolumeStatus.imageRef"
    if not reference:
        return [required(field, "imageRef must not be empty")]
    return [too_long(field, _LONGEST_IMAGE)] if len(reference) > _LONGEST_IMAGE else []
