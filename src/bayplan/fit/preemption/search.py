"""Which nodes are tried, and for how long: until enough candidates are found, as kube-scheduler
does.

Nodes are taken in the order of their names from an offset on (kube-scheduler's is random; here it
is handed in). The search ends when there are as many candidates as the bounds ask for and one of
them breaks no budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bayplan.fit.decision import UNSCHEDULABLE, Refusal, summary
from bayplan.fit.evaluation.nominated import NominatedPodsCheck
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.evaluation.verdicts import refusers
from bayplan.fit.plugins.arguments import Arguments, PluginArguments, require
from bayplan.fit.plugins.plugin import SchedulerPlugin
from bayplan.fit.preemption.dry_run import NodeVictims, PreemptionTable, victims_on
from bayplan.fit.preemption.victims import PreemptiblePods, PreemptionCandidate, cost
from bayplan.fit.profile import PluginSet
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.pods import PodRecord, placed_pod
from bayplan.kube.meta import Int32
from bayplan.kube.pods import Pod

NAME = "DefaultPreemption"
NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
PREEMPTED = "PreemptionByScheduler"
NO_CANDIDATE = Refusal.unresolvable(NAME, NO_VICTIMS)


@dataclass(frozen=True, slots=True)
class CandidateBounds:
    """How many candidates are enough: a percentage of the possible nodes, but at least so many."""

    percentage: int = 10
    absolute: int = 100

    def enough(self, nodes: int) -> int:
        """Return the number of candidates to find among so many nodes."""
        return min(max(nodes * self.percentage // 100, self.absolute), nodes)


class DefaultPreemptionArgs(PluginArguments):
    """Arguments of DefaultPreemption."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


def _compile(args: DefaultPreemptionArgs, field: str) -> CandidateBounds:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    place = f"{field}.minCandidateNodesPercentage"
    require(0 <= percentage <= 100, place, "not from 0 to 100")
    require(absolute >= 0, f"{field}.minCandidateNodesAbsolute", "must not be negative")
    is_bounded = bool(percentage or absolute)
    require(is_bounded, place, "must not be 0 where minCandidateNodesAbsolute is")
    return CandidateBounds(percentage, absolute)


