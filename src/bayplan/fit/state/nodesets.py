"""Sets of nodes that satisfy some condition on the node object, each kept as a mask; and numbers of
something that nodes have.

Many shapes ask the same thing ("tolerates these taints", "in zone a or b"), so sets are shared by
the value of their condition. A set is refreshed when it is read, for the nodes that changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from bayplan.fit.limits import Limits
from bayplan.fit.state.changes import ChangeLog
from bayplan.fit.state.columns import BoolArray, IntArray, Rows, SlotArray
from bayplan.kube.nodes import Node

Condition = Callable[[Node], bool]
Count = Callable[[Node], int]


class NodeColumn:
    """A value of each node, worked out from the node object."""

    dtype: npt.DTypeLike

    def __init__(
        self, value: Condition | Count, nodes: list[Node | None], changes: ChangeLog
    ) -> None:
        self._value = value
        self._nodes = nodes
        self._changes = changes
        self._cursor = -1
        self._column: npt.NDArray[Any] = np.zeros(len(nodes), dtype=self.dtype)

    def _refreshed(self) -> npt.NDArray[Any]:
        if self._cursor != self._changes.end or len(self._column) != len(self._nodes):
            self._refresh()
        return self._column

    def _refresh(self) -> None:
        rows: Rows | None = None
        if self._cursor >= 0 and len(self._column) == len(self._nodes):
            rows = self._changes.since(self._cursor, len(self._nodes))
        if isinstance(rows, np.ndarray):
            self._evaluate(rows)
        else:
            self._column = np.zeros(len(self._nodes), dtype=self.dtype)
            self._evaluate(np.arange(len(self._nodes)))
        self._cursor = self._changes.end

    def _evaluate(self, rows: SlotArray) -> None:
        for slot in rows.tolist():
            node = self._nodes[slot]
            self._column[slot] = node is not None and self._value(node)


class NodeSet(NodeColumn):
    """The nodes that satisfy a condition."""

    dtype = np.bool_

    def mask(self) -> BoolArray:
        """The set, by slot."""
        return self._refreshed()

    def __contains__(self, slot: int) -> bool:
        return bool(self.mask()[slot])


class NodeTally(NodeColumn):
    """How many of something each node has."""

    dtype = np.int64

    def counts(self) -> IntArray:
        """The numbers, by slot."""
        return self._refreshed()

    @property
    def is_zero(self) -> bool:
        """Whether no node has any."""
        self._refreshed()
        return self._is_zero

    def _refresh(self) -> None:
        super()._refresh()
        self._is_zero = not self._column.any()


class NodeSets:
    """All sets in use, by the value of their condition."""

    def __init__(self, nodes: list[Node | None], changes: ChangeLog, limits: Limits) -> None:
        self._nodes = nodes
        self._changes = changes
        self._most = limits.node_sets
        self._sets: dict[Hashable, NodeSet] = {}
        self._tallies: dict[Hashable, NodeTally] = {}

    def where(self, key: Hashable, condition: Condition) -> NodeSet:
        """The set for a condition that `key` stands for."""
        found = self._sets.get(key)
        if found is None:
            if len(self._sets) >= self._most:
                self._sets.clear()  # readers keep theirs; the registry only saves work
            found = NodeSet(condition, self._nodes, self._changes)
            self._sets[key] = found
        return found

    def tally(self, key: Hashable, count: Count) -> NodeTally:
        """The numbers of something that `key` stands for."""
        found = self._tallies.get(key)
        if found is None:
            if len(self._tallies) >= self._most:
                self._tallies.clear()
            found = self._tallies[key] = NodeTally(count, self._nodes, self._changes)
        return found
