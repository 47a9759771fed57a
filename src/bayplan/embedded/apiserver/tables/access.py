"""Columns of RBAC, webhooks, endpoints, quotas, ingresses, network policies and HPAs."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    Column,
    column,
    joined,
    labels,
    template_images,
)


def _created(obj: JsonObject) -> str:
    return str(obj["metadata"].get("creationTimestamp", ""))


CREATED_AT = (NAME, column("Created At", _created, type_="date"))


def _role(binding: JsonObject) -> str:
    reference = binding.get("roleRef") or {}
    return f"{reference.get('kind', '')}/{reference.get('name', '')}"


def _subjects(title: str, kind: str) -> Column:
    def read(binding: JsonObject) -> str:
        found = [one for one in binding.get("subjects") or () if one.get("kind") == kind]
        return ", ".join(_subject(one) for one in found)

    return column(title, read, wide=True)


def _subject(subject: JsonObject) -> str:
    namespace, name = subject.get("namespace"), subject.get("name", "")
    return f"{namespace}/{name}" if namespace else str(name)


BINDING = (
    NAME,
    column("Role", _role),
    AGE,
    _subjects("Users", "User"),
    _subjects("Groups", "Group"),
    _subjects("ServiceAccounts", "ServiceAccount"),
)
WEBHOOKS = (
    NAME,
    column("Webhooks", lambda obj: len(obj.get("webhooks") or ()), type_="integer"),
    AGE,
)


def _addresses(endpoints: JsonObject) -> str:
    return joined(
        f"{address.get('ip')}:{port.get('port')}"
        for subset in endpoints.get("subsets") or ()
        for address in subset.get("addresses") or ()
        for port in subset.get("ports") or ()
    )


ENDPOINTS = (NAME, column("Endpoints", _addresses), AGE)


def _slice_addresses(endpoints: JsonObject) -> str:
    return joined(
        address
        for one in endpoints.get("endpoints") or ()
        for address in one.get("addresses") or ()
    )


ENDPOINT_SLICE = (
    NAME,
    column("AddressType", lambda obj: obj.get("addressType", "")),
    column("Ports", lambda obj: joined(one.get("port") for one in obj.get("ports") or ())),
    column("Endpoints", _slice_addresses),
    AGE,
)


def _used(limits: bool) -> Callable[[JsonObject], str]:
    def read(quota: JsonObject) -> str:
        status = quota.get("status") or {}
        hard = status.get("hard") or (quota.get("spec") or {}).get("hard") or {}
        used = status.get("used") or {}
        shown = [name for name in sorted(hard) if name.startswith("limits.") == limits]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in shown)

    return read


QUOTA = (NAME, column("Request", _used(limits=False)), column("Limit", _used(limits=True)), AGE)


def _controller(revision: JsonObject) -> str:
    owners = revision["metadata"].get("ownerReferences") or ()
    controller = next((one for one in owners if one.get("controller")), None)
    if controller is None:
        return NONE
    return f"{controller.get('kind', '').lower()}/{controller.get('name', '')}"


REVISION = (
    NAME,
    column("Controller", _controller),
    column("Revision", lambda obj: str(obj.get("revision", 0))),
    AGE,
)
POD_TEMPLATE = (
    NAME,
    column("Containers", lambda obj: template_images({"spec": obj})[0]),
    column("Images", lambda obj: template_images({"spec": obj})[1]),
    column(
        "Pod Labels",
        lambda obj: labels(((obj.get("template") or {}).get("metadata") or {}).get("labels")),
    ),
)


_UNKNOWN, _UNSET = "<unknown>", "<unset>"
_MAX_TARGETS = 2


def _spec(obj: JsonObject) -> JsonObject:
    return obj.get("spec") or {}


def _status(obj: JsonObject) -> JsonObject:
    return obj.get("status") or {}


def _hosts(ingress: JsonObject) -> str:
    hosts = [rule["host"] for rule in _spec(ingress).get("rules") or () if rule.get("host")]
    shown, rest = hosts[:3], len(hosts) - 3
    return ",".join(shown) + (f" + {rest} more..." if rest > 0 else "") if hosts else "*"


def _ingress_addresses(ingress: JsonObject) -> str:
    found = (_status(ingress).get("loadBalancer") or {}).get("ingress") or ()
    return ",".join(one.get("ip") or one.get("hostname") or "" for one in found)


def _target(metric: JsonObject, current: JsonObject) -> str:
    kind = metric.get("type") or ""
    inner = kind[:1].lower() + kind[1:]
    wanted = (metric.get(inner) or {}).get("target") or {}
    now = (current.get(inner) or {}).get("current") or {}
    name = (metric.get(inner) or {}).get("name")
    if "averageUtilization" in wanted:
        used = now.get("averageUtilization")
        text = f"{_UNKNOWN if used is None else f'{used}%'}/{wanted['averageUtilization']}%"
    else:
        field = "averageValue" if "averageValue" in wanted else "value"
        text = f"{now.get(field) or _UNKNOWN}/{wanted.get(field) or _UNSET}"
        text += " (avg)" if field == "averageValue" and kind in ("Object", "External") else ""
    return f"{name}: {text}" if name else text


def _targets(autoscaler: JsonObject) -> str:
    metrics = _spec(autoscaler).get("metrics") or []
    current = _status(autoscaler).get("currentMetrics") or []
    targets = [
        _target(metric, current[index] if index < len(current) else {})
        for index, metric in enumerate(metrics)
    ]
    more = len(targets) - _MAX_TARGETS
    shown = ", ".join(targets[:_MAX_TARGETS]) + (f" + {more} more..." if more > 0 else "")
    return shown if targets else NONE


def _reference(autoscaler: JsonObject) -> str:
    target = _spec(autoscaler).get("scaleTargetRef") or {}
    return f"{target.get('kind')}/{target.get('name')}"


def _parameters(obj: JsonObject) -> str:
    found = _spec(obj).get("parameters")
    if not found:
        return NONE
    group = f".{found['apiGroup']}" if found.get("apiGroup") else ""
    return f"{found.get('kind')}{group}/{found.get('name')}"


INGRESS = (
    NAME,
    column("Class", lambda obj: _spec(obj).get("ingressClassName") or NONE),
    column("Hosts", _hosts),
    column("Address", _ingress_addresses),
    column("Ports", lambda obj: "80, 443" if _spec(obj).get("tls") else "80"),
    AGE,
)
NETWORK_POLICY = (
    NAME,
    column("Pod-Selector", lambda obj: labels(_spec(obj).get("podSelector"))),
    AGE,
)
INGRESS_CLASS = (
    NAME,
    column("Controller", lambda obj: _spec(obj).get("controller") or ""),
    column("Parameters", _parameters),
    AGE,
)
AUTOSCALER = (
    NAME,
    column("Reference", _reference),
    column("Targets", _targets),
    column("MinPods", lambda obj: str(_spec(obj).get("minReplicas", _UNSET))),
    column("MaxPods", lambda obj: _spec(obj).get("maxReplicas") or 0),
    column("Replicas", lambda obj: _status(obj).get("desiredReplicas") or 0),
    AGE,
)
