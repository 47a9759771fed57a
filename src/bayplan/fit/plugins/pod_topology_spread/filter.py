"""PodTopologySpread: pods that match a constraint's selector must be spread over its domains.

A constraint counts pods of its namespace that match its selector and are not terminating, on nodes
that have every topology label of the constraints and (by default) that the pod itself could use.
Counts by domain are kept in `state.pod_counts`; a decision compares each count with the least of
all domains that have a node the constraint takes into account.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayplan.fit.decision import Refusal
from bayplan.fit.plugins.base import EvaluationRequest, Filter, ReadScope
from bayplan.fit.plugins.hints import ClusterEvent, Hints, UnschedulablePod, added_pod, removed_pod
from bayplan.fit.plugins.node_affinity import required_nodes
from bayplan.fit.plugins.taint_toleration import tolerated_nodes
from bayplan.fit.requirements.default_spread import SpreadDefaults
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.signatures.terms import ClassKey, PodMatch, SpreadConstraint, everything_in
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import BoolArray, NodeSet, Rows, SlotArray
from bayplan.fit.state.pods import PodRecord
from bayplan.fit.state.topology import ABSENT, SlotCounts, SpreadCounts
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.selectors import NOTHING, Selector
from bayplan.kube.workloads import ReplicaSet, ReplicationController, Service, StatefulSet


def spread_counts(
    constraint: SpreadConstraint,
    signature: PodSignature,
    cluster: ClusterState,
    keys: frozenset[str],
) -> SpreadCounts:
    """Matching pods by domain of a constraint; `keys` are labels that a node must have to count."""
    sets, set_key = _eligible(constraint, signature, cluster, keys)

    def make() -> SpreadCounts:
        topology = cluster.topology(constraint.topology_key)
        counts = SpreadCounts(
            topology, (lambda slot: all(slot in s for s in sets)) if sets else None
        )
        for slot in cluster.slots.by_name.values():
            counts.join(slot, 1)
        return counts

    match = pods_to_spread(constraint.selector, signature)
    key = ("spread", constraint.topology_key, match, set_key)
    counts = cluster.pod_counts.counter(key, match, make)
    if not isinstance(counts, SpreadCounts):
        raise TypeError("a spread constraint counts by domain")
    return counts


def node_counts(selector: Selector, signature: PodSignature, cluster: ClusterState) -> SlotCounts:
    """Matching pods by node."""
    match = pods_to_spread(selector, signature)
    key = ("spread by node", match)
    counts = cluster.pod_counts.counter(key, match, lambda: SlotCounts(cluster.slots.capacity))
    if not isinstance(counts, SlotCounts):
        raise TypeError("pods by node are counted by slot")
    return counts


def pods_to_spread(selector: Selector, signature: PodSignature) -> PodMatch:
    """The pods that a constraint counts; an empty selector counts none."""
    meant = NOTHING if selector.matches_everything else selector
    return PodMatch((everything_in([signature.namespace], meant),), terminating_too=False)


def _eligible(
    constraint: SpreadConstraint,
    signature: PodSignature,
    cluster: ClusterState,
    keys: frozenset[str],
) -> tuple[list[NodeSet], tuple[object, ...]]:
    """The sets that a node must be in to be counted, and a key that stands for them."""
    sets: list[NodeSet] = []
    key: list[object] = []
    others = tuple(sorted(keys - {constraint.topology_key}))
    if others:
        sets.append(_having_labels(others, cluster))
        key.append(others)
    if constraint.honor_affinity and not signature.required_nodes.says_nothing:
        sets.append(required_nodes(signature, cluster))
        key.append(signature.required_nodes)
    if constraint.honor_taints:
        sets.append(tolerated_nodes(signature, cluster))
        key.append(("tolerating", signature.tolerations_key))
    return sets, tuple(key)


def _having_labels(labels: tuple[str, ...], cluster: ClusterState) -> NodeSet:
    return cluster.node_sets.where(
        ("labels", labels), lambda node: all(label in node.metadata.labels for label in labels)
    )


NAME = "PodTopologySpread"
UNEVEN = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{UNEVEN} (missing required label)"


@dataclass(frozen=True, slots=True)
class Spread:
    """How a constraint finds pods spread, and what that means for one node."""

    index: int
    """Which of the constraints that must hold it is."""
    constraint: SpreadConstraint
    domain: str | None
    """The node's domain; None if it has no such label."""
    counts: dict[str, int]
    """Matching pods by domain, over the domains that have a node which takes part."""
    least: int
    """What the fewest are taken to be."""
    skew: int
    """How many more the node's domain would have than that, with the pod."""


