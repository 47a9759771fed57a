"""Whose rules apply: a pod is evaluated by the rules of its own scheduler, and a different result
of the other scheduler is noted.

Bayplan and kube-scheduler differ in how they treat nodes without a CSI driver, and in which attach
limits they use. For a pod without attachable volumes they agree.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from bayplan.fit import Refusal, Snapshot
from bayplan.fit.decision import summary
from bayplan.fit.explanation import Explanation, PodState
from bayplan.fit.profile import KUBE_SCHEDULER, KUBERNETES_VERSION, OUR_SCHEDULER, PluginSet
from bayplan.kube.pods import Pod

DEFAULT_SCHEDULER = "default-scheduler"
THEIRS = f"kube-scheduler {KUBERNETES_VERSION}"


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """The scheduler whose rules were applied to a pod, and how another would differ."""

    scheduler: str
    """The pod's schedulerName."""
    rules: str
    """`bayplan`, or kube-scheduler of a version."""
    is_known: bool = True
    """Whether the rules of the pod's scheduler are known."""
    other: str = ""
    """The scheduler that would decide differently; empty if there is none."""
    other_node: str | None = None
    """The node that the other would choose; None if none fits."""
    difference: str = ""
    """The difference in a sentence."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the result for the reader."""
        notes = []
        if not self.is_known:
            name = self.scheduler
            notes.append(f"The rules of scheduler {name} are unknown: used those of {self.rules}.")
        if self.difference:
            notes.append(self.difference)
        return tuple(notes)


class RulesComparison:
    """Compares the rules of two schedulers; `asked` is the one given with --as, if any."""

    def __init__(
        self,
        snapshot: Snapshot,
        asked: str | None,
        ours: PluginSet,
        held: Container[str] = (),
    ) -> None:
        self._snapshot = snapshot
        self.held = held
        """The pods that wait for their queue, and so are not scheduled to any node."""
        self._asked = asked
        self._ours = ours

    def judged(self, pod: Pod, found: Explanation) -> JudgedBy:
        """Return whose rules were applied to a pod, and whether the other would differ."""
        name = pod.spec.scheduler_name
        is_ours = self._snapshot.profile.plugins_for(pod) is not KUBE_SCHEDULER
        is_known = self._asked is not None or name in {DEFAULT_SCHEDULER, OUR_SCHEDULER}
        rules, other = (OUR_SCHEDULER, THEIRS) if is_ours else (THEIRS, OUR_SCHEDULER)
        same = JudgedBy(name, rules, is_known)
        if found.state not in {PodState.WAITING, PodState.GATED} or found.unjudged:
            return same
        if not self._snapshot.requirements_of(pod).attach:
            return same
        node, difference = self._difference(pod, found, KUBE_SCHEDULER if is_ours else self._ours)
        if not difference:
            return same
        return JudgedBy(name, rules, is_known, other, node, f"{other} {difference}.")

    def _difference(
        self, pod: Pod, found: Explanation, plugins: PluginSet
    ) -> tuple[str | None, str]:
        """Return the node that others would choose for a pod, and how that differs."""
        other = self._snapshot.decide(pod, plugins=plugins).node
        if other == found.node:
            return other, ""
        if other is None:
            return None, f"would leave it pending: {self._reasons(pod, plugins)}"
        if found.node is None:
            return other, f"would schedule it to node {other}"
        refused = {one.name for one in found.nodes if not one.fits}
        theirs = self._snapshot.verdicts(pod, plugins=plugins)
        if other not in refused and not (
            isinstance(theirs, Refusal) or found.node in theirs.refusals
        ):
            return other, ""  # both nodes are feasible for both, and only the choice differs
        return other, f"would schedule it to node {other} instead"

    def _reasons(self, pod: Pod, plugins: PluginSet) -> str:
        found = self._snapshot.verdicts(pod, plugins=plugins)
        count = len(self._snapshot.cluster.slots)
        if isinstance(found, Refusal):
            return ", ".join(found.reasons)
        reasons = (reason for one in found.refusals.values() for reason in one.reasons)
        return summary(count, reasons).rstrip(".")
