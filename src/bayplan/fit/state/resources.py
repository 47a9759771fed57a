"""Resource columns: what nodes have, what is free, and what scores read of both.

Columns are pods, cpu (milli), memory, ephemeral-storage, and then whatever else pods request; a
resource that no pod requests has no column. Amounts are clamped far below the range of a 64-bit
integer, so that no sum of hostile numbers can wrap around and make something fit.

Scores count a default for containers that request nothing, so what would be left is not what is
free. How evenly a node is used without the pod in question is the same for every pod, and is kept
as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from bayplan.fit.profile import CacheLimits
from bayplan.fit.signatures.signature import LARGEST, PodSignature
from bayplan.fit.state.columns import FloatArray, IntArray, grown
from bayplan.kube import quantity
from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import Node
from bayplan.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

MAX_SCORE = 100
EVEN = 50
Amounts = tuple[int, int, int, int]
NOTHING: Amounts = (0, 0, 0, 0)


class ScoredColumns:
    """Cpu (milli) and memory as scores count them."""

    def __init__(self, capacity: int, limits: CacheLimits) -> None:
        self._most_shapes = limits.signatures
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
        self._amounts: dict[PodSignature, Amounts] = {}

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

    def take(self, slot: int, signature: PodSignature, sign: int) -> None:
        """A pod of this signature comes to the slot's node (+1) or leaves it (-1)."""
        amounts = self._amounts.get(signature) or self._amounts_of(signature)
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

    def _amounts_of(self, signature: PodSignature) -> Amounts:
        if len(self._amounts) > self._most_shapes:
            self._amounts.clear()
        requested = signature.requests.get(CPU, 0), signature.requests.get(MEMORY, 0)
        amounts = self._amounts[signature] = (*signature.nonzero_placed, *requested)
        return amounts


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


class ResourceColumns:
    """Allocatable and free amounts by slot, with what each signature takes."""

    def __init__(self, capacity: int, nodes: list[Node | None], limits: CacheLimits) -> None:
        self._nodes = nodes
        self._most_vectors = limits.signatures
        self.columns = {name: index for index, name in enumerate(BASE_COLUMNS)}
        self.allocatable: IntArray = np.zeros((capacity, len(BASE_COLUMNS)), dtype=np.int64)
        self.free: IntArray = np.zeros((capacity, len(BASE_COLUMNS)), dtype=np.int64)
        self.scored = ScoredColumns(capacity, limits)
        self._vectors: dict[PodSignature, IntArray] = {}
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

    def take(self, slot: int, signature: PodSignature, sign: int) -> None:
        """A pod of this signature comes to the slot's node (+1) or leaves it (-1)."""
        if signature.is_huge:
            self._take_huge(slot, signature, sign)
            return
        vector = self._vectors.get(signature)
        if vector is None:
            vector = self.vector(signature)
        if sign > 0:
            self.free[slot] -= vector
        else:
            self.free[slot] += vector
        self.scored.take(slot, signature, sign)

    def _take_huge(self, slot: int, signature: PodSignature, sign: int) -> None:
        """Huge requests are summed exactly, and together count for LARGEST at most: no node has as
        much, and no sum wraps around.
        """
        amounts = {PODS: 1, **signature.requests}
        counted = dict(zip((COUNTED_CPU, COUNTED_MEMORY), signature.nonzero_placed, strict=True))
        for name in signature.requests:
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

    def vector(self, signature: PodSignature) -> IntArray:
        """What a pod of this signature takes, by column."""
        known = self._vectors.get(signature)
        if known is not None:
            return known
        if len(self._vectors) > self._most_vectors:
            self._vectors.clear()
        for name in signature.requests:
            self.ensure(name)
        vector = np.zeros(len(self.columns), dtype=np.int64)
        vector[0] = 1
        for name, amount in signature.requests.items():
            vector[self.columns[name]] = amount
        self._vectors[signature] = vector
        return vector

    def ensure(self, name: str) -> None:
        """Make sure that there is a column for a resource."""
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
