"""Validation of a pod's status: addresses, conditions, resource claims, containers."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.addresses import (
    address_problems,
    is_dual_stack,
    parse_address,
)
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    immutable,
    internal,
    required,
    too_long,
)
from bayplan.embedded.apiserver.validation.names import (
    dns_label,
    name_problems,
    qualified_name,
    subdomain,
)
from bayplan.embedded.apiserver.validation.pods.choices import choice, id_problems

_LISTS = {
    "containerStatuses": "containers",
    "initContainerStatuses": "initContainers",
    "ephemeralContainerStatuses": "",
}
_HEALTHS = ("Healthy", "Unhealthy", "Unknown")
_MAX_MESSAGE_LENGTH = 1024
_MAX_IMAGE_LENGTH = 256


def container_status_problems(status: JsonObject, spec: JsonObject) -> list[FieldCause]:
    """Return the problems of the container statuses."""
    found: list[FieldCause] = []
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


def _user_problems(user: JsonObject, spec: JsonObject, at: str) -> list[FieldCause]:
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


def _health_problems(one: JsonObject, spec: JsonObject, kind: str, at: str) -> list[FieldCause]:
    if not kind:
        return [forbidden_field(at, "must not be specified in container status")]
    owners = (owner for owner in spec.get(kind) or () if owner.get("name") == one.get("name"))
    owner, found = next(owners, None), list[FieldCause]()
    for index, resource in enumerate(one["allocatedResourcesStatus"]):
        if owner is not None:
            name = resource.get("name") or ""
            found += _owned_problems(name, owner.get("resources") or {}, f"{at}[{index}].name")
        found += _device_problems(resource.get("resources") or [], f"{at}[{index}].resources")
    return found


def _owned_problems(name: str, resources: JsonObject, at: str) -> list[FieldCause]:
    if name.startswith("claim:"):
        claims = [
            "/".join(filter(None, (f"claim:{one.get('name')}", one.get("request"))))
            for one in resources.get("claims") or ()
        ]
        detail = (
            "must match one of the container's resource claims in a format "
            "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
        )
        return [] if name in claims else [bad_value(at, name, detail)]
    detail = "must match one of the container's resource requests"
    return [] if name in (resources.get("requests") or {}) else [bad_value(at, name, detail)]


def _device_problems(devices: list[JsonObject], at: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    seen: set[str] = set()
    for index, device in enumerate(devices):
        found += choice(device.get("health") or "", f"{at}[{index}].health", _HEALTHS)
        message, name = device.get("message"), device.get("resourceID") or ""
        if message == "":
            found.append(required(f"{at}[{index}].message", "must be non-empty if specified"))
        elif len(message or "") > _MAX_MESSAGE_LENGTH:
            found.append(too_long(f"{at}[{index}].message", _MAX_MESSAGE_LENGTH))
        if name in seen:
            found.append(duplicate(f"{at}[{index}].resourceID", name))
        seen.add(name)
    return found


def _mount_problems(mount: JsonObject, at: str) -> list[FieldCause]:
    image = (mount.get("volumeStatus") or {}).get("image")
    if image is None:
        return []
    reference, field = image.get("imageRef") or "", f"{at}.imageVolumeStatus.imageRef"
    if not reference:
        return [required(field, "imageRef must not be empty")]
    return [too_long(field, _MAX_IMAGE_LENGTH)] if len(reference) > _MAX_IMAGE_LENGTH else []


_SYSTEM = ("PodScheduled", "Ready", "Initialized")
_NOT_NEGATIVE = "must be a non-negative integer"


def pod_status_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a pod's new status."""
    status, before = new.get("status") or {}, old.get("status") or {}
    found = _condition_problems(status.get("conditions") or [])
    found += _nomination_problems(status, before, old["spec"])
    if (status.get("observedGeneration") or 0) < 0:
        wrong = status["observedGeneration"]
        found.append(bad_value("status.observedGeneration", wrong, _NOT_NEGATIVE))
    if (status.get("qosClass") or "") != (before.get("qosClass") or ""):
        found.append(immutable("status.qosClass", status.get("qosClass") or ""))
    found += _transition_problems(status, before, old["spec"])
    found += _claim_problems(status, new["spec"])
    found += _address_problems(status, before, "podIPs", "core.PodIP")
    found += _host_address_problems(status, before)
    return found + container_status_problems(status, new["spec"])


