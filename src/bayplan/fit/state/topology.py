"""Topology domains as small integers, pods counted by domain, and the terms of running pods.

For each label key in use a column holds which domain each node is in (its code), or ABSENT if the
node has no such label. A code is freed when its last node leaves, and used again. `DomainCounts` is
a vector of counts by code.

A running pod's required anti-affinity keeps others out; its required affinity and its preferences
pull or push them. Pods of one workload have the same terms, so each distinct term is kept once,
with the number of pods that have it by domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from bayplan.fit.indexes import SelectorIndex, required_label
from bayplan.fit.profile import CacheLimits
from bayplan.fit.signatures.reads import LabelReads
from bayplan.fit.signatures.terms import Namespaces, OwnedTerm
from bayplan.fit.state.columns import BoolArray, IntArray, Rows, grown

ABSENT = -1


class Topology:
    """One label key: which domain each slot is in."""

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        self.codes: IntArray = np.full(capacity, ABSENT, dtype=np.int64)
        self.values: list[str] = []
        self.size = 0
        """How many codes have ever been used at once; counts by domain are this long."""
        self._code_of: dict[str, int] = {}
        self._members: list[int] = []
        self._free: list[int] = []

    def grow(self, capacity: int) -> None:
        """Follow the slots."""
        self.codes = grown(self.codes, capacity, ABSENT)

    def join(self, slot: int, labels: Mapping[str, str]) -> None:
        """A node with these labels takes this slot."""
        value = labels.get(self.key)
        if value is None:
            return
        code = self._code_of.get(value)
        if code is None:
            code = self._new_code(value)
        self._members[code] += 1
        self.codes[slot] = code

    def leave(self, slot: int) -> None:
        """The slot's node leaves its domain."""
        code = int(self.codes[slot])
        if code == ABSENT:
            return
        self.codes[slot] = ABSENT
        self._members[code] -= 1
        if self._members[code] == 0:
            del self._code_of[self.values[code]]
            self._free.append(code)

    def slots_of(self, value: str) -> list[int]:
        """The slots whose nodes have this value."""
        code = self._code_of.get(value)
        return [] if code is None else np.flatnonzero(self.codes == code).tolist()

    def _new_code(self, value: str) -> int:
        if self._free:
            code = self._free.pop()
            self.values[code] = value
        else:
            code = self.size
            self.size += 1
            self.values.append(value)
            self._members.append(0)
        self._code_of[value] = code
        return code


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
        """A node is added (+1) or removed (-1); ignored here."""

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
            size = self.topology.size + self.topology.size // 4 + 2
            self._counts = grown(self._counts, size)


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


class CountedTerm:
    """A distinct term, and how many pods have it in each domain."""

    __slots__ = ("counts", "owned")

    def __init__(self, owned: OwnedTerm, counts: DomainCounts) -> None:
        self.owned = owned
        self.counts = counts


class TermIndex:
    """All terms that running pods have."""

    def __init__(self, namespaces: Namespaces, reads: LabelReads, limits: CacheLimits) -> None:
        self._few = limits.idle_terms
        self._namespaces = namespaces
        self._reads = reads
        self._terms: dict[OwnedTerm, CountedTerm] = {}
        self._hooked: SelectorIndex[CountedTerm] = SelectorIndex()
        self.generation = 0
        """Grows with every new term; a reader matches again when it has moved."""

    def counted(self, owned: OwnedTerm, topology: Topology) -> CountedTerm:
        """The counted term for a pod's term."""
        found = self._terms.get(owned)
        if found is None:
            found = CountedTerm(owned, DomainCounts(topology))
            self._terms[owned] = found
            self._hooked.add(required_label([owned.term.selector]), found)
            self._reads.add_term(owned.term)
            self.generation += 1
        return found

    def concerning(self, namespace: str, labels: Mapping[str, str]) -> Iterable[CountedTerm]:
        """The terms that concern a waiting pod."""
        known = self._namespaces
        return (
            counted
            for counted in self._hooked.for_labels(labels)
            if counted.owned.term.concerns(namespace, labels, known)
        )

    def prune(self) -> bool:
        """Forget terms that no pod has any more, if most are such; return whether it did."""
        if len(self._terms) < self._few:
            return False
        alive = {owned: one for owned, one in self._terms.items() if one.counts.total}
        if len(alive) * 2 > len(self._terms):
            return False
        for owned in self._terms.keys() - alive.keys():
            self._reads.remove_term(owned.term)
            self._hooked.discard(required_label([owned.term.selector]), self._terms[owned])
        self._terms = alive
        self.generation += 1
        return True
