"""Columns with one row for each node slot, the log of changed slots, and columns by condition.

A slot is a small integer that a node keeps for life; freed slots are used again. Every column has
`capacity` rows, whether a slot is taken or not, so that columns line up without index arithmetic.

A reader of the log refreshes the slots that changed since it last looked; one whose cursor was
dropped, or that would have to refresh most rows anyway, refreshes everything. Node sets (masks of
the nodes that satisfy a condition) and tallies are shared by the value of their condition, since
many pods ask the same ("tolerates these taints", "in zone a or b"), and refreshed when read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from bayplan.fit.indexes import ChangeLog
from bayplan.fit.profile import CacheLimits
from bayplan.kube.nodes import Node

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
SlotArray = npt.NDArray[np.intp]
Rows = SlotArray | slice
"""Some slots, or `ALL_ROWS`."""

ALL_ROWS = slice(None)
MIN_CAPACITY = 16


def grown(array: npt.NDArray[Any], rows: int, fill: Any = 0) -> npt.NDArray[Any]:
    """A copy of `array` with `rows` rows, the new ones filled."""
    bigger = np.full((rows, *array.shape[1:]), fill, dtype=array.dtype)
    bigger[: len(array)] = array
    return bigger


def pick(array: npt.NDArray[Any], rows: Rows) -> npt.NDArray[Any]:
    """Some rows of a wide column; `take` is several times faster than indexing with an array."""
    return array[rows] if isinstance(rows, slice) else array.take(rows, axis=0)


def constant(value: int) -> IntArray:
    """A number as numpy takes it fastest beside short columns: it need not be converted."""
    return np.array(value, dtype=np.int64)


class Slots:
    """Node names to slots and back, and the columns to grow when slots run out."""

    def __init__(self) -> None:
        self.capacity = MIN_CAPACITY
        self.by_name: dict[str, int] = {}
        self.names: list[str] = [""] * MIN_CAPACITY
        self._free = list(range(MIN_CAPACITY - 1, -1, -1))
        self._on_growth: list[Callable[[int], None]] = []

    def __len__(self) -> int:
        return len(self.by_name)

    def on_growth(self, grow: Callable[[int], None]) -> None:
        """Call `grow(capacity)` whenever there are more slots."""
        self._on_growth.append(grow)

    def reserve(self, count: int) -> None:
        """Reserve slots for `count` names in all."""
        if count > self.capacity:
            self._grow(count)

    def take(self, name: str) -> int:
        """A slot for a new name."""
        if not self._free:
            self._grow(self.capacity + max(self.capacity // 4, MIN_CAPACITY))
        slot = self._free.pop()
        self.by_name[name] = slot
        self.names[slot] = name
        return slot

    def of(self, names: Iterable[str]) -> SlotArray:
        """The slots of those of these names that have one."""
        slots = [self.by_name[name] for name in names if name in self.by_name]
        return np.array(slots, dtype=np.intp)

    def release(self, name: str) -> None:
        """Free the slot of a name."""
        slot = self.by_name.pop(name)
        self.names[slot] = ""
        self._free.append(slot)

    def without(self, slots: Collection[int], rows: Rows) -> BoolArray:
        """Which of some rows are not among these slots."""
        if not isinstance(rows, slice) and len(rows) == 1:  # one node: no need for a whole column
            return np.array([int(rows[0]) not in slots], dtype=np.bool_)
        mask = np.ones(self.capacity, dtype=np.bool_)
        mask[list(slots)] = False
        return mask[rows]

    def _grow(self, capacity: int) -> None:
        fresh = range(capacity - 1, self.capacity - 1, -1)
        self._free[:0] = fresh
        self.names.extend([""] * (capacity - self.capacity))
        self.capacity = capacity
        for grow in self._on_growth:
            grow(capacity)


FEW = 64


class SlotChanges(ChangeLog[int]):
    """Slots in the order in which they changed."""

    def since(self, cursor: int, capacity: int) -> Rows | None:
        """The slots that changed since `cursor`: None if none did, ALL_ROWS if too many did."""
        start = cursor - self._forgotten
        count = len(self._entries) - start
        if count == 0:
            return None
        if start < 0 or count > capacity // 2:
            return ALL_ROWS
        changed = self._entries[start:]
        # A slot that is there twice is only refreshed twice; for few slots that does not matter.
        return np.array(changed if count <= FEW else list(set(changed)), dtype=np.intp)


Condition = Callable[[Node], bool]
Count = Callable[[Node], int]


class NodeColumn:
    """A value of each node, computed from the node object."""

    dtype: npt.DTypeLike

    def __init__(
        self, value: Condition | Count, nodes: list[Node | None], changes: SlotChanges
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
    """A count for each node."""

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

    def __init__(self, nodes: list[Node | None], changes: SlotChanges, limits: CacheLimits) -> None:
        self._nodes = nodes
        self._changes = changes
        self._most = limits.node_sets
        self._sets: dict[Hashable, NodeSet] = {}
        self._tallies: dict[Hashable, NodeTally] = {}

    def where(self, key: Hashable, condition: Condition) -> NodeSet:
        """Return the set for a condition that `key` stands for."""
        found = self._sets.get(key)
        if found is None:
            if len(self._sets) >= self._most:
                self._sets.clear()  # readers keep theirs; the registry only saves work
            found = NodeSet(condition, self._nodes, self._changes)
            self._sets[key] = found
        return found

    def tally(self, key: Hashable, count: Count) -> NodeTally:
        """Return the counts for a function that `key` stands for."""
        found = self._tallies.get(key)
        if found is None:
            if len(self._tallies) >= self._most:
                self._tallies.clear()
            found = self._tallies[key] = NodeTally(count, self._nodes, self._changes)
        return found
