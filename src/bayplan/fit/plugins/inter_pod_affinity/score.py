"""InterPodAffinity: preferences about other pods, the pod's own and those of pods that run.

Each term that applies adds its weight for every pod it is about, to all nodes of that pod's domain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayplan.fit.plugins.arguments import Arguments, PluginArguments, require
from bayplan.fit.plugins.base import MAX_SCORE, EvaluationRequest, RelativeScore, Score
from bayplan.fit.plugins.inter_pod_affinity.filter import NAME, domain_counts
from bayplan.fit.signatures.terms import TermKind
from bayplan.fit.state.columns import BoolArray, IntArray
from bayplan.fit.state.topology import CountedTerm
from bayplan.kube.meta import Int32


@dataclass(frozen=True, slots=True)
class PodAffinitySettings:
    """The arguments of InterPodAffinity, compiled."""

    hard_weight: int = 1
    """What required affinity of a running pod weighs."""
    ignores_preferences: bool = False
    """Whether preferences of running pods do not count for a pod that has none itself."""


class InterPodAffinityArgs(PluginArguments):
    """Arguments of InterPodAffinity."""

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


def _compile(args: InterPodAffinityArgs, field: str) -> PodAffinitySettings:
    in_range = 0 <= args.hard_pod_affinity_weight <= 100
    require(in_range, f"{field}.hardPodAffinityWeight", "not from 0 to 100")
    return PodAffinitySettings(
        args.hard_pod_affinity_weight, args.ignore_preferred_terms_of_existing_pods
    )


ARGUMENTS = Arguments(InterPodAffinityArgs, _compile)


class InterPodAffinityScore(RelativeScore):
    """Weights of terms, by domain."""

    name = NAME

    def __init__(self, request: EvaluationRequest) -> None:
        self._request = request
        self._hard_weight = request.plugins.args_of(PodAffinitySettings).hard_weight
        self._own = [
            (domain_counts(placed, (placed.term,), request.cluster), placed.weight)
            for placed in request.signature.terms.preferences
        ]
        self._counted: list[CountedTerm] = []
        self._generation = (-1, -1)

    @property
    def is_inactive(self) -> bool:
        """Whether no term applies to any pod now."""
        counted = self._attracting()
        if not self._own and not counted:
            return True
        return not any(counts.total for counts, _ in self._own) and not any(
            one.counts.total for one in counted
        )

    @property
    def stays_flat(self) -> bool:
        """Whether there are no terms that could apply."""
        return not self._own and not self._attracting()

    @property
    def is_flat(self) -> bool:
        """Whether no term applies."""
        return self.is_inactive

    def points(self, feasible: BoolArray) -> IntArray:
        """The sum of weights, stretched so that the best feasible node has 100 and the worst 0."""
        raw = np.zeros(self._request.cluster.slots.capacity, dtype=np.int64)
        for counts, weight in self._own:
            raw += counts.by_slot() * weight
        for counted in self._attracting():
            raw += counted.counts.by_slot() * self._weight(counted)
        among = raw[feasible]
        if not len(among) or among.max() == among.min():
            return np.zeros_like(raw)
        least, most = int(among.min()), int(among.max())
        points: IntArray = (MAX_SCORE * ((raw - least) / (most - least))).astype(np.int64)
        return points

    def _attracting(self) -> list[CountedTerm]:
        """The weighted terms of running pods that concern this pod."""
        cluster, signature = self._request.cluster, self._request.signature
        generation = (cluster.terms.generation, cluster.namespaces.version)
        if generation != self._generation:
            self._generation = generation
            self._counted = [
                counted
                for counted in cluster.terms.concerning(signature.namespace, signature.labels)
                if self._weight(counted)
            ]
        return self._counted

    def _weight(self, counted: CountedTerm) -> int:
        """Return the weight of a running pod's term: its own, or the profile's for required
        affinity.
        """
        if counted.owned.kind is TermKind.NEEDS:
            return self._hard_weight
        return counted.owned.weight


def compile_score(request: EvaluationRequest) -> Score | None:
    """Compile the score; whether others' preferences concern the pod can change at any time."""
    ignores = request.plugins.args_of(PodAffinitySettings).ignores_preferences
    if ignores and not request.signature.terms.preferences:
        return None
    return InterPodAffinityScore(request)
