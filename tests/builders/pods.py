"""Builders of pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from bayplan.kube.meta import Condition, LabelSelector, Quantity
from bayplan.kube.nodes import NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm, TaintEffect
from bayplan.kube.pods import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSchedulingGate,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from tests.builders.base import DEFAULT
from tests.builders.pod_volumes import PodVolumes
from tests.builders.selectors import selector


class PodBuilder(PodVolumes):
    """A pod with one container, unless more are added."""

    def __init__(self, name: str, namespace: str = DEFAULT) -> None:
        super().__init__(Pod(), name, namespace)
        self._built.spec.containers = [Container(name="c0")]

    def request(self, resource: str, quantity: Quantity) -> Self:
        """Ask for a resource, in the last container."""
        resources = self._built.spec.containers[-1].resources
        resources.requests = {**resources.requests, resource: quantity}
        return self

    def limit(self, resource: str, quantity: Quantity) -> Self:
        """Limit a resource, in the last container."""
        resources = self._built.spec.containers[-1].resources
        resources.limits = {**resources.limits, resource: quantity}
        return self

    def cpu(self, quantity: Quantity) -> Self:
        """Ask for cpu."""
        return self.request("cpu", quantity)

    def memory(self, quantity: Quantity) -> Self:
        """Ask for memory."""
        return self.request("memory", quantity)

    def image(self, image: str) -> Self:
        """Run this image in the last container."""
        self._built.spec.containers[-1].image = image
        return self

    def container(self, **requests: Quantity) -> Self:
        """Add a container with these requests."""
        self._built.spec.containers.append(
            _container(f"c{len(self._built.spec.containers)}", requests)
        )
        return self

    def init(self, **requests: Quantity) -> Self:
        """Add an init container with these requests."""
        self._built.spec.init_containers = [
            *self._built.spec.init_containers,
            _container(f"i{len(self._built.spec.init_containers)}", requests),
        ]
        return self

    def sidecar(self, **requests: Quantity) -> Self:
        """Add an init container that keeps running."""
        self.init(**requests)
        self._built.spec.init_containers[-1].restart_policy = "Always"
        return self

    def overhead(self, **amounts: Quantity) -> Self:
        """Add overhead of the runtime."""
        self._built.spec.overhead = dict(amounts)
        return self

    def pod_level(self, **requests: Quantity) -> Self:
        """Ask for resources for the pod as a whole."""
        self._built.spec.resources = ResourceRequirements(requests=dict(requests))
        return self

    def host_port(self, port: int, protocol: Literal["TCP", "UDP", "SCTP"] = "TCP",
                  host_ip: str = "") -> Self:  # fmt: skip
        """Take a port of the host."""
        taken = ContainerPort(
            container_port=port, host_port=port, protocol=protocol, host_ip=host_ip
        )
        container = self._built.spec.containers[-1]
        container.ports = [*container.ports, taken]
        return self

    def node(self, name: str) -> Self:
        """Run it on a node."""
        self._built.spec.node_name = name
        self._built.status.phase = "Running"
        return self

    def nominated(self, node: str) -> Self:
        """Nominate it for a node, as preemption does."""
        self._built.status.nominated_node_name = node
        return self

    def phase(self, phase: str) -> Self:
        """Say where it stands."""
        self._built.status.phase = phase
        return self

    def started(self, timestamp: str) -> Self:
        """Say when it started."""
        self._built.status.start_time = timestamp
        return self

    def condition(self, kind: str, status: str = "True", reason: str = "") -> Self:
        """Add a condition."""
        added = Condition(type=kind, status=status, reason=reason)
        self._built.status.conditions = [*self._built.status.conditions, added]
        return self

    def priority(self, value: int, class_name: str = "") -> Self:
        """Give it a priority."""
        self._built.spec.priority = value
        self._built.spec.priority_class_name = class_name
        return self

    def never_preempts(self) -> Self:
        """Keep it from preempting others."""
        self._built.spec.preemption_policy = "Never"
        return self

    def gate(self, name: str) -> Self:
        """Add a scheduling gate."""
        gates = self._built.spec.scheduling_gates
        self._built.spec.scheduling_gates = [*gates, PodSchedulingGate(name=name)]
        return self

    def runtime_class(self, name: str) -> Self:
        """Run it with a runtime class."""
        self._built.spec.runtime_class_name = name
        return self

    def device(self, claim: str) -> Self:
        """Use a claim to devices."""
        named = PodResourceClaim(f"device-{claim}", resource_claim_name=claim)
        self._built.spec.resource_claims = [*self._built.spec.resource_claims, named]
        return self

    def device_after(self, template: str, made: str | None = None, *, told: bool = True) -> Self:
        """Use a claim that is made for it after a template, if that has been told."""
        named = PodResourceClaim(f"after-{template}", resource_claim_template_name=template)
        self._built.spec.resource_claims = [*self._built.spec.resource_claims, named]
        if told:
            self._built.status.resource_claim_statuses.append(
                PodResourceClaimStatus(named.name, made)
            )
        return self

    def scheduler(self, name: str) -> Self:
        """Leave it to a scheduler."""
        self._built.spec.scheduler_name = name
        return self

    def node_selector(self, labels: Mapping[str, str] | None = None, **more: str) -> Self:
        """Need a node with these labels."""
        wanted = {**self._built.spec.node_selector, **(labels or {}), **more}
        self._built.spec.node_selector = wanted
        return self

    def node_affinity(self, *terms: NodeSelectorTerm) -> Self:
        """Need a node that one of these terms matches."""
        self._node_affinity().required = NodeSelector(node_selector_terms=list(terms))
        return self

    def prefers_node(self, weight: int, term: NodeSelectorTerm) -> Self:
        """Like a node that this term matches."""
        liked = PreferredSchedulingTerm(weight=weight, preference=term)
        self._node_affinity().preferred.append(liked)
        return self

    def toleration(
        self,
        key: str = "",
        value: str = "",
        effect: TaintEffect | Literal[""] = "",
        operator: Literal["Exists", "Equal", "Lt", "Gt", ""] | None = None,
    ) -> Self:
        """Tolerate a taint; without a value any value of the key."""
        chosen = operator if operator is not None else ("Equal" if value else "Exists")
        added = Toleration(key=key, value=value, effect=effect, operator=chosen)
        self._built.spec.tolerations = [*self._built.spec.tolerations, added]
        return self

    def spread(
        self,
        topology_key: str,
        max_skew: int = 1,
        when: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule",
        label_selector: LabelSelector | None = None,
        **constraint: object,
    ) -> Self:
        """Spread over a topology; the selector is the pod's own labels unless given."""
        chosen = label_selector or selector(self._built.metadata.labels)
        added = TopologySpreadConstraint(
            max_skew=max_skew,
            topology_key=topology_key,
            when_unsatisfiable=when,
            label_selector=chosen,
        )
        for field, value in constraint.items():
            setattr(added, field, value)
        constraints = self._built.spec.topology_spread_constraints
        self._built.spec.topology_spread_constraints = [*constraints, added]
        return self

    def affinity(self, topology_key: str, label_selector: LabelSelector | None = None) -> Self:
        """Need to meet pods in a topology; those with its own labels unless given."""
        self._pod_affinity().required.append(self._term(topology_key, label_selector))
        return self

    def anti_affinity(self, topology_key: str, label_selector: LabelSelector | None = None) -> Self:
        """Need to avoid pods in a topology; those with its own labels unless given."""
        self._pod_anti_affinity().required.append(self._term(topology_key, label_selector))
        return self

    def prefers_affinity(
        self, weight: int, topology_key: str, label_selector: LabelSelector | None = None
    ) -> Self:
        """Like to meet pods in a topology."""
        term = self._term(topology_key, label_selector)
        liked = WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term)
        self._pod_affinity().preferred.append(liked)
        return self

    def prefers_anti_affinity(
        self, weight: int, topology_key: str, label_selector: LabelSelector | None = None
    ) -> Self:
        """Like to avoid pods in a topology."""
        term = self._term(topology_key, label_selector)
        liked = WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term)
        self._pod_anti_affinity().preferred.append(liked)
        return self

    def affinity_term(self, term: PodAffinityTerm, *, anti: bool = False) -> Self:
        """Add any required term."""
        side = self._pod_anti_affinity() if anti else self._pod_affinity()
        side.required.append(term)
        return self

    def _term(self, topology_key: str, label_selector: LabelSelector | None) -> PodAffinityTerm:
        chosen = label_selector or selector(self._built.metadata.labels)
        return PodAffinityTerm(topology_key=topology_key, label_selector=chosen)

    def _affinity(self) -> Affinity:
        self._built.spec.affinity = self._built.spec.affinity or Affinity()
        return self._built.spec.affinity

    def _node_affinity(self) -> NodeAffinity:
        affinity = self._affinity()
        affinity.node_affinity = affinity.node_affinity or NodeAffinity()
        return affinity.node_affinity

    def _pod_affinity(self) -> PodAffinity:
        affinity = self._affinity()
        affinity.pod_affinity = affinity.pod_affinity or PodAffinity()
        return affinity.pod_affinity

    def _pod_anti_affinity(self) -> PodAffinity:
        affinity = self._affinity()
        affinity.pod_anti_affinity = affinity.pod_anti_affinity or PodAffinity()
        return affinity.pod_anti_affinity


def make_pod(name: str = "pod", namespace: str = DEFAULT) -> PodBuilder:
    """Start a pod."""
    return PodBuilder(name, namespace)


def _container(name: str, requests: Mapping[str, Quantity]) -> Container:
    said = {key.replace("_", "-"): quantity for key, quantity in requests.items()}
    return Container(name=name, resources=ResourceRequirements(requests=said))
