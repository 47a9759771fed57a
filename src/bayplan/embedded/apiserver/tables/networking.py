"""The columns of ingresses, network policies and autoscalers of pods."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.tables.columns import AGE, NAME, column
from bayplan.embedded.apiserver.tables.values import NONE, labels

_UNKNOWN, _UNSET = "<unknown>", "<unset>"
_MOST_TARGETS = 2


def _spec(obj: JsonObject) -> JsonObject:
    return obj.get("spec") or {}


def _status(obj: JsonObject) -> JsonObject:
    return obj.get("status") or {}


def _hosts(ingress: JsonObject) -> str:
    hosts = [rule["host"] for rule in _spec(ingress).get("rules") or () if rule.get("host")]
    shown, rest = hosts[:3], len(hosts) - 3
    return ",".join(shown) + (f" + {rest} more..." if rest > 0 else "") if hosts else "*"


def _addresses(ingress: JsonObject) -> str:
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
    told = [
        _target(metric, current[index] if index < len(current) else {})
        for index, metric in enumerate(metrics)
    ]
    more = len(told) - _MOST_TARGETS
    shown = ", ".join(told[:_MOST_TARGETS]) + (f" + {more} more..." if more > 0 else "")
    return shown if told else NONE


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
    column("Address", _addresses),
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
