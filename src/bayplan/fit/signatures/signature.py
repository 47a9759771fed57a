"""A pod signature: everything about a pod that scheduling reads, compiled once.

Pods of one signature are interchangeable, volumes aside (see `bayplan.fit.volumes`), so whatever is
computed for a signature holds for all its pods. They are found by the encoded bytes of the fields
that matter, which costs a few microseconds. A label counts only if some selector that can concern
the pod reads it: its own, that of a running pod's term, or a service's.

All pods of a DaemonSet differ only in the node name that their affinity requires. Without it they
have one signature, by which the node is asked whether it takes the pod. Topology spreading counts
only nodes that the pod's own affinity allows, so pods with such constraints keep the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from bayplan.fit.object_copies import private_copy
from bayplan.fit.profile import CacheLimits
from bayplan.fit.signatures.reads import LabelReads, PluginFields, PluginReads
from bayplan.fit.signatures.terms import (
    SpreadConstraint,
    TermSet,
    compile_spread,
    compile_terms,
    own_label_keys,
)
from bayplan.kube.meta import Labels
from bayplan.kube.nodes import Node, NodeSelector, NodeSelectorTerm
from bayplan.kube.pods import Pod, PodStatus, Toleration
from bayplan.kube.requests import (
    pod_requests,
    pod_requests_nonzero,
    pod_requests_nonzero_on_node,
)
from bayplan.kube.resources import CPU, MEMORY
from bayplan.kube.selectors import (
    NodeSelectorMatcher,
    NodeTermMatcher,
    compile_node_selector,
    compile_node_term,
)

LARGEST = 1 << 52
"""No request counts for more, and no node has as much (4 PiB of memory): hostile numbers fit
nowhere, and no sum of them can wrap around.
"""
HUGE = 1 << 42
"""A request above this (4 TiB of memory) is summed apart, since many of them could wrap around."""
SPREADING_OWNERS = frozenset({"ReplicationController", "ReplicaSet", "StatefulSet"})

_NO_LABELS: Labels = {}
_encode = msgspec.msgpack.Encoder().encode


class HostPort(NamedTuple):
    """A port of the host that a pod takes."""

    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class RequiredNodes:
    """The nodes a pod can go to: its nodeSelector and its required node affinity."""

    labels: tuple[tuple[str, str], ...]
    matcher: NodeSelectorMatcher | None

    def matches(self, node: Node) -> bool:
        """Whether a node is among them."""
        have = node.metadata.labels
        if any(have.get(key) != value for key, value in self.labels):
            return False
        return self.matcher is None or self.matcher.matches(node)

    @property
    def says_nothing(self) -> bool:
        """Whether every node will do."""
        return not self.labels and self.matcher is None


@dataclass(frozen=True, slots=True, eq=False)
class PodSignature:
    """What scheduling reads of a pod; compared by identity, since equal pods share one."""

    namespace: str
    labels: Labels
    """Those that tell pods apart; all others are left out."""
    requests: dict[str, int]
    nonzero: tuple[int, int]
    """CPU (milli) and memory as scores count them: a default where a container requests none."""
    nonzero_placed: tuple[int, int]
    """The same once the pod is on a node, where pod-level requests are read too."""
    is_huge: bool
    """Whether it requests so much of something that sums of it need care."""
    required_nodes: RequiredNodes
    node_names: frozenset[str] | None
    """The only nodes that can match by name, if required affinity names them."""
    preferred_nodes: tuple[tuple[int, NodeTermMatcher], ...]
    tolerations: tuple[Toleration, ...]
    tolerations_key: bytes
    ports: tuple[HostPort, ...]
    images: tuple[str, ...]
    hard_spread: tuple[SpreadConstraint, ...]
    soft_spread: tuple[SpreadConstraint, ...]
    has_spread: bool
    terms: TermSet
    owner: tuple[str, str] | None
    """Kind and name of the controller whose selector default spreading uses."""
    plugin_fields: Mapping[str, PluginFields]
    """By plugin, what it reads of the pod beyond this."""


class SignatureCache:
    """Every signature seen, by the bytes of the fields that make it."""

    def __init__(self, limits: CacheLimits, plugin_reads: PluginReads) -> None:
        self._most = limits.signatures
        self._plugin_fields = plugin_reads.pod_fields
        self._sign = plugin_reads.sign
        self._signatures: dict[bytes, PodSignature] = {}
        self._own_keys: dict[bytes, frozenset[str]] = {}
        self._labels: dict[bytes, Labels] = {}
        self.reads = LabelReads()
        """The labels that services, and the terms of running pods, read."""

    def of(self, pod: Pod) -> PodSignature:
        """Return the signature of a pod as it is now; ValueError if the pod is invalid."""
        key = _spec_key(pod, self._plugin_fields(pod))
        labels = self._telling(pod, key)
        if labels:
            key += _encode(sorted(labels.items()) if len(labels) > 1 else labels)
        signature = self._signatures.get(key)
        if signature is None:
            if len(self._signatures) >= self._most:
                self._signatures.clear()  # signatures in use live on with their users
            signed = self._sign(pod)
            signature = compile_signature(private_copy(pod), dict(labels), signed)
            self._signatures[key] = signature
        return signature

    def unpinned(self, pod: Pod) -> Pod:
        """Return the pod without the name of the one node that its affinity requires, if any."""
        return without_pin(pod) if pod.spec.affinity is not None and pinned_node(pod) else pod

    def counted(self, pod: Pod) -> PodSignature:
        """The signature that a pod is counted as."""
        return self.of(pod if pod.spec.affinity is None else self.unpinned(pod))

    def labels_of(self, pod: Pod) -> Labels:
        """A pod's labels, to be kept: pods with equal labels share them."""
        labels = pod.metadata.labels
        if not labels:
            return _NO_LABELS
        key = _encode(labels)
        kept = self._labels.get(key)
        if kept is None:
            if len(self._labels) >= self._most:
                self._labels.clear()
            kept = self._labels[key] = dict(labels)
        return kept

    def _telling(self, pod: Pod, spec_key: bytes) -> Labels:
        """Return the labels that are read: by other pods' selectors, or by its own."""
        labels = pod.metadata.labels
        if not labels:
            return labels
        read = self.reads.read_labels(pod.metadata.namespace, labels)
        spec = pod.spec
        if read is labels or (spec.affinity is None and not spec.topology_spread_constraints):
            return read
        own = self._own_keys.get(spec_key)
        if own is None:
            if len(self._own_keys) >= self._most:
                self._own_keys.clear()
            own = self._own_keys[spec_key] = own_label_keys(pod)
        if own.isdisjoint(labels):
            return read
        return {key: value for key, value in labels.items() if key in read or key in own}


