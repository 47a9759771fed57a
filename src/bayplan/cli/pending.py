"""Every pod that waits, in the order in which a scheduler would take them, those alike together.

Each pod that fits is taken as placed before the next is looked at. Pods of one likeness that meet
the same end are explained once, by the first of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bayplan.cli.whose import Bench, Judged
from bayplan.fit import Decision, Snapshot
from bayplan.fit.explanation import Explanation, Standing, explain
from bayplan.fit.explanation.cause import why_it_waits
from bayplan.fit.explanation.explain import standing_of
from bayplan.fit.explanation.waiting import ASKING, QUOTED, likeness
from bayplan.fit.plugins.dynamic_resources import CANNOT_JUDGE
from bayplan.fit.plugins.dynamic_resources import NAME as DYNAMIC_RESOURCES
from bayplan.kube.pods import Pod

if TYPE_CHECKING:
    from bayplan.cli.held import Held

NOT_ASKED = Decision(None)
ENDS = {
    "fit": "fits",
    "fit nowhere": "fits nowhere",
    "cannot be judged": "cannot be judged",
    "wait for their queue": "waits for its queue",
    "are gated": "is gated",
}
"""How it may end for pods, and for one."""


@dataclass(slots=True)
class Alike:
    """Pods of one likeness that meet the same end."""

    explanation: Explanation
    """That of the first."""
    judged: Judged
    cause: str = ""
    """The one thing to say of them if they do not fit."""
    pods: list[str] = field(default_factory=list)
    nodes: Counter[str] = field(default_factory=Counter)
    """Where they go, if they fit, and how many to each."""

    @property
    def fits(self) -> bool:
        """Whether they fit."""
        return self.explanation.fits


def explain_all(  # noqa: PLR0913 - each says what is told
    snapshot: Snapshot,
    pods: Iterable[Pod],
    bench: Bench,
    *,
    with_fixes: bool,
    with_nodes: bool = True,
    tells: Callable[[Pod], bool] = lambda _: True,
) -> list[Alike]:
    """Explain these pods one after another; what each node says is kept only if it is wanted. Those
    that are not to be told take their places in silence.
    """
    telling = _Telling(snapshot, bench, with_fixes=with_fixes, with_nodes=with_nodes)
    with snapshot.fork():
        for pod in pods:
            telling.take(pod) if tells(pod) else telling.pass_over(pod)
    return list(telling.known.values())


class _Telling:
    """Pods told so far, by likeness and end."""

    def __init__(
        self, snapshot: Snapshot, bench: Bench, *, with_fixes: bool, with_nodes: bool
    ) -> None:
        self._snapshot = snapshot
        self._bench = bench
        self._with_fixes = with_fixes
        self._with_nodes = with_nodes
        self.known: dict[Hashable, Alike] = {}

    def take(self, pod: Pod) -> None:
        """Tell of one more pod; if it fits and nobody holds it back, it is placed."""
        asks = standing_of(self._snapshot, pod) in ASKING
        decision = self._snapshot.decide(pod) if asks else NOT_ASKED
        waits, unsure = pod.key not in self._bench.held, DYNAMIC_RESOURCES in decision.plugins
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

    def _explained(self, pod: Pod) -> Alike:
        explanation = explain(self._snapshot, pod, with_fixes=self._with_fixes)
        judged = self._bench.judged(pod, explanation)
        waits = explanation.standing is Standing.WAITING and explanation.node is None
        cause = QUOTED.sub("…", why_it_waits(self._snapshot, pod).text) if waits else ""
        return Alike(explanation if self._with_nodes else without_nodes(explanation), judged, cause)


def without_nodes(explanation: Explanation) -> Explanation:
    """An explanation without what nodes say to a pod that fits; why others do not is needed."""
    return replace(explanation, nodes=()) if explanation.node is not None else explanation


def end_of(one: Alike, held: Held) -> tuple[str, str]:
    """How it ends for pods, and why if they do not fit."""
    found = one.explanation
    waiting = held.get(found.pod)
    if waiting is not None:
        return "wait for their queue", f"queue {waiting.queue}: {waiting.text}"
    if found.standing is Standing.GATED:
        return "are gated", found.message
    if found.fits:
        return "fit", ""
    if found.unjudged:
        return "cannot be judged", CANNOT_JUDGE
    return "fit nowhere", one.cause


def pods_in(groups: Sequence[Alike]) -> int:
    """How many pods they are."""
    return sum(len(one.pods) for one in groups)
