"""Explanations of pending pods, in the order of a scheduler, equivalent pods together.

Each pod that fits is assumed before the next one is evaluated. Equivalent pods with the same
outcome are explained once, by the first of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from bayplan.fit import Decision, Snapshot
from bayplan.fit.explanation import Explanation, PodState, explain
from bayplan.fit.explanation.cause import PENDING, QUOTED, equivalence_key, wait_reason
from bayplan.fit.explanation.explain import pod_state
from bayplan.fit.plugins.registry import may_be_unjudged
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.reports.judgement import JudgedBy, RulesComparison

if TYPE_CHECKING:
    from bayplan.queues.queue_snapshot import QueueSnapshot, WaitingGroup

HeldPods: TypeAlias = "Mapping[str, WaitingGroup]"
"""The waiting group of each pod that waits for its queue."""

NOT_EVALUATED = Decision(None)
OUTCOMES = {
    "fit": "fits",
    "fit nowhere": "fits nowhere",
    "cannot be judged": "cannot be judged",
    "wait for their queue": "waits for its queue",
    "are gated": "is gated",
}
"""The outcomes, for several pods and for one."""


@dataclass(slots=True)
class EquivalentPods:
    """Pods of one signature with the same outcome."""

    explanation: Explanation
    """The explanation of the first pod."""
    judged: JudgedBy
    cause: str = ""
    """The main cause if they do not fit."""
    pods: list[str] = field(default_factory=list)
    nodes: Counter[str] = field(default_factory=Counter)
    """The number of pods by node, if they fit."""

    @property
    def fits(self) -> bool:
        """Whether they fit."""
        return self.explanation.fits


def explain_pods(  # noqa: PLR0913 - one for each choice
    snapshot: Snapshot,
    pods: Iterable[Pod],
    comparison: RulesComparison,
    *,
    with_fixes: bool,
    with_nodes: bool = True,
    reports: Callable[[Pod], bool] = lambda _: True,
) -> list[EquivalentPods]:
    """Explain these pods one after another.

    The results of single nodes are kept only with `with_nodes`. Pods that are not reported are
    assumed like the others, but not explained.
    """
    explainer = _Explainer(snapshot, comparison, with_fixes=with_fixes, with_nodes=with_nodes)
    with snapshot.fork():
        for pod in pods:
            explainer.explain(pod) if reports(pod) else explainer.assume(pod)
    return list(explainer.explained.values())


class _Explainer:
    """The pods explained so far, by equivalence class and outcome."""

    def __init__(
        self, snapshot: Snapshot, comparison: RulesComparison, *, with_fixes: bool, with_nodes: bool
    ) -> None:
        self._snapshot = snapshot
        self._comparison = comparison
        self._with_fixes = with_fixes
        self._with_nodes = with_nodes
        self.explained: dict[Hashable, EquivalentPods] = {}

    def explain(self, pod: Pod) -> None:
        """Explain one more pod; assume it if it fits and its queue does not hold it."""
        is_evaluated = pod_state(self._snapshot, pod) in PENDING
        decision = self._snapshot.decide(pod) if is_evaluated else NOT_EVALUATED
        is_free, unsure = pod.key not in self._comparison.held, may_be_unjudged(decision.plugins)
        equivalence = equivalence_key(self._snapshot, pod) if is_evaluated else pod.key
        outcome = (equivalence, decision.node is not None, unsure, is_free)
        if outcome not in self.explained:
            self.explained[outcome] = self._explanation(pod)
        found = self.explained[outcome]
        found.pods.append(pod.key)
        if decision.node is not None and found.fits and is_free:
            found.nodes[decision.node] += 1
            self._snapshot.assume(pod, decision)

    def assume(self, pod: Pod) -> None:
        """Assume a pod that is not reported, if it fits and its queue does not hold it."""
        if pod_state(self._snapshot, pod) in PENDING and pod.key not in self._comparison.held:
            decision = self._snapshot.decide(pod)
            if decision.node is not None:
                self._snapshot.assume(pod, decision)

    def _explanation(self, pod: Pod) -> EquivalentPods:
        explanation = explain(self._snapshot, pod, with_fixes=self._with_fixes)
        judged = self._comparison.judged(pod, explanation)
        waits = explanation.state is PodState.WAITING and explanation.node is None
        cause = QUOTED.sub("…", wait_reason(self._snapshot, pod).text) if waits else ""
        return EquivalentPods(
            explanation if self._with_nodes else without_nodes(explanation), judged, cause
        )


def held_by_queues(objects: Sequence[KubeObject]) -> HeldPods:
    """Return the pods that wait for their queue; none if there are no queues."""
    if not any(isinstance(one, Queue | PodGroup) for one in objects):
        return {}
    from bayplan.reports.queues import survey_queues  # noqa: PLC0415 - slow to import

    return held_in(survey_queues(objects))


def held_in(found: QueueSnapshot) -> HeldPods:
    """Return the pods that wait for their queue in a snapshot of the queues."""
    return {pod: one for one in found.waiting() if one.is_for_queue for pod in one.pods}


def held_reason(waiting: WaitingGroup) -> str:
    """Return what a pod that is held by its queue waits for."""
    return f"queue {waiting.queue}: {waiting.text}"


def without_nodes(explanation: Explanation) -> Explanation:
    """Return an explanation without its nodes if the pod fits; otherwise they are needed."""
    return replace(explanation, nodes=()) if explanation.node is not None else explanation


def outcome_of(one: EquivalentPods, held: HeldPods) -> tuple[str, str]:
    """Return the outcome of pods, and the cause if they do not fit."""
    found = one.explanation
    waiting = held.get(found.pod)
    if waiting is not None:
        return "wait for their queue", held_reason(waiting)
    if found.state is PodState.GATED:
        return "are gated", found.message
    if found.fits:
        return "fit", ""
    if found.unjudged:
        return "cannot be judged", found.unjudged_reason
    return "fit nowhere", one.cause


def count_pods(groups: Sequence[EquivalentPods]) -> int:
    """Return the number of pods."""
    return sum(len(one.pods) for one in groups)