def _condition_problems(conditions: list[JsonObject]) -> list[FieldCause]:
    found: list[FieldCause] = []
    for index, one in enumerate(conditions):
        at, seen = f"status.conditions[{index}]", one.get("observedGeneration") or 0
        if seen < 0:
            found.append(bad_value(f"{at}.observedGeneration", seen, _NOT_NEGATIVE))
        kind = one.get("type") or ""
        if kind not in _SYSTEM:
            found += name_problems(qualified_name, kind, f"{at}.Type")
    return found


def _nomination_problems(
    status: JsonObject, before: JsonObject, spec: JsonObject
) -> list[FieldCause]:
    node, field = status.get("nominatedNodeName") or "", "status.nominatedNodeName"
    if not node or node == (before.get("nominatedNodeName") or ""):
        return []
    found = name_problems(subdomain, node, field)
    if spec.get("nodeName"):
        detail = "may not be set on pods that are already bound to a node"
        found.append(forbidden_field(field, detail))
    return found


def _transition_problems(
    status: JsonObject, before: JsonObject, spec: JsonObject
) -> list[FieldCause]:
    """Refuse that a terminated container runs again, unless it may restart."""
    found: list[FieldCause] = []
    for field, kind in _LISTS.items():
        if not before.get(field):
            continue
        after = {one.get("name"): one for one in reversed(status.get(field) or [])}
        for index, one in enumerate(before[field]):
            ended, now = _ended(one), after.get(one.get("name"))
            if ended is None or now is None or _ended(now) is not None:
                continue
            if not _may_return(one.get("name") or "", ended, kind, spec):
                detail = "may not be transitioned to non-terminated state"
                found.append(forbidden_field(f"status.{field}[{index}].state", detail))
    return found


def _ended(status: JsonObject) -> int | None:
    """Return the exit code of a terminated container, or None."""
    ended = (status.get("state") or {}).get("terminated")
    return None if ended is None else ended.get("exitCode") or 0


def _may_return(name: str, code: int, kind: str, spec: JsonObject) -> bool:
    if not kind:
        return False
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    rules = (rule for one in containers for rule in one.get("restartPolicyRules") or ())
    if any(rule.get("action") == "RestartAllContainers" for rule in rules):
        return True
    own = next((one for one in spec.get(kind) or () if one.get("name") == name), None)
    return own is not None and _restarts(own, spec, code)


def _restarts(container: JsonObject, spec: JsonObject, code: int) -> bool:
    policy = container.get("restartPolicy")
    if policy is not None and any(
        _matches(rule.get("exitCodes") or {}, code)
        for rule in container.get("restartPolicyRules") or ()
    ):
        return True
    policy = policy or spec.get("restartPolicy")
    return code != 0 if policy == "OnFailure" else policy != "Never"


def _matches(codes: JsonObject, code: int) -> bool:
    listed = code in (codes.get("values") or ())
    return listed if codes.get("operator") == "In" else not listed and bool(codes)


def _claim_problems(status: JsonObject, spec: JsonObject) -> list[FieldCause]:
    known = {one.get("name") for one in spec.get("resourceClaims") or ()}
    found: list[FieldCause] = []
    seen: set[str] = set()
    for index, one in enumerate(status.get("resourceClaimStatuses") or ()):
        at, name = f"status.resourceClaimStatuses[{index}]", one.get("name") or ""
        if name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            found.append(bad_value(f"{at}.name", name, detail))
        if name in seen:
            found.append(duplicate(f"{at}.name", name))
        seen.add(name)
        if one.get("resourceClaimName") is not None:
            field = f"{at}.resourceClaimName"
            found += name_problems(subdomain, one["resourceClaimName"], field)
    extended = status.get("extendedResourceClaimStatus")
    return found if extended is None else found + _extended_problems(extended, spec)


