"""What the resource scores read: cpu and memory by slot, kept so that scoring a few nodes is short.

Scores count a default for containers that request nothing, so what would be left is not what is
free. How evenly a node is used without the pod in question is the same for every pod, and kept as
well.
"""

from __future__ import annotations

import numpy as np

from bayplan.fit.limits import Limits
from bayplan.fit.shapes.shape import Shape
from bayplan.fit.state.columns import FloatArray, IntArray, grown
from bayplan.kube.resources import CPU, MEMORY

MAX_SCORE = 100
EVEN = 50
Amounts = tuple[int, int, int, int]
NOTHING: Amounts = (0, 0, 0, 0)


class ScoredColumns:
    """Cpu (milli) and memory as scores count them."""

    def __init__(self, capacity: int, limits: Limits) -> None:
        self._most_shapes = limits.shapes
        self.total: IntArray = np.ones((capacity, 2), dtype=np.int64)
        """What nodes have; 1 stands for none, so that it can be divided by."""
        self._totals: list[tuple[int, int]] = [(1, 1)] * capacity
        self.total_float: FloatArray = np.ones((capacity, 2))
        """The same as floats: dividing by integers would convert them every time."""
        self.left: IntArray = np.zeros((capacity, 2), dtype=np.int64)
        """What is left of it, with defaults counted."""
        self.used: FloatArray = np.zeros((capacity, 2))
        """What is requested, without defaults."""
        self.present: IntArray = np.ones(capacity, dtype=np.int64)
        """How many of the two a node has at all, at least 1."""
        self.unevenness: IntArray = np.full(capacity, EVEN, dtype=np.int64)
        """How unevenly both are used: EVEN where their shares are equal, else up to 50 more."""
        self.lopsided: set[int] = set()
        """Slots of nodes that lack one of the two."""
        self.overcommitted: set[int] = set()
        """Slots of nodes on which more is requested than they have."""
        self._taken: list[Amounts] = [NOTHING] * capacity
        """The same as numbers: what is left of both, and what is requested of both. Reckoning with
        one row's numbers and writing them is several times faster than with its arrays.
        """
        self._amounts: dict[Shape, Amounts] = {}

    def grow(self, capacity: int) -> None:
        """Follow the slots."""
        more = capacity - len(self._totals)
        self._totals.extend([(1, 1)] * more)
        self._taken.extend([NOTHING] * more)
        self.total = grown(self.total, capacity, 1)
        self.total_float = grown(self.total_float, capacity, 1)
        self.left = grown(self.left, capacity)
        self.used = grown(self.used, capacity)
        self.present = grown(self.present, capacity, 1)
        self.unevenness = grown(self.unevenness, capacity, EVEN)

    def set_node(self, slot: int, cpu: int, memory: int) -> None:
        """A node with nothing on it takes the slot."""
        self._totals[slot] = max(cpu, 1), max(memory, 1)
        self.total[slot] = self.total_float[slot] = self._totals[slot]
        self.left[slot] = cpu, memory
        self.used[slot] = 0.0
        self._taken[slot] = cpu, memory, 0, 0
        self.present[slot] = max((cpu > 0) + (memory > 0), 1)
        self.unevenness[slot] = EVEN
        self.overcommitted.discard(slot)
        self.lopsided.discard(slot)
        if not (cpu and memory):
            self.lopsided.add(slot)

    def take(self, slot: int, shape: Shape, sign: int) -> None:
        """A pod of this shape comes to the slot's node (+1) or leaves it (-1)."""
        amounts = self._amounts.get(shape) or self._amounts_of(shape)
        self.shift(slot, amounts, sign)

    def shift(self, slot: int, amounts: Amounts, sign: int = 1) -> None:
        """So much more is taken (or less): of cpu and memory, as scores count them and as they are
        requested.
        """
        left_cpu, left_memory, cpu, memory = self._taken[slot]
        left_cpu -= sign * amounts[0]
        left_memory -= sign * amounts[1]
        cpu += sign * amounts[2]
        memory += sign * amounts[3]
        self._taken[slot] = left_cpu, left_memory, cpu, memory
        self.left[slot, 0] = left_cpu
        self.left[slot, 1] = left_memory
        self.used[slot, 0] = cpu
        self.used[slot, 1] = memory
        self._balance(slot, cpu, memory)

    def _balance(self, slot: int, cpu: int, memory: int) -> None:
        total_cpu, total_memory = self._totals[slot]
        if cpu > total_cpu or memory > total_memory:
            self.overcommitted.add(slot)
            cpu, memory = min(cpu, total_cpu), min(memory, total_memory)
        elif self.overcommitted:
            self.overcommitted.discard(slot)
        if slot not in self.lopsided:
            uneven = abs((cpu / total_cpu - memory / total_memory) / 2)
            self.unevenness[slot] = EVEN + MAX_SCORE - int((1 - uneven) * MAX_SCORE)

    def _amounts_of(self, shape: Shape) -> Amounts:
        if len(self._amounts) > self._most_shapes:
            self._amounts.clear()
        requested = shape.requests.get(CPU, 0), shape.requests.get(MEMORY, 0)
        amounts = self._amounts[shape] = (*shape.nonzero_placed, *requested)
        return amounts
