"""Counting pods by topology domain.

`DomainCounts` is a vector of counts by domain code, with the two questions that predicates ask of
it: what is the count where each node is, and (for spreading) what is the least count of any domain
that has a node worth counting.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayplan.fit.state.columns import BoolArray, IntArray, Rows, grown
from bayplan.fit.state.topology import ABSENT, Topology


class DomainCounts:
    """How many pods of some kind there are in each domain of one topology."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.total = 0
        # One spare entry at the end stands for "no such label": code ABSENT is -1.
        self._counts: IntArray = np.zeros(topology.size + 1, dtype=np.int64)

    def add(self, slot: int, delta: int) -> None:
        """Count `delta` more pods on the node of a slot."""
        code = self.topology.codes[slot]
        if code != ABSENT:
            self._fit()
            self._counts[code] += delta
            self.total += delta

    def join(self, slot: int, delta: int) -> None:
        """A node comes (+1) or goes (-1): it matters only to those who count nodes."""

    def by_domain(self) -> IntArray:
        """Counts by domain code; the last entry belongs to nodes without the label and is 0."""
        self._fit()
        return self._counts

    def by_slot(self) -> IntArray:
        """The count of the domain that each slot's node is in; 0 where it is in none."""
        return self.by_domain()[self.topology.codes]

    def at_rows(self, rows: Rows) -> IntArray:
        """The same for some slots."""
        return self.by_domain()[self.topology.codes[rows]]

    def at(self, slot: int) -> int:
        """The count of the domain that one slot's node is in."""
        code = int(self.topology.codes[slot])
        return 0 if code == ABSENT else int(self.by_domain()[code])

    def _fit(self) -> None:
        if len(self._counts) <= self.topology.size:
            room = self.topology.size + self.topology.size // 4 + 2
            self._counts = grown(self._counts, room)


class SpreadCounts(DomainCounts):
    """Domain counts over the nodes that a spread constraint takes into account."""

    def __init__(self, topology: Topology, eligible: Callable[[int], bool] | None) -> None:
        super().__init__(topology)
        self._eligible = eligible
        self._members: IntArray = np.zeros(topology.size + 1, dtype=np.int64)

    def add(self, slot: int, delta: int) -> None:
        """Count pods, if their node takes part."""
        if self._eligible is None or self._eligible(slot):
            super().add(slot, delta)

    def join(self, slot: int, delta: int) -> None:
        """A node comes (+1) or goes (-1)."""
        code = self.topology.codes[slot]
        if code == ABSENT or (self._eligible is not None and not self._eligible(slot)):
            return
        self._fit()
        self._members[code] += delta

    def domains(self) -> BoolArray:
        """Which domains have a node that takes part."""
        self._fit()
        return self._members > 0

    def _fit(self) -> None:
        super()._fit()
        if len(self._members) < len(self._counts):
            self._members = grown(self._members, len(self._counts))


class SlotCounts:
    """How many pods of some kind there are on each node."""

    def __init__(self, capacity: int) -> None:
        self.counts: IntArray = np.zeros(capacity, dtype=np.int64)

    def add(self, slot: int, delta: int) -> None:
        """Count `delta` more pods on a slot's node."""
        self.counts[slot] += delta

    def join(self, slot: int, delta: int) -> None:
        """Nodes do not matter here."""

    def grow(self, capacity: int) -> None:
        """Follow the slots."""
        self.counts = grown(self.counts, capacity)
