"""One request, evaluated again and again at the cost of what has changed.

An evaluation keeps for every node whether it passes the filters that look at one node at a time,
and the points of the scores that do. When it is read again, it refreshes the nodes that changed
since. Filters and scores that compare nodes (spreading, affinity, normalised scores) are computed
anew, if they are active at all. The result is one vector of ranks: total score first, then a hash
of the node's name, so that equal clusters give equal answers whatever order they were built in; -1
where the pod does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bayplan.fit.plugins.base import EvaluationRequest, Filter, LocalScore, ReadScope, RelativeScore
from bayplan.fit.plugins.registry import compile_filters, compile_scores
from bayplan.fit.state.cluster import TIE_BITS
from bayplan.fit.state.columns import ALL_ROWS, BoolArray, IntArray, Rows, constant

DOES_NOT_FIT = -1
REFUSED, SHIFT = constant(DOES_NOT_FIT), constant(TIE_BITS)


class Evaluation:
    """Which nodes fit pods of one request, and how they rank, kept up to date."""

    def __init__(self, request: EvaluationRequest) -> None:
        self.request = request
        self.filters = compile_filters(request)
        self.scores = compile_scores(request)
        self._of_node = [f for f in self.filters if f.reads is ReadScope.NODE]
        self._of_usage = [f for f in self.filters if f.reads is ReadScope.USAGE]
        self._of_cluster = [f for f in self.filters if f.reads is ReadScope.CLUSTER]
        local = [s for s in self.scores if isinstance(s, LocalScore)]
        self._local = [s for s in local if s.reads is ReadScope.USAGE]
        self._local_of_node = [s for s in local if s.reads is ReadScope.NODE]
        self._relative = [s for s in self.scores if isinstance(s, RelativeScore)]
        self._node_cursor = self._usage_cursor = -1
        self._flat = 0
        """Points that all nodes get by scores that are the same for all of them now."""
        self._quiet_version = -1
        """The version of rules at which cluster filters and relative scores were inactive."""
        self.partial_refreshes = 0
        """How often some nodes were refreshed, and not all."""
        self.partial_rankings = 0
        """How often only those were ranked anew."""
        self._reset()

    def best(self, rows: Rows = ALL_ROWS) -> int:
        """Return the slot of the best of these nodes, or DOES_NOT_FIT."""
        self.refresh()
        return best_of(self.ranks, rows)

    def ranks_without(self, slots: Iterable[int]) -> IntArray:
        """Return the ranks if these slots' nodes did not fit: scores compare only those that do."""
        self.refresh()
        feasible = self.ranks >= 0
        feasible[list(slots)] = False
        return self._ranked(feasible, self._comparing())

    def refresh(self) -> None:
        """Bring the ranks up to date."""
        cluster = self.request.cluster
        if len(self.ranks) != cluster.slots.capacity:
            self._reset()
        rows = self._changed_rows()
        if rows is not None:
            self.partial_refreshes += not isinstance(rows, slice)
            self._refresh_local(rows)
        self._rank(rows)

    def _reset(self) -> None:
        capacity = self.request.cluster.slots.capacity
        self._passes_alone: BoolArray = np.zeros(capacity, dtype=np.bool_)
        self._points_alone: IntArray = np.zeros(capacity, dtype=np.int64)
        self._base: IntArray = np.zeros(capacity, dtype=np.int64)
        """Ranks by node objects and flat points alone, whether nodes pass or not."""
        self._local_ranks: IntArray = np.full(capacity, DOES_NOT_FIT, dtype=np.int64)
        """Ranks by filters and scores of one node at a time."""
        self.ranks: IntArray = self._local_ranks
        self._node_cursor = self._usage_cursor = -1

    def _changed_rows(self) -> Rows | None:
        cluster = self.request.cluster
        nodes, usage = cluster.node_changes, cluster.usage_changes
        usage_rows = usage.since(self._usage_cursor, len(self.ranks))
        self._usage_cursor = usage.end
        if self._node_cursor == nodes.end:
            return usage_rows
        node_rows = ALL_ROWS if self._node_cursor < 0 else self._node_rows()
        self._node_cursor = nodes.end
        if node_rows is None:
            return usage_rows
        rescored = self._refresh_nodes(node_rows)
        if rescored or isinstance(node_rows, slice) or isinstance(usage_rows, slice):
            return ALL_ROWS
        return node_rows if usage_rows is None else np.union1d(node_rows, usage_rows)

    def _node_rows(self) -> Rows | None:
        return self.request.cluster.node_changes.since(self._node_cursor, len(self.ranks))

    def _refresh_nodes(self, rows: Rows) -> bool:
        """Refresh what rests on node objects; return whether that moved points on other nodes
        too.
        """
        passes = self.request.cluster.alive[rows].copy()
        for one in self._of_node:
            passes &= one.passes(rows)
        self._passes_alone[rows] = passes
        before = self._points_alone
        self._points_alone = np.zeros_like(before)
        for score in self._local_of_node:
            self._points_alone += score.points(ALL_ROWS) * score.weight
        self._base = ((self._points_alone + self._flat) << TIE_BITS) | self.request.cluster.ties
        return not np.array_equal(before, self._points_alone)

    def _refresh_local(self, rows: Rows) -> None:
        """Refresh what rests on one node at a time."""
        passes = self._passes_alone[rows]
        for one in self._of_usage:
            passes = passes & one.passes(rows)
        ranks = self._base[rows]
        if isinstance(rows, slice):  # then it is a view
            ranks = ranks.copy()
        if self._local:
            points = self._points(rows)
            points <<= SHIFT
            ranks += points
        np.putmask(ranks, ~passes, REFUSED)
        self._local_ranks[rows] = ranks

    def _points(self, rows: Rows) -> IntArray:
        """Return the sum of the local scores."""
        first, *others = self._local
        points = _weighted(first, rows)
        for score in others:
            points += _weighted(score, rows)
        return points

    def _rank(self, rows: Rows | None) -> None:
        if self._quiet_version == self.request.cluster.rules_version:
            self.partial_rankings += not (rows is None or isinstance(rows, slice))
            return
        rules = [f for f in self._of_cluster if f.is_active]
        relative = self._comparing()
        if rules or relative:
            self._quiet_version = -1
            self._rank_together(rules, relative)
            return
        self.ranks = self._local_ranks
        if all(score.stays_flat for score in self._relative):
            self._quiet_version = self.request.cluster.rules_version

    def _comparing(self) -> list[RelativeScore]:
        """Return the scores that compare nodes now; the flat points of the others are counted."""
        relative: list[RelativeScore] = []
        flat = 0
        for score in self._relative:
            if score.is_flat:
                flat += score.flat_points * score.weight
            else:
                relative.append(score)
        if flat != self._flat:
            self._lift((flat - self._flat) << TIE_BITS)
            self._flat = flat
        return relative

    def _lift(self, ranks: int) -> None:
        """Add points to all nodes."""
        self._base += ranks
        self._local_ranks[self._local_ranks >= 0] += ranks

    def _rank_together(self, rules: list[Filter], relative: list[RelativeScore]) -> None:
        feasible = self._local_ranks >= 0
        for rule in rules:
            feasible &= rule.passes(ALL_ROWS)
        self.ranks = self._ranked(feasible, relative)

    def _ranked(self, feasible: BoolArray, relative: list[RelativeScore]) -> IntArray:
        ranks = self._local_ranks
        for score in relative:
            ranks = ranks + (score.points(feasible) * score.weight << SHIFT)
        return np.where(feasible, ranks, REFUSED)


def _weighted(score: LocalScore, rows: Rows) -> IntArray:
    points = score.points(rows)  # made for us, so that it can be changed
    if score.weight != 1:
        points *= score.weight
    return points


def best_of(ranks: IntArray, rows: Rows) -> int:
    """Return the slot of the highest rank among these, or DOES_NOT_FIT."""
    if isinstance(rows, slice):
        slot = int(ranks.argmax())
    elif len(rows):
        slot = int(rows[ranks[rows].argmax()])
    else:
        return DOES_NOT_FIT
    return slot if ranks[slot] >= 0 else DOES_NOT_FIT
