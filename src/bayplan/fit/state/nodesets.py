"""Sets of nodes that satisfy some condition on the node object, each kept as a mask.

Many shapes ask the same thing ("tolerates these taints", "in zone a or b"), so sets are shared by
the value of their condition. A set is refreshed when it is read, for the nodes that changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from bayplan.fit.limits import Limits
from bayplan.fit.state.changes import ChangeLog
from bayplan.fit.state.columns import BoolArray, Rows, SlotArray
from bayplan.kube.nodes import Node

Condition = Callable[[Node], bool]


class NodeSet:
    """The nodes that satisfy a condition."""

    def __init__(self, condition: Condition, nodes: list[Node | None], changes: ChangeLog) -> None:
        self._condition = condition
        self._nodes = nodes
        self._changes = changes
        self._cursor = -1
        self._mask: BoolArray = np.zeros(len(nodes), dtype=np.bool_)

    def mask(self) -> BoolArray:
        """The set, by slot."""
        if self._cursor != self._changes.end or len(self._mask) != len(self._nodes):
            self._refresh()
        return self._mask

    def __contains__(self, slot: int) -> bool:
        return bool(self.mask()[slot])

    def _refresh(self) -> None:
        rows: Rows | None = None
        if self._cursor >= 0 and len(self._mask) == len(self._nodes):
            rows = self._changes.since(self._cursor, len(self._nodes))
        if isinstance(rows, np.ndarray):
            self._evaluate(rows)
        else:
            self._mask = np.zeros(len(self._nodes), dtype=np.bool_)
            self._evaluate(np.arange(len(self._nodes)))
        self._cursor = self._changes.end

    def _evaluate(self, rows: SlotArray) -> None:
        for slot in rows.tolist():
            node = self._nodes[slot]
            self._mask[slot] = node is not None and self._condition(node)


class NodeSets:
    """All sets in use, by the value of their condition."""

    def __init__(self, nodes: list[Node | None], changes: ChangeLog, limits: Limits) -> None:
        self._nodes = nodes
        self._changes = changes
        self._most = limits.node_sets
        self._sets: dict[Hashable, NodeSet] = {}

    def where(self, key: Hashable, condition: Condition) -> NodeSet:
        """The set for a condition that `key` stands for."""
        found = self._sets.get(key)
        if found is None:
            if len(self._sets) >= self._most:
                self._sets.clear()  # readers keep theirs; the registry only saves work
            found = NodeSet(condition, self._nodes, self._changes)
            self._sets[key] = found
        return found
