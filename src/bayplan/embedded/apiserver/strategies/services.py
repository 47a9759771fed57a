"""Services: what one is when its author says nothing about it."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.strategy import Strategy, child, fill, items
from bayplan.embedded.apiserver.validation.names import dns_label
from bayplan.embedded.apiserver.validation.services import service_change_problems, service_problems

_THREE_HOURS = 10800


def _default(service: JsonObject) -> None:
    spec = child(service, "spec")
    fill(spec, type="ClusterIP", sessionAffinity="None")
    if spec["sessionAffinity"] == "ClientIP":
        config = child(child(spec, "sessionAffinityConfig"), "clientIP")
        fill(config, timeoutSeconds=_THREE_HOURS)
    if spec["type"] != "ExternalName":
        fill(spec, internalTrafficPolicy="Cluster")
        fill(spec, ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        fill(spec, allocateLoadBalancerNodePorts=True)
    for port in items(spec, "ports"):
        fill(port, protocol="TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port") or 0


def _begin(service: JsonObject) -> None:
    fill(service, status={"loadBalancer": {}})


SERVICES = Strategy(
    name_rule=dns_label,
    default=_default,
    prepare_create=_begin,
    validate=service_problems,
    validate_update=service_change_problems,
    returns_deleted=True,
)