PLUGIN = SchedulerPlugin(
    name=NAME, points=("post_filter",), arguments=Arguments(DefaultPreemptionArgs, _compile)
)
"""Preemption as a plugin of kube-scheduler's configuration."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """The node and the victims; or why there are none."""

    node: str | None
    victims: tuple[Pod, ...] = ()
    budgets_broken: int = 0
    message: str = ""
    lower_nominated: tuple[Pod, ...] = ()
    """Pods of lower priority that are nominated for the node, and should be so no longer."""
    eligible: bool = True
    """Whether victims were searched; not so if the pod must not preempt, or already has victims
    that are terminating.
    """


def preempt(
    snapshot: Snapshot,
    pod: Pod,
    *,
    plugins: PluginSet | None = None,
    bounds: CandidateBounds | None = None,
    offset: int = 0,
) -> Preemption:
    """Find the best preemption for a pod that fits nowhere, by the profile's plugins or by others;
    nothing is changed. The bounds are those of the plugins' arguments, unless others are given.
    """
    if bounds is None:
        bounds = (plugins or snapshot.profile.plugins_for(pod)).args_of(CandidateBounds)
    evaluation = snapshot.evaluation(pod, plugins)
    check = snapshot.nominated_pods_check(pod, plugins)
    slots = [] if isinstance(evaluation, Refusal) else _resolvable(evaluation, check)
    problem = _not_eligible(snapshot, pod, slots)
    if problem:
        return Preemption(None, message=f"preemption: {problem}", eligible=False)
    candidates: list[PreemptionCandidate] = []
    reasons = [NOT_HELPFUL] * (len(snapshot.cluster.slots) - len(slots))
    if slots and isinstance(evaluation, Evaluation):
        start = offset % len(slots)
        search = _Search(snapshot, pod, evaluation, check)
        candidates = search.candidates(slots[start:] + slots[:start], bounds, reasons)
    if not candidates:
        line = summary(len(snapshot.cluster.slots), reasons)
        return Preemption(None, message=f"preemption: {line}")
    best = min(candidates, key=cost)
    victims = tuple(placed_pod(one.record) for one in best.victims)
    lower = [
        one for one in snapshot.nominated_for(best.node) if _has_lower_priority(snapshot, one, pod)
    ]
    return Preemption(best.node, victims, best.budgets_broken, lower_nominated=tuple(lower))


def _has_lower_priority(snapshot: Snapshot, nominated: Pod, pod: Pod) -> bool:
    return snapshot.priority(nominated) < snapshot.priority(pod)


class _Search:
    """One pod's search for victims."""

    def __init__(
        self, snapshot: Snapshot, pod: Pod, evaluation: Evaluation, check: NominatedPodsCheck
    ) -> None:
        self._cluster = snapshot.cluster
        self._nominated = check
        self._priority = snapshot.priority(pod)
        self._preemptible = PreemptiblePods(snapshot.budgets, snapshot.priority)
        self._table = PreemptionTable(evaluation, self._preemptible)

    def candidates(
        self, slots: Sequence[int], bounds: CandidateBounds, reasons: list[str]
    ) -> list[PreemptionCandidate]:
        """Return enough candidates; where there is none, the reasons are added to `reasons`."""
        enough = bounds.enough(len(slots))
        kind: list[PreemptionCandidate] = []
        breaking: list[PreemptionCandidate] = []
        for outcome in self._outcomes(slots, enough):
            if isinstance(outcome, Refusal):
                reasons.extend(outcome.reasons)
            elif outcome.victims:
                (breaking if outcome.budgets_broken else kind).append(outcome)
                if kind and len(kind) + len(breaking) >= enough:
                    break
        return kind + breaking[:enough]

    def _outcomes(
        self, slots: Sequence[int], at_once: int
    ) -> Iterator[PreemptionCandidate | Refusal]:
        """Yield the candidate or the refusal of each node, in order."""
        for start in range(0, len(slots), at_once):
            yield from self._together(slots[start : start + at_once])

    def _together(self, slots: Sequence[int]) -> Iterator[PreemptionCandidate | Refusal]:
        """Yield the results of some nodes: computed together where possible, else one by one."""
        lower = {slot: self._lower(slot) for slot in slots}
        simple = [slot for slot in slots if self._is_simple(slot, lower[slot])]
        rows = [NodeVictims(slot, lower[slot]) for slot in simple]
        outcomes = dict(zip(simple, self._table.outcomes(rows), strict=True))
        for slot in slots:
            yield outcomes[slot] if slot in outcomes else self._alone(slot, lower[slot])

    def _is_simple(self, slot: int, lower: list[PodRecord]) -> bool:
        contested = slot in self._nominated.nominated.by_slot
        return bool(lower) and not contested and self._table.takes(lower)

    def _alone(self, slot: int, lower: list[PodRecord]) -> PreemptionCandidate | Refusal:
        if not lower:
            return NO_CANDIDATE
        node = self._cluster.slots.names[slot]
        return victims_on(node, lower, self._preemptible, self._check, self._cluster)

    def _lower(self, slot: int) -> list[PodRecord]:
        records = self._cluster.pods.by_node.get(self._cluster.slots.names[slot], {}).values()
        return self._preemptible.below(records, self._priority)

    def _check(self, node: str) -> Refusal | None:
        return self._nominated.refusal(self._cluster.slots.by_name[node])


def _resolvable(evaluation: Evaluation, check: NominatedPodsCheck) -> list[int]:
    """Return the slots that preemption may help, in the order of their nodes' names."""
    slots: set[int] = set()
    for refuser, refused in refusers(evaluation):
        slots.update(refused[~refuser.unresolvable(refused)].tolist())
    for slot, refusal in check.refusals_with_nominated(check.nominated.by_slot).items():
        (slots.add if refusal.code == UNSCHEDULABLE else slots.discard)(slot)
    names = evaluation.request.cluster.slots.names
    return sorted(slots, key=names.__getitem__)


def _not_eligible(snapshot: Snapshot, pod: Pod, resolvable: Sequence[int]) -> str:
    if pod.spec.preemption_policy == "Never":
        return NEVER
    nominated = pod.status.nominated_node_name
    if not nominated or snapshot.cluster.slots.by_name.get(nominated) not in resolvable:
        return ""
    priority = snapshot.priority(pod)
    leaving = any(
        snapshot.priority(one) < priority and _leaves_by_preemption(one)
        for one in snapshot.pods_on(nominated)
    )
    return TERMINATING if leaving else ""


def _leaves_by_preemption(pod: Pod) -> bool:
    return pod.is_terminating and any(
        condition.type == "DisruptionTarget"
        and condition.status == "True"
        and condition.reason == PREEMPTED
        for condition in pod.status.conditions
    )