class _Constraint:
    """One constraint and its counts."""

    __slots__ = ("_limit", "_min_domains", "constraint", "counts", "match", "own")

    def __init__(
        self, constraint: SpreadConstraint, request: EvaluationRequest, keys: frozenset[str]
    ) -> None:
        signature, cluster = request.signature, request.cluster
        self.own = own = constraint.selector.matches(signature.labels)
        self.constraint = constraint
        self.match = pods_to_spread(constraint.selector, signature)
        self.counts = spread_counts(constraint, signature, cluster, keys)
        self._limit = constraint.max_skew - (1 if own else 0)
        self._min_domains = constraint.min_domains

    def allowed_domains(self) -> BoolArray:
        """Domains that one more pod would not make too full; the last entry is "no domain"."""
        allowed: BoolArray = self.counts.by_domain() <= self._limit + self._least()
        allowed[-1] = False
        return allowed

    def _least(self) -> int:
        """The fewest of any domain; none, where there are fewer domains than there should be."""
        counts, domains = self.counts.by_domain(), self.counts.domains()
        number = int(np.count_nonzero(domains))
        return int(counts[domains].min()) if number >= max(self._min_domains, 1) else 0

    def spread(self, index: int, slot: int) -> Spread:
        """How things stand, seen from one node."""
        counts, least = self.counts.by_domain(), self._least()
        code = int(self.counts.topology.codes[slot])
        values = self.counts.topology.values
        by_value = {values[c]: int(counts[c]) for c in np.flatnonzero(self.counts.domains())}
        domain = None if code == ABSENT else values[code]
        skew = int(counts[code]) + self.own - least
        return Spread(index, self.constraint, domain, by_value, least, skew)


class PodTopologySpread(Filter):
    """All constraints that must hold."""

    name = NAME
    reads = ReadScope.CLUSTER

    def __init__(self, request: EvaluationRequest) -> None:
        hard = request.signature.hard_spread or request.default_spread.hard
        keys = frozenset(constraint.topology_key for constraint in hard)
        self._namespaces = request.cluster.namespaces
        self._affecting: dict[ClassKey, bool] = {}
        self._constraints = [_Constraint(constraint, request, keys) for constraint in hard]

    def passes(self, rows: Rows) -> BoolArray:
        """Return the nodes in domains that are not too full."""
        masks = [
            constraint.allowed_domains()[constraint.counts.topology.codes[rows]]
            for constraint in self._constraints
        ]
        passes = masks[0]
        for mask in masks[1:]:
            passes = passes & mask
        return passes

    def refusal(self, slot: int) -> Refusal:
        """The first constraint that does not hold."""
        for constraint in self._constraints:
            code = constraint.counts.topology.codes[slot]
            if code == ABSENT:
                return Refusal.unresolvable(NAME, NO_LABEL)
            if not constraint.allowed_domains()[code]:
                return Refusal.unschedulable(NAME, UNEVEN)
        raise LookupError("the node passes every spread constraint")

    def failing(self, slot: int) -> list[Spread]:
        """The constraints that do not hold on a node."""
        return [
            constraint.spread(index, slot)
            for index, constraint in enumerate(self._constraints)
            if not constraint.allowed_domains()[constraint.counts.topology.codes[slot]]
        ]

    def missing_labels(self, slot: int) -> dict[str, list[str]]:
        """The labels of constraints, with the domains that have the fewest pods first."""
        return {
            one.constraint.topology_key: sorted(one.counts, key=lambda d: (one.counts[d], d))
            for one in self.failing(slot)
            if one.domain is None
        }

    def unresolvable(self, slots: SlotArray) -> BoolArray:
        """Those without a label, unless another constraint refuses them first."""
        first = np.zeros(len(slots), dtype=np.bool_)
        undecided = ~first
        for constraint in self._constraints:
            codes = constraint.counts.topology.codes[slots]
            first |= undecided & (codes == ABSENT)
            undecided &= constraint.allowed_domains()[codes]
        return first

    def is_affected_by(self, record: PodRecord) -> bool:
        """Those that a constraint counts."""
        known = self._affecting.get(record.class_key)
        if known is None:
            known = any(self._counts(constraint, record.pod) for constraint in self._constraints)
            self._affecting[record.class_key] = known
        return known

    def _counts(self, constraint: _Constraint, pod: Pod) -> bool:
        meta, terminating = pod.metadata, pod.is_terminating
        match, known = constraint.match, self._namespaces
        return match.picks(meta.namespace, meta.labels, known, terminating=terminating)


def compile_filter(request: EvaluationRequest) -> Filter | None:
    """Compile the filter, if the pod has constraints that must hold."""
    hard = request.signature.hard_spread or request.default_spread.hard
    return PodTopologySpread(request) if hard else None


def _pod_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:
    """Whether a pod was added or removed that a constraint counts; of default ones, any in the
    namespace may.
    """
    pods = [pod for pod in (removed_pod(event), added_pod(event)) if pod is not None]
    nearby = [pod for pod in pods if pod.metadata.namespace == pending.signature.namespace]
    if not pending.signature.hard_spread:
        return bool(nearby)
    return any(
        constraint.selector.matches(pod.metadata.labels)
        for pod in nearby
        for constraint in pending.signature.hard_spread
    )


def _node_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:  # noqa: ARG001 - for every pod
    """Whether a node was added or removed, or a change decides whether its pods count."""
    before, after = event.before, event.after
    if not isinstance(before, Node) or not isinstance(after, Node):
        return True
    return before.metadata.labels != after.metadata.labels or before.spec != after.spec


def _workload_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:
    """Whether a service or controller changed from which default constraints are deduced."""
    known = event.after if event.after is not None else event.before
    defaults = pending.plugins.args_of(SpreadDefaults).constraints or ()
    deduced = not pending.signature.has_spread and any(one.must_hold for one in defaults)
    nearby = known is not None and known.metadata.namespace == pending.signature.namespace
    return deduced and nearby


HINTS: Hints = {
    Node: _node_may_help,
    Pod: _pod_may_help,
    Service: _workload_may_help,
    ReplicationController: _workload_may_help,
    ReplicaSet: _workload_may_help,
    StatefulSet: _workload_may_help,
}
