"""Whose answer it is: a pod is judged as the scheduler would that it names, and where the other
scheduler would answer differently, that is said.

Bayplan and kube-scheduler differ in what a node without a CSI driver means, and in which limits of
volumes count. Of a pod that attaches nothing they say the same.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from bayplan.fit import Refusal, Snapshot
from bayplan.fit.explanation import Explanation, Standing
from bayplan.fit.plugin_set import PluginSet
from bayplan.fit.profile import KUBE_SCHEDULER, OUR_SCHEDULER
from bayplan.fit.refusal import summary
from bayplan.fit.rules import KUBERNETES_VERSION
from bayplan.kube.pods import Pod

DEFAULT_SCHEDULER = "default-scheduler"
THEIRS = f"kube-scheduler {KUBERNETES_VERSION}"


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """By whose rules a pod was judged, and what is to be said of that."""

    scheduler: str
    """The scheduler that the pod names."""
    rules: str
    """`bayplan`, or kube-scheduler of a version."""
    is_known: bool = True
    """Whether it is clear that these are its scheduler's rules."""
    other: str = ""
    """Who would answer differently; empty if nobody would."""
    other_node: str | None = None
    """Where the other would place it; None if nowhere."""
    difference: str = ""
    """The difference in a sentence."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the answer."""
        said = []
        if not self.is_known:
            name = self.scheduler
            said.append(f"Nothing is known of scheduler {name}: judged as {self.rules} would.")
        if self.difference:
            said.append(self.difference)
        return tuple(said)


class RulesComparison:
    """The rules of two schedulers; `asked` are those that were asked for, if any were."""

    def __init__(
        self,
        snapshot: Snapshot,
        asked: str | None,
        ours: PluginSet,
        held: Container[str] = (),
    ) -> None:
        self._snapshot = snapshot
        self.held = held
        """The pods that wait for their queue, and so are not placed whatever nodes say."""
        self._asked = asked
        self._ours = ours

    def judged(self, pod: Pod, found: Explanation) -> JudgedBy:
        """Who judged a pod, and whether the other would have said something else."""
        name = pod.spec.scheduler_name
        is_ours = self._snapshot.profile.plugins_for(pod) is not KUBE_SCHEDULER
        is_known = self._asked is not None or name in {DEFAULT_SCHEDULER, OUR_SCHEDULER}
        rules, other = (OUR_SCHEDULER, THEIRS) if is_ours else (THEIRS, OUR_SCHEDULER)
        told = JudgedBy(name, rules, is_known)
        if found.standing not in {Standing.WAITING, Standing.GATED} or found.unjudged:
            return told
        if not self._snapshot.requirements_of(pod).attach:
            return told
        node, difference = self._difference(pod, found, KUBE_SCHEDULER if is_ours else self._ours)
        if not difference:
            return told
        return JudgedBy(name, rules, is_known, other, node, f"{other} {difference}.")

    def _difference(
        self, pod: Pod, found: Explanation, plugins: PluginSet
    ) -> tuple[str | None, str]:
        """Where others would place a pod, and how that differs."""
        other = self._snapshot.decide(pod, plugins=plugins).node
        if other == found.node:
            return other, ""
        if other is None:
            return None, f"would let it wait: {self._why(pod, plugins)}"
        if found.node is None:
            return other, f"would place it on node {other}"
        refused = {one.name for one in found.nodes if not one.fits}
        theirs = self._snapshot.verdicts(pod, plugins=plugins)
        if other not in refused and not (
            isinstance(theirs, Refusal) or found.node in theirs.refusals
        ):
            return other, ""  # both would do, and only the choice differs
        return other, f"would place it on node {other} instead"

    def _why(self, pod: Pod, plugins: PluginSet) -> str:
        found = self._snapshot.verdicts(pod, plugins=plugins)
        count = len(self._snapshot.cluster.slots)
        if isinstance(found, Refusal):
            return ", ".join(found.reasons)
        reasons = (reason for one in found.refusals.values() for reason in one.reasons)
        return summary(count, reasons).rstrip(".")