def _spec_key(pod: Pod, plugin_fields: object) -> bytes:
    meta, spec = pod.metadata, pod.spec
    return _encode(
        (
            meta.namespace,
            spec.containers,
            spec.init_containers,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            spec.overhead,
            spec.resources,
            _owner(pod) if meta.owner_references else None,
            _resizing(pod.status),
            plugin_fields,
        )
    )


def _resizing(status: PodStatus) -> tuple[object, ...]:
    """Return the resources in a pod's status while it is being resized; nothing for most pods."""
    says = status.container_statuses or status.init_container_statuses or status.conditions
    if not (says or status.allocated_resources or status.resources):
        return ()
    statuses = status.container_statuses
    if status.init_container_statuses:
        statuses = [*statuses, *status.init_container_statuses]
    reported = [one for one in statuses if one.allocated_resources or one.resources is not None]
    pending = [one.reason for one in status.conditions if one.type == "PodResizePending"]
    if not (reported or pending or status.allocated_resources or status.resources):
        return ()
    return reported, pending, status.allocated_resources, status.resources


def _owner(pod: Pod) -> tuple[str, str] | None:
    owner = pod.metadata.controller
    if owner is None or owner.kind not in SPREADING_OWNERS:
        return None
    expected = "v1" if owner.kind == "ReplicationController" else "apps/v1"
    return (owner.kind, owner.name) if owner.api_version == expected else None


