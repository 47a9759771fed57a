"""Resource columns: what nodes have, what is free, and what scores need to know of both.

Columns are pods, cpu (milli), memory, ephemeral-storage, and then whatever else pods have asked
for; a resource that nobody asks for has no column. Amounts are clamped far below the range of a
64-bit integer, so that no sum of hostile numbers can wrap around and make something fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from bayplan.fit.limits import Limits
from bayplan.fit.shapes.shape import LARGEST, Shape
from bayplan.fit.state.columns import IntArray, grown
from bayplan.fit.state.scored import ScoredColumns
from bayplan.kube import quantity
from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import Node
from bayplan.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

NEVER_SHORT = -(1 << 62)
"""The need of a resource that was not asked for: less than any node is ever short of."""
BASE_COLUMNS = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)


COUNTED_CPU, COUNTED_MEMORY = "counted cpu", "counted memory"
"""What scores count, with defaults, next to what is requested."""


class HugeSums:
    """Exact sums of huge requests, by slot and resource."""

    def __init__(self) -> None:
        self._sums: dict[int, Counter[str]] = {}

    def more(self, slot: int, amounts: Mapping[str, int], sign: int) -> dict[str, int]:
        """By how much the sums grow (or, negative, shrink), each cut to LARGEST."""
        sums = self._sums.setdefault(slot, Counter())
        before = {name: min(sums[name], LARGEST) for name in amounts}
        for name, amount in amounts.items():
            sums[name] += sign * amount
        if not any(sums.values()):
            del self._sums[slot]
        return {name: min(sums[name], LARGEST) - before[name] for name in amounts}


class Resources:
    """Allocatable and free amounts by slot, with what each shape takes."""

    def __init__(self, capacity: int, nodes: list[Node | None], limits: Limits) -> None:
        self._nodes = nodes
        self._most_vectors = limits.shapes
        self.columns = {name: index for index, name in enumerate(BASE_COLUMNS)}
        self.allocatable: IntArray = np.zeros((capacity, len(BASE_COLUMNS)), dtype=np.int64)
        self.free: IntArray = np.zeros((capacity, len(BASE_COLUMNS)), dtype=np.int64)
        self.scored = ScoredColumns(capacity, limits)
        self._vectors: dict[Shape, IntArray] = {}
        self._huge = HugeSums()

    def grow(self, capacity: int) -> None:
        """Follow the slots."""
        self.allocatable = grown(self.allocatable, capacity)
        self.free = grown(self.free, capacity)
        self.scored.grow(capacity)

    def set_node(self, slot: int, node: Node | None) -> None:
        """A node with nothing on it takes the slot, or leaves it."""
        amounts = node.status.allocatable if node else {}
        row = [allocatable(amounts, name) for name in self.columns]
        self.allocatable[slot] = row
        self.free[slot] = row
        self.scored.set_node(slot, row[1], row[2])

    def take(self, slot: int, shape: Shape, sign: int) -> None:
        """A pod of this shape comes to the slot's node (+1) or leaves it (-1)."""
        if shape.is_huge:
            self._take_huge(slot, shape, sign)
            return
        vector = self._vectors.get(shape)
        if vector is None:
            vector = self.vector(shape)
        if sign > 0:
            self.free[slot] -= vector
        else:
            self.free[slot] += vector
        self.scored.take(slot, shape, sign)

    def _take_huge(self, slot: int, shape: Shape, sign: int) -> None:
        """Huge requests are summed exactly, and together count for LARGEST at most: no node has as
        much, and no sum wraps around.
        """
        amounts = {PODS: 1, **shape.requests}
        counted = dict(zip((COUNTED_CPU, COUNTED_MEMORY), shape.nonzero_placed, strict=True))
        for name in shape.requests:
            self.ensure(name)
        more = self._huge.more(slot, {**amounts, **counted}, sign)
        for name in amounts:
            self.free[slot, self.columns[name]] -= more[name]
        counted_more = more[COUNTED_CPU], more[COUNTED_MEMORY]
        self.scored.shift(slot, (*counted_more, more.get(CPU, 0), more.get(MEMORY, 0)))

    def need(self, requests: Mapping[str, int]) -> IntArray:
        """The least that must be free for one more pod that requests this, by column."""
        for name in requests:
            self.ensure(name)
        need = np.full(len(self.columns), NEVER_SHORT, dtype=np.int64)
        need[0] = 1
        for name, amount in requests.items():
            need[self.columns[name]] = amount
        return need

    def vector(self, shape: Shape) -> IntArray:
        """What a pod of this shape takes, by column."""
        known = self._vectors.get(shape)
        if known is not None:
            return known
        if len(self._vectors) > self._most_vectors:
            self._vectors.clear()
        for name in shape.requests:
            self.ensure(name)
        vector = np.zeros(len(self.columns), dtype=np.int64)
        vector[0] = 1
        for name, amount in shape.requests.items():
            vector[self.columns[name]] = amount
        self._vectors[shape] = vector
        return vector

    def ensure(self, name: str) -> None:
        """Make sure that there is a column for a resource that somebody asks for."""
        if name in self.columns:
            return
        self.columns[name] = len(self.columns)
        self._vectors.clear()
        amounts = [allocatable(n.status.allocatable, name) if n else 0 for n in self._nodes]
        column = np.array(amounts, dtype=np.int64)[:, None]
        self.allocatable = np.hstack([self.allocatable, column])
        self.free = np.hstack([self.free, column])


def allocatable(amounts: Mapping[str, Quantity], name: str) -> int:
    """How much of a resource a node has, in the columns' unit."""
    written = amounts.get(name)
    if written is None:
        return 0
    amount = quantity.milli_value(written) if name == CPU else quantity.value(written)
    return min(max(amount, 0), LARGEST - 1)
