"""Every pod that waits, in the order in which a scheduler would take them, those alike together.

Each pod that fits is taken as placed before the next is looked at. Pods of one likeness that meet
the same end are explained once, by the first of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from bayplan.fit import Decision, Snapshot
from bayplan.fit.explanation import Explanation, Standing, explain
from bayplan.fit.explanation.cause import why_it_waits
from bayplan.fit.explanation.explain import standing_of
from bayplan.fit.explanation.waiting import ASKING, QUOTED, likeness
from bayplan.fit.plugins.registry import may_be_unsure
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.queueing import PodGroup, Queue
from bayplan.reports.judgement import JudgedBy, RulesComparison

if TYPE_CHECKING:
    from bayplan.queues.survey import Survey, WaitingGroup

HeldPods: TypeAlias = "Mapping[str, WaitingGroup]"
"""By pod the group with which it waits for its queue."""

NOT_ASKED = Decision(None)
OUTCOMES = {
    "fit": "fits",
    "fit nowhere": "fits nowhere",
    "cannot be judged": "cannot be judged",
    "wait for their queue": "waits for its queue",
    "are gated": "is gated",
}
"""How it may end for pods, and for one."""


@dataclass(slots=True)
class EquivalentPods:
    """Pods of one signature with the same outcome."""

    explanation: Explanation
    """That of the first."""
    judged: JudgedBy
    cause: str = ""
    """The one thing to say of them if they do not fit."""
    pods: list[str] = field(default_factory=list)
    nodes: Counter[str] = field(default_factory=Counter)
    """Where they go, if they fit, and how many to each."""

    @property
    def fits(self) -> bool:
        """Whether they fit."""
        return self.explanation.fits


def explain_pods(  # noqa: PLR0913 - each says what is told
    snapshot: Snapshot,
    pods: Iterable[Pod],
    bench: RulesComparison,
    *,
    with_fixes: bool,
    with_nodes: bool = True,
    tells: Callable[[Pod], bool] = lambda _: True,
) -> list[EquivalentPods]:
    """Explain these pods one after another; what each node says is kept only if it is wanted. Those
    that are not to be told take their places in silence.
    """
    explainer = _Explainer(snapshot, bench, with_fixes=with_fixes, with_nodes=with_nodes)
    with snapshot.fork():
        for pod in pods:
            explainer.take(pod) if tells(pod) else explainer.pass_over(pod)
    return list(explainer.known.values())


class _Explainer:
    """Pods told so far, by likeness and end."""

    def __init__(
        self, snapshot: Snapshot, bench: RulesComparison, *, with_fixes: bool, with_nodes: bool
    ) -> None:
        self._snapshot = snapshot
        self._bench = bench
        self._with_fixes = with_fixes
        self._with_nodes = with_nodes
        self.known: dict[Hashable, EquivalentPods] = {}

    def take(self, pod: Pod) -> None:
        """Tell of one more pod; if it fits and nobody holds it back, it is placed."""
        asks = standing_of(self._snapshot, pod) in ASKING
        decision = self._snapshot.decide(pod) if asks else NOT_ASKED
        waits, unsure = pod.key not in self._bench.held, may_be_unsure(decision.plugins)
        like = likeness(self._snapshot, pod) if asks else pod.key
        end = (like, decision.node is not None, unsure, waits)
        if end not in self.known:
            self.known[end] = self._explained(pod)
        found = self.known[end]
        found.pods.append(pod.key)
        if decision.node is not None and found.fits and waits:
            found.nodes[decision.node] += 1
            self._snapshot.assume(pod, decision)

    def pass_over(self, pod: Pod) -> None:
        """Place a pod that nobody asked about, if it fits and nobody holds it back."""
        if standing_of(self._snapshot, pod) in ASKING and pod.key not in self._bench.held:
            decision = self._snapshot.decide(pod)
            if decision.node is not None:
                self._snapshot.assume(pod, decision)

    def _explained(self, pod: Pod) -> EquivalentPods:
        explanation = explain(self._snapshot, pod, with_fixes=self._with_fixes)
        judged = self._bench.judged(pod, explanation)
        waits = explanation.standing is Standing.WAITING and explanation.node is None
        cause = QUOTED.sub("…", why_it_waits(self._snapshot, pod).text) if waits else ""
        return EquivalentPods(
            explanation if self._with_nodes else without_nodes(explanation), judged, cause
        )


def held_by_queues(objects: Sequence[KubeObject]) -> HeldPods:
    """The pods that wait for their queue, whatever nodes say; none where there are no queues."""
    if not any(isinstance(one, Queue | PodGroup) for one in objects):
        return {}
    from bayplan.reports.queues import survey_queues  # noqa: PLC0415 - slow to import

    return held_in(survey_queues(objects))


def held_in(found: Survey) -> HeldPods:
    """The pods that wait for their queue, of a survey of the queues."""
    return {pod: one for one in found.waiting() if one.is_for_queue for pod in one.pods}


def held_reason(waiting: WaitingGroup) -> str:
    """What a pod that is held by its queue waits for."""
    return f"queue {waiting.queue}: {waiting.text}"


def without_nodes(explanation: Explanation) -> Explanation:
    """An explanation without what nodes say to a pod that fits; why others do not is needed."""
    return replace(explanation, nodes=()) if explanation.node is not None else explanation


def outcome_of(one: EquivalentPods, held: HeldPods) -> tuple[str, str]:
    """How it ends for pods, and why if they do not fit."""
    found = one.explanation
    waiting = held.get(found.pod)
    if waiting is not None:
        return "wait for their queue", held_reason(waiting)
    if found.standing is Standing.GATED:
        return "are gated", found.message
    if found.fits:
        return "fit", ""
    if found.unjudged:
        return "cannot be judged", found.unjudged_reason
    return "fit nowhere", one.cause


def count_pods(groups: Sequence[EquivalentPods]) -> int:
    """How many pods they are."""
    return sum(len(one.pods) for one in groups)
