"""Validation of resource names, requests and limits."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import (
    NEGATIVE,
    bad_value,
    duplicate,
    forbidden_field,
    missing,
    not_supported,
    required,
)
from bayplan.embedded.apiserver.validation.names import dns_label, name_problems, qualified_name
from bayplan.kube.names import is_qualified_name
from bayplan.kube.quantity import QuantityError, milli_value, value
from bayplan.kube.quantity import parse as amount
from bayplan.kube.resources import is_attach_limit

NameProblems = Callable[[str, str], list[FieldCause]]

_OF_CONTAINERS = frozenset(("cpu", "memory", "ephemeral-storage"))
_OF_PODS = ("cpu", "hugepages-", "memory")
_COUNTED = frozenset(
    (
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    )
)  # fmt: skip
_STANDARD = _COUNTED | _OF_CONTAINERS | {"storage", "requests.storage"} | {
    f"{kind}.{name}" for kind in ("requests", "limits") for name in _OF_CONTAINERS
}  # fmt: skip
_ATTACH_LIMIT = "must not ask for a node's attach limit: volumes are counted from the pod's claims"


def is_native(name: str) -> bool:
    """Return whether a resource is one of Kubernetes' own."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Return whether a resource is an extended resource."""
    if is_native(name) or name.startswith("requests."):
        return False
    return is_qualified_name(f"requests.{name}")


def is_huge_page(name: str) -> bool:
    """Return whether a resource is huge pages."""
    return name.startswith("hugepages-")


def _may_overcommit(name: str) -> bool:
    return is_native(name) and not is_huge_page(name)


def resource_name_problems(name: str, at: str) -> list[FieldCause]:
    """Return the problems of a resource name."""
    if not is_qualified_name(name):
        return name_problems(qualified_name, name, at)
    known = name in _STANDARD or name.startswith(("hugepages-", "requests.hugepages-"))
    if "/" not in name and not known:
        return [bad_value(at, name, "must be a standard resource type or fully qualified")]
    return []


def container_resource_problems(name: str, at: str) -> list[FieldCause]:
    """Return the problems of a resource name in a container's requests or limits."""
    if name in _OF_CONTAINERS:
        return []
    if is_attach_limit(name):
        return [bad_value(at, name, _ATTACH_LIMIT)]
    found = resource_name_problems(name, at)
    if "/" not in name:
        if not is_huge_page(name):
            found.append(bad_value(at, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        found.append(bad_value(at, name, "doesn't follow extended resource name standard"))
    return found


def pod_resource_problems(name: str, at: str) -> list[FieldCause]:
    """Return the problems of a resource name in pod-level requests or limits."""
    if is_attach_limit(name):
        return [bad_value(at, name, _ATTACH_LIMIT)]
    found = resource_name_problems(name, at)
    if not found and name not in _OF_PODS and not is_huge_page(name):
        found.append(not_supported(at, name, _OF_PODS))
    return found


def amount_problems(name: str, quantity: str, at: str) -> list[FieldCause]:
    """Return the problems of an amount of a resource."""
    return [bad_value(at, quantity, detail) for detail in _amount_faults(name, quantity)]


@lru_cache(8192)
def _amount_faults(name: str, quantity: str) -> tuple[str, ...]:
    """Return the problems of an amount, cached: clusters repeat the same few."""
    found = [NEGATIVE] if amount(quantity) < 0 else []
    counted = name in _COUNTED or is_extended(name)
    if counted and milli_value(quantity) % 1000:
        found.append("must be an integer")
    return tuple(found)


def _page_problems(name: str, quantity: str, at: str) -> list[FieldCause]:
    try:
        size = name.removeprefix("hugepages-")
        fits = amount(size) > 0 and milli_value(size) % 1000 == 0
        if fits and value(quantity) % value(size) == 0:
            return []
    except QuantityError:
        pass
    detail = f"{quantity} is not positive integer multiple of {name}"
    return [bad_value(at, quantity, detail)]


def requirement_problems(
    resources: JsonObject, at: str, names: NameProblems, claims: frozenset[str] = frozenset()
) -> list[FieldCause]:
    """Return the problems of requests, limits and claims."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    found: list[FieldCause] = []
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            field = f"{at}.{kind}[{name}]"
            found += names(name, field) + amount_problems(name, quantity, field)
            if kind == "requests":
                found += _limit_problems(name, quantity, limits, at)
            if is_huge_page(name):
                found += _page_problems(name, quantity, field)
    requested = limits.keys() | requests.keys()
    if any(map(is_huge_page, requested)) and not requested & {"cpu", "memory"}:
        found.append(forbidden_field(at, "HugePages require cpu or memory"))
    if resources.get("claims"):
        found += _claim_problems(resources["claims"], claims, f"{at}.claims")
    return found


def _limit_problems(name: str, quantity: str, limits: JsonObject, at: str) -> list[FieldCause]:
    limit, shared = limits.get(name), _may_overcommit(name)
    if limit is None:
        detail = "Limit must be set for non overcommitable resources"
        return [] if shared else [required(f"{at}.limits", detail)]
    wanted, most = amount(quantity), amount(limit)
    if wanted != most and not shared:
        detail = f"must be equal to {name} limit of {limit}"
    elif wanted > most:
        detail = f"must be less than or equal to {name} limit of {limit}"
    else:
        return []
    return [bad_value(f"{at}.requests", quantity, detail)]


def _claim_problems(claims: list[JsonObject], known: frozenset[str], at: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        field, name = f"{at}[{index}]", claim.get("name") or ""
        if not name:
            found.append(required(field))
            continue
        found += _repeated_claim(claim, name, seen, field)
        if name not in known:
            found.append(missing(field, name, _known_claims(known)))
    return found


def _repeated_claim(claim: JsonObject, name: str, seen: set[str], at: str) -> list[FieldCause]:
    if name in seen:
        return [duplicate(at, name)]
    request, key, found = claim.get("request") or "", name, []
    if request:
        found = name_problems(dns_label, request, f"{at}.request")
        key = f"{name}/{request}"
    if key in seen:
        found.append(duplicate(at, key))
    elif not request:
        found += [duplicate(at, name) for one in seen if one.startswith(f"{name}/")]
    seen.add(key)
    return found


def _known_claims(known: frozenset[str]) -> str:
    names = sorted(known)
    where = "must be one of the names in pod.spec.resourceClaims"
    return f"{where}: {', '.join(names)}" if names else f"{where} which is empty"
