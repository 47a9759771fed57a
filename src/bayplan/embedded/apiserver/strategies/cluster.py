"""Strategies of services, nodes, classes, leases, events, and webhook configurations."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.strategy import (
    Now,
    RestStrategy,
    child,
    fill,
    items,
    round_amounts,
)
from bayplan.embedded.apiserver.validation import events, nodes, scheduling
from bayplan.embedded.apiserver.validation.causes import bad_value, forbidden_field, required
from bayplan.embedded.apiserver.validation.names import dns_label, path_segment
from bayplan.embedded.apiserver.validation.services import service_change_problems, service_problems

_THREE_HOURS = 10800


def _default_service(service: JsonObject) -> None:
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


SERVICES = RestStrategy(
    name_rule=dns_label,
    default=_default_service,
    prepare_create=_begin,
    validate=service_problems,
    validate_update=service_change_problems,
    returns_deleted=True,
)


def _default_webhooks(obj: JsonObject) -> None:
    for hook in items(obj, "webhooks"):
        fill(hook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
        fill(hook, namespaceSelector={}, objectSelector={})
        if obj.get("kind", "").startswith("Mutating"):
            fill(hook, reinvocationPolicy="Never")
        for rule in items(hook, "rules"):
            fill(rule, scope="*")
        service = (hook.get("clientConfig") or {}).get("service")
        if service:
            fill(service, port=443)


def _webhook_problems(obj: JsonObject) -> list[FieldCause]:
    found: list[FieldCause] = []
    for index, hook in enumerate(items(obj, "webhooks")):
        place = f"webhooks[{index}]"
        if not hook.get("name"):
            found.append(required(f"{place}.name"))
        if not hook.get("sideEffects"):
            found.append(required(f"{place}.sideEffects"))
        if not hook.get("admissionReviewVersions"):
            found.append(required(f"{place}.admissionReviewVersions"))
        if hook.get("matchConditions"):
            detail = "conditions in CEL are not evaluated by this server"
            found.append(forbidden_field(f"{place}.matchConditions", detail))
        if not 1 <= hook["timeoutSeconds"] <= 30:
            detail = "the timeout value must be between 1 and 30 seconds"
            found.append(bad_value(f"{place}.timeoutSeconds", hook["timeoutSeconds"], detail))
    return found


_WEBHOOKS = RestStrategy(default=_default_webhooks, validate=_webhook_problems)
CLUSTER = {
    "services": SERVICES,
    "endpoints": RestStrategy(create_on_update=True),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
}


_UTILIZATION = 80
"""Default target of CPU utilization, in percent of the requests."""


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
    "networkpolicies.networking.k8s.io": RestStrategy(default=_default_policy),
    "horizontalpodautoscalers.autoscaling": RestStrategy(default=_default_autoscaler),
}


def _default_node(node: JsonObject) -> None:
    _settle_ranges(child(node, "spec"))
    _default_status(child(node, "status"))


def _default_status(status: JsonObject) -> None:
    """Set a node's allocatable to its capacity unless it is set."""
    if not status.get("allocatable") and status.get("capacity"):
        status["allocatable"] = dict(status["capacity"])
    for field in ("capacity", "allocatable"):
        round_amounts(status.get(field))


def _settle_ranges(spec: JsonObject) -> None:
    """Set both fields of a node's pod CIDRs; the older field wins."""
    one, ranges = spec.get("podCIDR"), spec.get("podCIDRs")
    if one and (not ranges or ranges[0] != one):
        spec["podCIDRs"] = [one]
    elif ranges and not one:
        spec["podCIDR"] = ranges[0]


def _new(node: JsonObject) -> None:
    node["spec"].pop("configSource", None)
    node["status"].pop("config", None)


def _changed(new: JsonObject, _: JsonObject) -> None:
    new["spec"].pop("configSource", None)


def _status(new: JsonObject, _: JsonObject, __: Now) -> None:
    _default_status(new["status"])
    new["status"].pop("config", None)


NODES = RestStrategy(
    default=_default_node,
    prepare_create=_new,
    prepare_update=_changed,
    prepare_status=_status,
    validate=nodes.node_problems,
    validate_update=nodes.node_change_problems,
    validate_status=nodes.node_status_problems,
    warnings=nodes.node_warnings,
    keeps_status=True,
)


_NOT_YET = ("strategy", "preferredHolder")
"""Lease fields of coordinated leader election, which this server does not implement."""


def _default_priority(obj: JsonObject) -> None:
    fill(obj, preemptionPolicy="PreemptLowerPriority", value=0)


def _new_priority(obj: JsonObject) -> None:
    """Set the generation of a new class; it never changes."""
    obj["metadata"]["generation"] = 1


def _default_runtime(obj: JsonObject) -> None:
    round_amounts((obj.get("overhead") or {}).get("podFixed"))


def _new_lease(lease: JsonObject) -> None:
    for name in _NOT_YET:
        lease["spec"].pop(name, None)


def _changed_lease(new: JsonObject, _: JsonObject) -> None:
    _new_lease(new)


SCHEDULING = {
    "priorityclasses.scheduling.k8s.io": RestStrategy(
        default=_default_priority,
        prepare_create=_new_priority,
        validate_new=scheduling.priority_class_problems,
        validate_update=scheduling.priority_class_change_problems,
    ),
    "runtimeclasses.node.k8s.io": RestStrategy(
        default=_default_runtime,
        validate=scheduling.runtime_class_problems,
        validate_update=scheduling.runtime_class_change_problems,
        warnings=scheduling.runtime_class_warnings,
        create_on_update=True,
    ),
    "leases.coordination.k8s.io": RestStrategy(
        prepare_create=_new_lease,
        prepare_update=_changed_lease,
        validate=scheduling.lease_problems,
        create_on_update=True,
    ),
    "events": RestStrategy(
        name_rule=path_segment,
        validate=events.core_event_problems,
        metadata_last=True,
        create_on_update=True,
    ),
    "events.events.k8s.io": RestStrategy(
        validate=events.new_event_problems,
        validate_new=events.creation_problems,
        validate_update=events.change_problems,
        create_on_update=True,
    ),
}
