"""InterPodAffinity: preferences about other pods, the pod's own and those of pods that run.

Each term that applies adds its weight for every pod it is about, to all nodes of that pod's domain.
"""

from __future__ import annotations

import numpy as np

from bayplan.fit.plugins.base import Question
from bayplan.fit.plugins.inter_pod_affinity.filter import NAME, domain_counts
from bayplan.fit.plugins.scores import MAX_SCORE, RelativeScore, Score
from bayplan.fit.signatures.terms import TermKind
from bayplan.fit.state.columns import BoolArray, IntArray
from bayplan.fit.state.topology import CountedTerm


class InterPodAffinityScore(RelativeScore):
    """Weights of terms, by domain."""

    name = NAME

    def __init__(self, question: Question) -> None:
        self._question = question
        self._own = [
            (domain_counts(placed, (placed.term,), question.cluster), placed.weight)
            for placed in question.signature.terms.preferences
        ]
        self._standing: list[CountedTerm] = []
        self._generation = (-1, -1)

    @property
    def is_silent(self) -> bool:
        """Whether no term applies to any pod now."""
        standing = self._attracting()
        if not self._own and not standing:
            return True
        return not any(counts.total for counts, _ in self._own) and not any(
            one.counts.total for one in standing
        )

    @property
    def stays_flat(self) -> bool:
        """Whether there are no terms that could apply."""
        return not self._own and not self._attracting()

    @property
    def is_flat(self) -> bool:
        """Whether no term applies."""
        return self.is_silent

    def points(self, feasible: BoolArray) -> IntArray:
        """The sum of weights, stretched so that the best feasible node has 100 and the worst 0."""
        raw = np.zeros(self._question.cluster.slots.capacity, dtype=np.int64)
        for counts, weight in self._own:
            raw += counts.by_slot() * weight
        for standing in self._attracting():
            raw += standing.counts.by_slot() * self._weight(standing)
        among = raw[feasible]
        if not len(among) or among.max() == among.min():
            return np.zeros_like(raw)
        least, most = int(among.min()), int(among.max())
        points: IntArray = (MAX_SCORE * ((raw - least) / (most - least))).astype(np.int64)
        return points

    def _attracting(self) -> list[CountedTerm]:
        """The weighted terms of running pods that concern this pod."""
        cluster, signature = self._question.cluster, self._question.signature
        generation = (cluster.terms.generation, cluster.namespaces.version)
        if generation != self._generation:
            self._generation = generation
            self._standing = [
                standing
                for standing in cluster.terms.concerning(signature.namespace, signature.labels)
                if self._weight(standing)
            ]
        return self._standing

    def _weight(self, standing: CountedTerm) -> int:
        """What a running pod's term weighs: a preference by itself, a need by the profile."""
        if standing.owned.kind is TermKind.NEEDS:
            return self._question.plugins.hard_pod_affinity_weight
        return standing.owned.weight


def compile_score(question: Question) -> Score | None:
    """The score; whether others' preferences concern the pod can change at any time."""
    ignores = question.plugins.ignore_preferred_terms_of_existing_pods
    if ignores and not question.signature.terms.preferences:
        return None
    return InterPodAffinityScore(question)
