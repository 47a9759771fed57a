"""Validation of Services."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.addresses import address_problems
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    not_supported,
    required,
)
from bayplan.embedded.apiserver.validation.names import (
    dns_label,
    label_problems,
    name_problems,
    qualified_name,
    subdomain,
)
from bayplan.embedded.apiserver.validation.numbers import repeats
from bayplan.embedded.apiserver.validation.pods.containers import port_problems

HEADLESS = "None"
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_AFFINITIES = ("ClientIP", "None")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_TRAFFIC = ("Cluster", "Local")
_MAX_AFFINITY_SECONDS = 86400
_PORT = "must be between 1 and 65535, inclusive"


def service_problems(service: JsonObject) -> list[FieldCause]:
    """Return the problems of a Service."""
    spec = service["spec"]
    return [
        *_type_problems(spec),
        *_ports_problems(spec),
        *label_problems(spec.get("selector") or {}, "spec.selector"),
        *_affinity_problems(spec),
        *([] if spec.get("type") == "ExternalName" else _address_problems(spec)),
        *_kind_problems(spec),
        *_node_port_problems(spec),
        *_same_port_problems(spec),
        *_traffic_problems(spec),
    ]


def is_headless(spec: JsonObject) -> bool:
    """Return whether a service is headless."""
    return bool((spec.get("clusterIPs") or [None])[0] == HEADLESS)


def _type_problems(spec: JsonObject) -> Iterator[FieldCause]:
    kind, headless = spec.get("type"), is_headless(spec)
    if not spec.get("ports") and not headless and kind != "ExternalName":
        yield required("spec.ports")
    if kind in {"LoadBalancer", "NodePort"} and headless:
        detail = f"may not be set to 'None' for {kind} services"
        yield bad_value("spec.clusterIPs[0]", HEADLESS, detail)
    if kind != "ExternalName":
        return
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield forbidden_field(f"spec.{name}", "may not be set for ExternalName services")
    target = (spec.get("externalName") or "").removesuffix(".")
    if target:
        yield from name_problems(subdomain, target, "spec.externalName")
    else:
        yield required("spec.externalName")


def _ports_problems(spec: JsonObject) -> Iterator[FieldCause]:
    ports = spec.get("ports") or []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        field, name = f"spec.ports[{index}]", port.get("name") or ""
        if name:
            yield from name_problems(dns_label, name, f"{field}.name")
        elif len(ports) > 1:
            yield required(f"{field}.name")
        if name and name in seen:
            yield duplicate(f"{field}.name", name)
        seen.add(name)
        yield from _port_problems(port, field)


def _port_problems(port: JsonObject, field: str) -> Iterator[FieldCause]:
    number, protocol = port.get("port") or 0, port.get("protocol") or ""
    if not 0 < number < 65536:
        yield bad_value(f"{field}.port", number, _PORT)
    if not protocol:
        yield required(f"{field}.protocol")
    elif protocol not in _PROTOCOLS:
        yield not_supported(f"{field}.protocol", protocol, _PROTOCOLS)
    yield from port_problems(port.get("targetPort", number), f"{field}.targetPort")
    if port.get("appProtocol") is not None:
        yield from name_problems(qualified_name, port["appProtocol"], f"{field}.appProtocol")


def _affinity_problems(spec: JsonObject) -> Iterator[FieldCause]:
    affinity, config = spec.get("sessionAffinity") or "", spec.get("sessionAffinityConfig")
    field = "spec.sessionAffinityConfig"
    if affinity not in _AFFINITIES:
        yield not_supported("spec.sessionAffinity", affinity, _AFFINITIES)
    if affinity == "None" and config is not None:
        yield forbidden_field(field, "must not be set when session affinity is None")
    if affinity == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds") or 0
        if not 0 < seconds <= _MAX_AFFINITY_SECONDS:
            detail = f"must be greater than 0 and less than {_MAX_AFFINITY_SECONDS}"
            yield bad_value(f"{field}.clientIP.timeoutSeconds", seconds, detail)


def _address_problems(spec: JsonObject) -> Iterator[FieldCause]:
    first, addresses = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    field = "spec.clusterIPs"
    if first and not addresses:
        yield required(field)
    elif first and addresses[0] != first:
        yield bad_value(field, addresses, "first value must match `clusterIP`")
    elif addresses and not first:
        yield bad_value(field, addresses, "must be empty when `clusterIP` is not specified")
    yield from _family_problems(spec)
    if HEADLESS in addresses and len(addresses) > 1:
        yield bad_value(field, addresses, "'None' must be the first and only value")
    for index, address in enumerate(addresses):
        if index or address != HEADLESS:
            yield from address_problems(address, f"{field}[{index}]")
    if len(addresses) > 2:
        yield bad_value(field, addresses, "may only hold up to 2 values")


def _family_problems(spec: JsonObject) -> Iterator[FieldCause]:
    families = spec.get("ipFamilies") or []
    again = set(repeats(families))
    for index, family in enumerate(families):
        if family not in _FAMILIES:
            yield not_supported(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        if index in again:
            yield duplicate(f"spec.ipFamilies[{index}]", family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        yield not_supported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES)


def _kind_problems(spec: JsonObject) -> Iterator[FieldCause]:
    kind = spec.get("type") or ""
    for index, address in enumerate(spec.get("externalIPs") or ()):
        yield from address_problems(address, f"spec.externalIPs[{index}]")
    if kind not in _TYPES:
        yield not_supported("spec.type", kind, _TYPES)
    for index, port in enumerate(spec.get("ports") or ()):
        if kind == "ClusterIP" and port.get("nodePort"):
            detail = "may not be used when `type` is 'ClusterIP'"
            yield forbidden_field(f"spec.ports[{index}].nodePort", detail)


def _node_port_problems(spec: JsonObject) -> Iterator[FieldCause]:
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(spec.get("ports") or ()):
        number = port.get("nodePort") or 0
        key = (port.get("protocol") or "", number)
        if number and key in seen:
            yield duplicate(f"spec.ports[{index}].nodePort", number)
        seen.add(key)


def _same_port_problems(spec: JsonObject) -> Iterator[FieldCause]:
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(spec.get("ports") or ()):
        key = (port.get("protocol") or "", port.get("port") or 0)
        if key in seen:
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield duplicate(f"spec.ports[{index}]", shown)
        seen.add(key)


def _traffic_problems(spec: JsonObject) -> Iterator[FieldCause]:
    kind = spec.get("type")
    only = "may only be used when `type` is 'LoadBalancer'"
    if kind != "LoadBalancer":
        if spec.get("loadBalancerSourceRanges"):
            yield forbidden_field("spec.LoadBalancerSourceRanges", only)
        for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if spec.get(name) is not None:
                yield forbidden_field(f"spec.{name}", only)
    outside = spec.get("externalTrafficPolicy")
    if outside and kind not in {"LoadBalancer", "NodePort"} and not spec.get("externalIPs"):
        detail = "may only be set for externally-accessible services"
        yield bad_value("spec.externalTrafficPolicy", outside, detail)
    for name in ("externalTrafficPolicy", "internalTrafficPolicy"):
        if spec.get(name) and spec[name] not in _TRAFFIC:
            yield not_supported(f"spec.{name}", spec[name], _TRAFFIC)


def service_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Refuse changes of cluster IPs, except to and from ExternalName."""
    after, before = new["spec"], old["spec"]
    if "ExternalName" in (after.get("type"), before.get("type")):
        return []
    now, then = after.get("clusterIPs") or [], before.get("clusterIPs") or []
    if then and not now:
        return [bad_value("spec.clusterIPs[0]", now, "primary clusterIP can not be unset")]
    return [
        bad_value(f"spec.clusterIPs[{index}]", now, "may not change once set")
        for index, (one, other) in enumerate(zip(now, then, strict=False))
        if one != other
    ]
