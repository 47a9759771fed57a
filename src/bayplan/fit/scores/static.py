"""Raw counts on the node object alone, kept by slot and refreshed for nodes that change."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from bayplan.fit.scores.base import RelativeScore, proportional
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import BoolArray, IntArray
from bayplan.kube.nodes import Node


class CountedScore(RelativeScore):
    """A relative score that scales a count of something on the node object."""

    more_is_better: ClassVar[bool]

    def __init__(self, count: Callable[[Node], int], cluster: Cluster) -> None:
        self._count = count
        self._cluster = cluster
        self._raw: IntArray = np.zeros(0, dtype=np.int64)
        self._cursor = -1
        self._is_flat = False

    @property
    def is_flat(self) -> bool:
        """Whether no node has any of what is counted."""
        self._refreshed()
        return self._is_flat

    @property
    def stays_flat(self) -> bool:
        """Only nodes matter."""
        return self.is_flat

    def points(self, feasible: BoolArray) -> IntArray:
        """Counts scaled by the largest of the feasible nodes."""
        return proportional(self._refreshed(), feasible, reverse=not self.more_is_better)

    def _refreshed(self) -> IntArray:
        changes, capacity = self._cluster.node_changes, self._cluster.slots.capacity
        if self._cursor == changes.end and len(self._raw) == capacity:
            return self._raw
        rows = changes.since(self._cursor, capacity) if len(self._raw) == capacity else None
        if not isinstance(rows, np.ndarray):
            rows = np.arange(capacity)
            self._raw = np.zeros(capacity, dtype=np.int64)
        for slot in rows.tolist():
            node = self._cluster.nodes[slot]
            self._raw[slot] = self._count(node) if node else 0
        self._cursor = changes.end
        self._is_flat = not self._raw.any()
        return self._raw