def compile_signature(
    pod: Pod, labels: Labels, plugin_fields: Mapping[str, PluginFields]
) -> PodSignature:
    """Compile a pod's signature; `labels` are those of its labels that count."""
    spec, affinity = pod.spec, pod.spec.affinity
    node_affinity = affinity.node_affinity if affinity else None
    required = node_affinity.required if node_affinity else None
    nonzero, nonzero_placed = pod_requests_nonzero(pod), pod_requests_nonzero_on_node(pod)
    hard, soft = compile_spread(pod)
    requests = {name: min(one, LARGEST) for name, one in pod_requests(pod).items() if one > 0}
    return PodSignature(
        namespace=pod.metadata.namespace,
        labels=labels,
        requests=requests,
        nonzero=_cpu_and_memory(nonzero),
        nonzero_placed=_cpu_and_memory(nonzero_placed),
        is_huge=max((*requests.values(), *_cpu_and_memory(nonzero_placed))) > HUGE,
        required_nodes=RequiredNodes(
            labels=tuple(sorted(spec.node_selector.items())),
            matcher=compile_node_selector(required) if required else None,
        ),
        node_names=_named_nodes(pod),
        preferred_nodes=tuple(
            (preferred.weight, compile_node_term(preferred.preference))
            for preferred in (node_affinity.preferred if node_affinity else ())
            if preferred.weight
        ),
        tolerations=tuple(spec.tolerations),
        tolerations_key=_encode(spec.tolerations),
        ports=_host_ports(pod),
        images=tuple(
            normalized_image(container.image)
            for container in (*spec.init_containers, *spec.containers)
        ),
        hard_spread=hard,
        soft_spread=soft,
        has_spread=bool(spec.topology_spread_constraints),
        terms=compile_terms(pod),
        owner=_owner(pod),
        plugin_fields=plugin_fields,
    )


def _cpu_and_memory(amounts: dict[str, int]) -> tuple[int, int]:
    return _cut(amounts.get(CPU, 0)), _cut(amounts.get(MEMORY, 0))


def _cut(amount: int) -> int:
    return min(max(amount, 0), LARGEST)


def normalized_image(name: str) -> str:
    """Return an image name with its tag: `latest` if it has none."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _host_ports(pod: Pod) -> tuple[HostPort, ...]:
    sidecars = [c for c in pod.spec.init_containers if c.restart_policy == "Always"]
    return tuple(
        HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)  # noqa: S104
        for container in (*pod.spec.containers, *sidecars)
        for port in container.ports
        if port.host_port > 0
    )


def _named_nodes(pod: Pod) -> frozenset[str] | None:
    """The node names that every required term insists on, together; None if one does not."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None or not affinity.node_affinity.required:
        return None
    terms = affinity.node_affinity.required.node_selector_terms
    named: frozenset[str] = frozenset()
    for term in terms:
        by_name = [
            frozenset(field.values)
            for field in term.match_fields
            if field.key == "metadata.name" and field.operator == "In"
        ]
        if not by_name:
            return None
        named |= frozenset.intersection(*by_name)
    return named if terms else None


_NAME_FIELD = "metadata.name"


def pinned_node(pod: Pod) -> str:
    """The one node that a pod's required affinity names; empty if there is none."""
    affinity = pod.spec.affinity
    if (
        affinity is None
        or affinity.node_affinity is None
        or affinity.node_affinity.required is None
    ):
        return ""
    if pod.spec.topology_spread_constraints:
        return ""
    names = {_named(term) for term in affinity.node_affinity.required.node_selector_terms}
    return names.pop() if len(names) == 1 else ""


def _named(term: NodeSelectorTerm) -> str:
    fields = term.match_fields
    if len(fields) != 1:
        return ""
    field = fields[0]
    named = field.key == _NAME_FIELD and field.operator == "In" and len(field.values) == 1
    return field.values[0] if named else ""


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    node_affinity = affinity.node_affinity if affinity is not None else None
    return node_affinity.required if node_affinity is not None else None


def without_pin(pod: Pod) -> Pod:
    """The pod as it would be if its affinity did not name its node."""
    required, affinity = _required(pod), pod.spec.affinity
    if required is None or affinity is None or affinity.node_affinity is None:
        return pod
    terms = required.node_selector_terms
    left = [NodeSelectorTerm(match_expressions=term.match_expressions) for term in terms]
    # A term that asked for the name alone now asks for nothing, and one such is enough.
    asks = all(term.match_expressions for term in left)
    rest = replace(
        affinity.node_affinity, required=NodeSelector(node_selector_terms=left) if asks else None
    )
    spec = replace(pod.spec, affinity=replace(affinity, node_affinity=rest))
    return replace(pod, spec=spec)
