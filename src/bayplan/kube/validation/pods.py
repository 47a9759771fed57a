"""Checks of pods."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from bayplan.kube.names import is_label_value
from bayplan.kube.nodes import NodeSelector, PreferredSchedulingTerm
from bayplan.kube.pods import (
    Affinity,
    Container,
    ContainerPort,
    ContainerStatus,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    ResourceMap,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from bayplan.kube.quantity import MAX_INT64
from bayplan.kube.requests import pod_requests
from bayplan.kube.resources import is_attach_limit
from bayplan.kube.selectors import parse_int64
from bayplan.kube.validation import fields
from bayplan.kube.validation.fields import FieldError, each, need, within
from bayplan.kube.validation.storage import check_pod_volume


def check_pod(pod: Pod) -> None:
    """Check a pod."""
    within("spec", _spec, pod.spec)
    within("status", _status, pod.status)
    _total("spec", pod)


def check_pod_again(pod: Pod) -> None:
    """Check a pod whose spec has been checked before, except for its node."""
    fields.optional_name("spec.nodeName", pod.spec.node_name)
    within("status", _status, pod.status)
    _total("spec", pod)


def check_template(field: str, spec: PodSpec) -> None:
    """Check the pod spec of a template."""
    within(field, _spec, spec)
    _total(field, Pod(spec=spec))


def _total(field: str, pod: Pod) -> None:
    """Check the totals: amounts that are valid by themselves can add up to an invalid one."""
    if len(pod.spec.containers) == 1 and not (pod.spec.init_containers or pod.spec.overhead):
        return
    for name, amount in pod_requests(pod).items():
        need(amount <= MAX_INT64, f"{field} (total {name[:80]})", amount, "does not fit 64 bits")


def _spec(spec: PodSpec) -> None:
    need(bool(spec.containers), "containers", None, "a pod needs at least one container")
    each("containers", _container, spec.containers)
    if spec.init_containers:
        each("initContainers", _container, spec.init_containers)
    if spec.volumes:
        each("volumes", check_pod_volume, spec.volumes)
    if spec.overhead:
        _amounts("overhead", spec.overhead)
    if spec.resources is not None:
        within("resources", _resources, spec.resources)
    _placement(spec)


def _placement(spec: PodSpec) -> None:
    fields.optional_name("nodeName", spec.node_name)
    if spec.node_selector:
        fields.labels("nodeSelector", spec.node_selector)
    if spec.affinity is not None:
        within("affinity", _affinity, spec.affinity)
    if spec.tolerations:
        each("tolerations", _toleration, spec.tolerations)
    if spec.topology_spread_constraints:
        each("topologySpreadConstraints", _spread, spec.topology_spread_constraints)
    for index, gate in enumerate(spec.scheduling_gates):
        fields.label_key(f"schedulingGates[{index}].name", gate.name)


def _status(status: PodStatus) -> None:
    if status.container_statuses:
        each("containerStatuses", _container_status, status.container_statuses)
    if status.init_container_statuses:
        each("initContainerStatuses", _container_status, status.init_container_statuses)
    if status.allocated_resources:
        fields.amounts("allocatedResources", status.allocated_resources)
    fields.optional_name("nominatedNodeName", status.nominated_node_name)
    fields.optional_time("startTime", status.start_time)
    if status.resources is not None:
        within("resources", _resources, status.resources)


def _container(container: Container) -> None:
    if container.resources.requests or container.resources.limits:
        within("resources", _resources, container.resources)
    if container.ports:
        each("ports", _port, container.ports)


def _container_status(status: ContainerStatus) -> None:
    if status.allocated_resources:
        fields.amounts("allocatedResources", status.allocated_resources)
    if status.resources is not None:
        within("resources", _resources, status.resources)


def _resources(resources: ResourceRequirements) -> None:
    if resources.requests:
        _amounts("requests", resources.requests)
    if resources.limits:
        _amounts("limits", resources.limits)


def _amounts(field: str, requested: ResourceMap) -> None:
    fields.amounts(field, requested)
    for name in requested:
        if is_attach_limit(name):
            problem = "a pod cannot request an attach limit; its volumes are counted instead"
            raise FieldError(f"{field}.{name}", requested[name], problem)


def _port(port: ContainerPort) -> None:
    if port.host_ip:
        try:
            ipaddress.ip_address(port.host_ip)
        except ValueError:
            raise fields.FieldError("hostIP", port.host_ip, "not an IP address") from None


def _toleration(toleration: Toleration) -> None:
    _toleration_of(toleration.key, toleration.operator, toleration.value)


@lru_cache(4096)
def _toleration_of(key: str, operator: str, value: str) -> None:
    if key:
        fields.label_key("key", key)
    else:
        need(operator == "Exists", "operator", operator, "must be Exists where there is no key")
    if operator == "Exists":
        need(not value, "value", value, "Exists takes no value")
    elif operator in {"Lt", "Gt"}:
        need(parse_int64(value) is not None, "value", value, "must be an integer")
    else:
        need(is_label_value(value), "value", value, "not a label value")


def _spread(constraint: TopologySpreadConstraint) -> None:
    fields.label_key("topologyKey", constraint.topology_key)
    fields.selector("labelSelector", constraint.label_selector)
    for index, key in enumerate(constraint.match_label_keys):
        fields.label_key(f"matchLabelKeys[{index}]", key)
    if constraint.min_domains is not None:
        need(constraint.when_unsatisfiable == "DoNotSchedule", "minDomains",
             constraint.min_domains, "needs whenUnsatisfiable DoNotSchedule")  # fmt: skip


def _affinity(affinity: Affinity) -> None:
    if affinity.node_affinity is not None:
        within("nodeAffinity", _node_affinity, affinity.node_affinity)
    if affinity.pod_affinity is not None:
        within("podAffinity", _pod_affinity, affinity.pod_affinity)
    if affinity.pod_anti_affinity is not None:
        within("podAntiAffinity", _pod_affinity, affinity.pod_anti_affinity)


def _node_affinity(affinity: NodeAffinity) -> None:
    if affinity.required is not None:
        within("requiredDuringSchedulingIgnoredDuringExecution", node_selector, affinity.required)
    each("preferredDuringSchedulingIgnoredDuringExecution", _preferred, affinity.preferred)


def node_selector(selector: NodeSelector) -> None:
    """Check a node selector."""
    each("nodeSelectorTerms", fields.node_term, selector.node_selector_terms)


def _preferred(term: PreferredSchedulingTerm) -> None:
    within("preference", fields.node_term, term.preference)


def _pod_affinity(affinity: PodAffinity) -> None:
    each("requiredDuringSchedulingIgnoredDuringExecution", _pod_term, affinity.required)
    each("preferredDuringSchedulingIgnoredDuringExecution", _weighted_term, affinity.preferred)


def _weighted_term(weighted: WeightedPodAffinityTerm) -> None:
    within("podAffinityTerm", _pod_term, weighted.pod_affinity_term)


def _pod_term(term: PodAffinityTerm) -> None:
    fields.label_key("topologyKey", term.topology_key)
    fields.selector("labelSelector", term.label_selector)
    fields.selector("namespaceSelector", term.namespace_selector)
    for field, keys in (
        ("matchLabelKeys", term.match_label_keys),
        ("mismatchLabelKeys", term.mismatch_label_keys),
    ):
        for index, key in enumerate(keys):
            fields.label_key(f"{field}[{index}]", key)