def _extended_problems(status: JsonObject, spec: JsonObject) -> list[FieldCause]:
    at = "status.extendedResourceClaimStatus"
    containers = {
        one.get("name"): one
        for kind in ("initContainers", "containers")
        for one in spec.get(kind) or ()
    }
    mappings = status.get("requestMappings") or []
    found: list[FieldCause] = []
    if not mappings:
        detail = "at least one request mapping is required"
        found.append(required(f"{at}.requestMappings", detail))
    seen: set[tuple[str, str, str]] = set()
    for index, one in enumerate(mappings):
        place = f"{at}.requestMappings[{index}]"
        names = ("containerName", "resourceName", "requestName")
        key = (one.get(names[0]) or "", one.get(names[1]) or "", one.get(names[2]) or "")
        found += _mapping_problems(key, containers, place)
        found += name_problems(dns_label, key[2], f"{at}.requestName")
        if key in seen:
            pairs = zip(names, key, strict=True)
            found += [duplicate(f"{place}.{name}", value) for name, value in pairs]
        seen.add(key)
    name = status.get("resourceClaimName") or ""
    if not name:
        return [*found, required(f"{at}.resourceClaimName")]
    return found + name_problems(subdomain, name, f"{at}.resourceClaimName")


def _mapping_problems(
    key: tuple[str, str, str], containers: dict[str | None, JsonObject], at: str
) -> list[FieldCause]:
    container, resource, _ = key
    where = "in spec.initContainers.{0} or spec.containers.{0}"
    if container not in containers:
        detail = f"must match the name of an entry {where.format('name')}"
        return [bad_value(f"{at}.containerName", container, detail)]
    requested = (containers[container].get("resources") or {}).get("requests") or {}
    if resource in requested:
        return []
    detail = (
        f"must match the extended resource name of an entry {where.format('resources.requests')}"
    )
    return [bad_value(f"{at}.resourceName", resource, detail)]


def _address_problems(
    status: JsonObject, before: JsonObject, field: str, type_name: str
) -> list[FieldCause]:
    given = status.get(field) or []
    if not given:
        return []
    kept = [one.get("ip") or "" for one in before.get(field) or ()]
    addresses = [one.get("ip") or "" for one in given]
    found: list[FieldCause] = []
    for index, address in enumerate(addresses):
        found += address_problems(address, f"status.{field}[{index}]", kept)
    if len(addresses) > 1:
        found += _unreadable(addresses, f"status.{field}")
    if len(addresses) > 1 and (not is_dual_stack(addresses) or len(addresses) > 2):
        shown = [internal_form(one, type_name) for one in given]
        detail = "may specify no more than one IP for each IP family"
        found.append(bad_value(f"status.{field}", shown, detail))
    return found


def _unreadable(addresses: list[str], at: str) -> list[FieldCause]:
    for index, address in enumerate(addresses):
        if parse_address(address) is None:
            detail = f"failed to check for dual stack with error:invalid IP[{index}]: {address}"
            return [internal(at, detail)]
    return []


def _host_address_problems(status: JsonObject, before: JsonObject) -> list[FieldCause]:
    given = status.get("hostIPs") or []
    found: list[FieldCause] = []
    if given and (given[0].get("ip") or "") != (status.get("hostIP") or ""):
        detail = "must be equal to `hostIP`"
        found.append(bad_value("status.hostIPs[0].ip", given[0].get("ip") or "", detail))
    return found + _address_problems(status, before, "hostIPs", "core.HostIP")
