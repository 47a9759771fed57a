"""Which nodes are tried, and for how long: until enough candidates are found, as kube-scheduler
does.

Nodes are taken in the order of their names from an offset on (kube-scheduler's is random; here it
is handed in). The search ends when there are as many candidates as the bounds ask for and one of
them breaks no budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bayplan.fit.evaluation.nominated import NominatedPodsCheck
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.evaluation.verdicts import refusers
from bayplan.fit.plugin_set import PluginSet
from bayplan.fit.preemption.found import Found, cost
from bayplan.fit.preemption.importance import Standings
from bayplan.fit.preemption.tables import Row, Table
from bayplan.fit.preemption.trials import victims_on
from bayplan.fit.refusal import UNSCHEDULABLE, Refusal, summary
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.pods import PodRecord, placed_pod
from bayplan.kube.pods import Pod

PLUGIN = "DefaultPreemption"
NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
PREEMPTED = "PreemptionByScheduler"
NOBODY = Refusal.unresolvable(PLUGIN, NO_VICTIMS)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many candidates are enough: a share of the nodes that may do, but at least so many."""

    percentage: int = 10
    absolute: int = 100

    def enough(self, nodes: int) -> int:
        """The number of candidates to find among so many nodes."""
        return min(max(nodes * self.percentage // 100, self.absolute), nodes)


DEFAULT_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class Preemption:
    """Who would go, and where; or why nobody would."""

    node: str | None
    victims: tuple[Pod, ...] = ()
    budgets_broken: int = 0
    message: str = ""
    lower_nominated: tuple[Pod, ...] = ()
    """Pods of lower priority that are nominated for the node, and should be so no longer."""
    eligible: bool = True
    """Whether others were looked at; not so if it must not preempt, or already has victims that
    are leaving.
    """


def preempt(
    snapshot: Snapshot,
    pod: Pod,
    *,
    plugins: PluginSet | None = None,
    bounds: Bounds = DEFAULT_BOUNDS,
    offset: int = 0,
) -> Preemption:
    """The best preemption for a pod that fits nowhere, by the profile's plugins or by others;
    nothing is changed.
    """
    evaluation = snapshot.evaluation(pod, plugins)
    check = snapshot.nominated_pods_check(pod, plugins)
    slots = [] if isinstance(evaluation, Refusal) else _resolvable(evaluation, check)
    problem = _not_eligible(snapshot, pod, slots)
    if problem:
        return Preemption(None, message=f"preemption: {problem}", eligible=False)
    candidates: list[Found] = []
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
    lower = [one for one in snapshot.nominated_for(best.node) if _yields(snapshot, one, pod)]
    return Preemption(best.node, victims, best.budgets_broken, lower_nominated=tuple(lower))


def _yields(snapshot: Snapshot, nominated: Pod, pod: Pod) -> bool:
    return snapshot.priority(nominated) < snapshot.priority(pod)


class _Search:
    """One pod's search for victims."""

    def __init__(
        self, snapshot: Snapshot, pod: Pod, evaluation: Evaluation, check: NominatedPodsCheck
    ) -> None:
        self._cluster = snapshot.cluster
        self._nominated = check
        self._priority = snapshot.priority(pod)
        self._standings = Standings(snapshot.budgets, snapshot.priority)
        self._table = Table(evaluation, self._standings)

    def candidates(self, slots: Sequence[int], bounds: Bounds, reasons: list[str]) -> list[Found]:
        """Enough candidates; where there is none, `reasons` gains why."""
        enough = bounds.enough(len(slots))
        kind: list[Found] = []
        breaking: list[Found] = []
        for outcome in self._outcomes(slots, enough):
            if isinstance(outcome, Refusal):
                reasons.extend(outcome.reasons)
            elif outcome.victims:
                (breaking if outcome.budgets_broken else kind).append(outcome)
                if kind and len(kind) + len(breaking) >= enough:
                    break
        return kind + breaking[:enough]

    def _outcomes(self, slots: Sequence[int], at_once: int) -> Iterator[Found | Refusal]:
        """What is found on each node, in their order."""
        for start in range(0, len(slots), at_once):
            yield from self._together(slots[start : start + at_once])

    def _together(self, slots: Sequence[int]) -> Iterator[Found | Refusal]:
        """What is found on some nodes: together where that is possible, else one by one."""
        lower = {slot: self._lower(slot) for slot in slots}
        simple = [slot for slot in slots if self._is_simple(slot, lower[slot])]
        rows = [Row(slot, lower[slot]) for slot in simple]
        outcomes = dict(zip(simple, self._table.outcomes(rows), strict=True))
        for slot in slots:
            yield outcomes[slot] if slot in outcomes else self._alone(slot, lower[slot])

    def _is_simple(self, slot: int, lower: list[PodRecord]) -> bool:
        contested = slot in self._nominated.nominated.by_slot
        return bool(lower) and not contested and self._table.takes(lower)

    def _alone(self, slot: int, lower: list[PodRecord]) -> Found | Refusal:
        if not lower:
            return NOBODY
        node = self._cluster.slots.names[slot]
        return victims_on(node, lower, self._standings, self._check, self._cluster)

    def _lower(self, slot: int) -> list[PodRecord]:
        records = self._cluster.pods.by_node.get(self._cluster.slots.names[slot], {}).values()
        return self._standings.below(records, self._priority)

    def _check(self, node: str) -> Refusal | None:
        return self._nominated.refusal(self._cluster.slots.by_name[node])


def _resolvable(evaluation: Evaluation, check: NominatedPodsCheck) -> list[int]:
    """The slots whose refusal would pass if pods left, in the order of their nodes' names."""
    slots: set[int] = set()
    for refuser, refused in refusers(evaluation):
        slots.update(refused[~refuser.unresolvable(refused)].tolist())
    for slot, refusal in check.refusals_beside(check.nominated.by_slot).items():
        (slots.add if refusal.code == UNSCHEDULABLE else slots.discard)(slot)
    names = evaluation.question.cluster.slots.names
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
