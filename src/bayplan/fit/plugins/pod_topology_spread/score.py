"""PodTopologySpread: domains with fewer matching pods are better.

Without constraints of its own, a pod whose service or controller is known is spread over hosts and
zones by default. A constraint's count weighs more, the more domains its topology has among the
feasible nodes.
"""

from __future__ import annotations

import math

import numpy as np

from bayplan.fit.plugins.base import MAX_SCORE, EvaluationRequest, RelativeScore, Score
from bayplan.fit.plugins.pod_topology_spread.filter import NAME, node_counts, spread_counts
from bayplan.fit.signatures.terms import SpreadConstraint
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import BoolArray, FloatArray, IntArray
from bayplan.fit.state.topology import ABSENT, SlotCounts, Topology
from bayplan.kube.labels import HOSTNAME


class _HostConstraint:
    """A constraint by host: counts are by node, and every node is a domain."""

    def __init__(
        self, constraint: SpreadConstraint, topology: Topology, counts: SlotCounts
    ) -> None:
        self.topology = topology
        self._counts = counts
        self._skew = float(constraint.max_skew - 1)

    def cost(self, scored: BoolArray) -> FloatArray:
        """What pods on each node cost."""
        weight = math.log(int(np.count_nonzero(scored)) + 2)
        return self._counts.counts.astype(np.float64) * weight + self._skew


class _DomainConstraint:
    """A constraint by a larger topology."""

    def __init__(
        self, constraint: SpreadConstraint, request: EvaluationRequest, keys: frozenset[str]
    ) -> None:
        self._counts = spread_counts(constraint, request.signature, request.cluster, keys)
        self.topology = self._counts.topology
        self._skew = float(constraint.max_skew - 1)

    def cost(self, scored: BoolArray) -> FloatArray:
        """What pods in each node's domain cost; a node without the label has a domain of its
        own.
        """
        codes = self.topology.codes[scored]
        seen = np.zeros(self.topology.size + 1, dtype=np.bool_)
        seen[codes] = True
        weight = math.log(int(np.count_nonzero(seen)) + 2)
        by_domain = self._counts.by_domain().astype(np.float64) * weight + self._skew
        return by_domain[self.topology.codes]


class PodTopologySpreadScore(RelativeScore):
    """All constraints that should hold."""

    name = NAME

    def __init__(
        self,
        request: EvaluationRequest,
        constraints: tuple[SpreadConstraint, ...],
        *,
        need_labels: bool,
    ) -> None:
        self._cluster = request.cluster
        self._need_labels = need_labels
        keys = frozenset(c.topology_key for c in constraints) if need_labels else frozenset()
        self._constraints = [_constraint(c, request, keys) for c in constraints]

    def points(self, feasible: BoolArray) -> IntArray:
        """Points by how few matching pods there are, compared over the feasible nodes."""
        scored = self._scored(feasible)
        total = np.zeros(self._cluster.slots.capacity)
        for constraint in self._constraints:
            cost = constraint.cost(scored)
            total += np.where(constraint.topology.codes == ABSENT, 0.0, cost)
        raw = np.floor(total + 0.5).astype(np.int64)
        among = raw[scored]
        least, most = int(among.min(initial=1 << 62)), int(among.max(initial=0))
        points = MAX_SCORE * (most + least - raw) // most if most else np.full_like(raw, MAX_SCORE)
        points[~scored] = 0
        return points

    def _scored(self, feasible: BoolArray) -> BoolArray:
        """The feasible nodes that have the labels; the others are not scored."""
        if not self._need_labels:
            return feasible
        for constraint in self._constraints:
            feasible = feasible & (constraint.topology.codes != ABSENT)
        return feasible


def _constraint(
    constraint: SpreadConstraint, request: EvaluationRequest, keys: frozenset[str]
) -> _HostConstraint | _DomainConstraint:
    if constraint.topology_key != HOSTNAME:
        return _DomainConstraint(constraint, request, keys)
    cluster: ClusterState = request.cluster
    counts = node_counts(constraint.selector, request.signature, cluster)
    return _HostConstraint(constraint, cluster.topology(HOSTNAME), counts)


def compile_score(request: EvaluationRequest) -> Score | None:
    """Compile the score, if the pod has constraints that should hold, or gets the default ones."""
    signature = request.signature
    if signature.has_spread:
        if not signature.soft_spread:
            return None
        return PodTopologySpreadScore(request, signature.soft_spread, need_labels=True)
    defaults = request.default_spread
    if not defaults.soft:
        return None
    return PodTopologySpreadScore(request, defaults.soft, need_labels=defaults.need_labels)
