"""Pod-level resources, pod totals and the QoS class."""

from __future__ import annotations

from fractions import Fraction

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import bad_value, forbidden_field
from bayplan.embedded.apiserver.validation.resources import (
    is_huge_page,
    pod_resource_problems,
    requirement_problems,
)
from bayplan.kube import quantity
from bayplan.kube.quantity import parse as amount

Amounts = dict[str, Fraction]

_AT_LEAST = "must be greater than or equal to aggregate container"
_COMPUTE = ("cpu", "memory")


def total(spec: JsonObject, kind: str) -> Amounts:
    """Return the effective requests or limits of a pod's containers."""
    running: Amounts = {}
    for container in spec.get("containers") or ():
        _add(running, _amounts(container, kind))
    beside: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _amounts(container, kind)
        if container.get("restartPolicy") == "Always":
            _add(running, own)
            _add(beside, own)
            _raise(peak, beside)
        else:
            _add(own, beside)
            _raise(peak, own)
    _raise(running, peak)
    return running


def pod_requests(spec: JsonObject) -> Amounts:
    """Return the effective requests of a pod, with overhead."""
    requested = total(spec, "requests") | _amounts(spec, "requests")
    overhead = spec.get("overhead") or {}
    _add(requested, {name: amount(value) for name, value in overhead.items()})
    return requested


def _amounts(owner: JsonObject, kind: str) -> Amounts:
    requested = (owner.get("resources") or {}).get(kind) or {}
    return {name: amount(value) for name, value in requested.items()}


def _add(to: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        to[name] = to.get(name, Fraction(0)) + value


def _raise(to: Amounts, least: Amounts) -> None:
    for name, value in least.items():
        to[name] = max(to.get(name, value), value)


def pod_level_problems(spec: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems of pod-level resources."""
    resources, place = spec.get("resources"), f"{at}.resources"
    if resources is None:
        return []
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden_field(place, "may not be set for a windows pod")]
    found = []
    if resources.get("claims") is not None:
        detail = "claims may not be set for Resources at pod-level"
        found.append(forbidden_field(f"{place}.claims", detail))
    names = frozenset(one.get("name") or "" for one in spec.get("resourceClaims") or ())
    found += requirement_problems(resources, place, pod_resource_problems, names)
    return found + _sum_problems(spec, resources, place)


def _sum_problems(spec: JsonObject, resources: JsonObject, at: str) -> list[FieldCause]:
    """Require pod-level resources to be at least those of the containers."""
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    found = []
    for name, needed in total(spec, "requests").items():
        if name in requests and needed > amount(requests[name]):
            detail = f"{_AT_LEAST} requests of {_shown(spec, 'requests', name, needed)}"
            found.append(bad_value(f"{at}.requests[{name}]", requests[name], detail))
    for name, needed in total(spec, "limits").items():
        if is_huge_page(name) and name in limits and needed > amount(limits[name]):
            detail = f"{_AT_LEAST} limits of {_shown(spec, 'limits', name, needed)}"
            found.append(bad_value(f"{at}.limits[{name}]", limits[name], detail))
    for index, container in enumerate(spec.get("containers") or ()):
        for name, limit in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and amount(limit) > amount(limits[name]):
                field = f"{at}.containers[{index}][{name}].limits"
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                found.append(bad_value(field, limit, detail))
    return found


def shown_total(spec: JsonObject, kind: str) -> dict[str, str]:
    """Return the total as it is printed."""
    return {name: _shown(spec, kind, name, value) for name, value in total(spec, kind).items()}


def _shown(spec: JsonObject, kind: str, name: str, value: Fraction) -> str:
    """Return an amount in the format of its first occurrence."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    requested = (((one.get("resources") or {}).get(kind) or {}).get(name) for one in containers)
    first = next(filter(None, requested), "")
    style = quantity.Style.BINARY if first.endswith("i") else quantity.Style.DECIMAL
    return quantity.format_amount(value, style)


def qos_class(spec: JsonObject) -> str:
    """Return Guaranteed, Burstable or BestEffort."""
    owners = [spec]
    if spec.get("resources") is None:
        owners = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    requests: Amounts = {}
    limits: Amounts = {}
    guaranteed = True
    for owner in owners:
        own = _compute(owner, "limits")
        _add(requests, _compute(owner, "requests"))
        _add(limits, own)
        whole = spec.get("resources") is not None and not own
        guaranteed = guaranteed and (whole or len(own) == len(_COMPUTE))
    if not requests and not limits:
        return "BestEffort"
    same = all(limits.get(name) == value for name, value in requests.items())
    return "Guaranteed" if guaranteed and same and len(requests) == len(limits) else "Burstable"


def _compute(owner: JsonObject, kind: str) -> Amounts:
    requested = _amounts(owner, kind).items()
    return {name: value for name, value in requested if name in _COMPUTE and value > 0}
