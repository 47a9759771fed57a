"""What is filled in of network policies and of autoscalers of pods."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.strategy import Strategy, child, fill, items

_UTILIZATION = 80
"""Percent of the CPU asked for, which is aimed at where nobody says otherwise."""


def _default_policy(policy: JsonObject) -> None:
    spec = child(policy, "spec")
    for rule in (*items(spec, "ingress"), *items(spec, "egress")):
        for port in items(rule, "ports"):
            fill(port, protocol="TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _default_autoscaler(autoscaler: JsonObject) -> None:
    spec = child(autoscaler, "spec")
    fill(spec, minReplicas=1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": _UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


NETWORKING = {
    "networkpolicies.networking.k8s.io": Strategy(default=_default_policy),
    "horizontalpodautoscalers.autoscaling": Strategy(default=_default_autoscaler),
}
