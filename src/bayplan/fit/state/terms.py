"""Terms that running pods have and that waiting pods must, or might, heed.

A running pod's required anti-affinity keeps others out; its required affinity and its preferences
pull or push them. Pods of one workload have the same terms, so each distinct term is kept once,
with the number of pods that have it by topology domain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.fit.limits import Limits
from bayplan.fit.shapes.hooks import Hooked, hook_of
from bayplan.fit.shapes.matching import Namespaces
from bayplan.fit.shapes.reads import LabelReads
from bayplan.fit.shapes.terms import OwnedTerm
from bayplan.fit.state.domains import DomainCounts
from bayplan.fit.state.topology import Topology


class StandingTerm:
    """A distinct term, and how many pods have it in each domain."""

    __slots__ = ("counts", "owned")

    def __init__(self, owned: OwnedTerm, counts: DomainCounts) -> None:
        self.owned = owned
        self.counts = counts


class TermBook:
    """All terms that running pods have."""

    def __init__(self, namespaces: Namespaces, reads: LabelReads, limits: Limits) -> None:
        self._few = limits.idle_terms
        self._namespaces = namespaces
        self._reads = reads
        self._terms: dict[OwnedTerm, StandingTerm] = {}
        self._hooked: Hooked[StandingTerm] = Hooked()
        self.generation = 0
        """Grows with every new term; a reader matches again when it has moved."""

    def standing(self, owned: OwnedTerm, topology: Topology) -> StandingTerm:
        """The standing term for a pod's term."""
        found = self._terms.get(owned)
        if found is None:
            found = StandingTerm(owned, DomainCounts(topology))
            self._terms[owned] = found
            self._hooked.add(hook_of([owned.term.selector]), found)
            self._reads.heed_term(owned.term)
            self.generation += 1
        return found

    def concerning(self, namespace: str, labels: Mapping[str, str]) -> Iterable[StandingTerm]:
        """The terms that concern a waiting pod."""
        known = self._namespaces
        return (
            standing
            for standing in self._hooked.for_labels(labels)
            if standing.owned.term.concerns(namespace, labels, known)
        )

    def prune(self) -> bool:
        """Forget terms that no pod has any more, if most are such; says whether it did."""
        if len(self._terms) < self._few:
            return False
        alive = {owned: one for owned, one in self._terms.items() if one.counts.total}
        if len(alive) * 2 > len(self._terms):
            return False
        for owned in self._terms.keys() - alive.keys():
            self._reads.drop_term(owned.term)
            self._hooked.discard(hook_of([owned.term.selector]), self._terms[owned])
        self._terms = alive
        self.generation += 1
        return True
