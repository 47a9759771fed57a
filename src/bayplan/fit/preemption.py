"""Preemption: the node that costs the least, and the pods that would have to go.

On each node that refuses a pod for a reason that passes, all pods of lower priority are taken away
in a fork; if the pod then fits, they are put back one by one, the most important first and those
that a disruption budget protects before others, as long as it still fits. What stays away are the
victims. Of the nodes that remain, the best is the one that breaks the fewest budgets, then the one
whose most important victim matters least, and so on, as kube-scheduler has it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bayplan.fit.refusal import UNRESOLVABLE, Refusal, summary
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.verdicts import verdicts
from bayplan.kube.pods import Pod
from bayplan.kube.selectors import compile_selector
from bayplan.kube.workloads import PodDisruptionBudget

NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
PREEMPTED = "PreemptionByScheduler"
NUMBERS = re.compile(r"(\d+)")
LOWEST_PRIORITY = -(1 << 31)


@dataclass(frozen=True, slots=True)
class Preemption:
    """Who would go, and where; or why nobody would."""

    node: str | None
    victims: tuple[Pod, ...] = ()
    budgets_broken: int = 0
    message: str = ""


def preempt(snapshot: Snapshot, pod: Pod) -> Preemption:
    """The best preemption for a pod that fits nowhere; nothing is changed."""
    refusals = _refusals(snapshot, pod)
    problem = _not_eligible(snapshot, pod, refusals)
    if problem:
        return Preemption(None, message=f"preemption: {problem}")
    candidates: list[Preemption] = []
    reasons: list[str] = []
    for node in sorted(refusals):
        if refusals[node].code == UNRESOLVABLE:
            reasons.append(NOT_HELPFUL)
            continue
        found = victims_on(snapshot, pod, node)
        if isinstance(found, Refusal):
            reasons.extend(found.reasons)
        elif found.victims:
            candidates.append(found)
    if not candidates:
        line = summary(len(snapshot.cluster.slots), reasons)
        return Preemption(None, message=f"preemption: {line}")
    return min(candidates, key=lambda one: _cost(snapshot, one))


def victims_on(snapshot: Snapshot, pod: Pod, node: str) -> Preemption | Refusal:
    """The pods that would have to leave a node, or why that would not help."""
    priority = snapshot.priority(pod)
    possible = [one for one in snapshot.pods_on(node) if snapshot.priority(one) < priority]
    if not possible:
        return Refusal.unresolvable("DefaultPreemption", NO_VICTIMS)
    possible.sort(key=lambda one: _importance(snapshot, one))
    with snapshot.fork():
        for one in possible:
            snapshot.unassume(one)
        refusal = snapshot.refusal(pod, node)
        if refusal is not None:
            return refusal
        protected, others = _by_budget(possible, snapshot.budgets())
        lost = [one for one in protected if not _reprieved(snapshot, pod, one, node)]
        victims = lost + [one for one in others if not _reprieved(snapshot, pod, one, node)]
    victims.sort(key=lambda one: _importance(snapshot, one))
    return Preemption(node, tuple(victims), budgets_broken=len(lost))


def _refusals(snapshot: Snapshot, pod: Pod) -> dict[str, Refusal]:
    evaluation = snapshot.evaluation(pod)
    if isinstance(evaluation, Refusal):
        return dict.fromkeys(snapshot.cluster.slots.by_name, evaluation)
    return verdicts(evaluation).refusals


def _not_eligible(snapshot: Snapshot, pod: Pod, refusals: dict[str, Refusal]) -> str:
    if pod.spec.preemption_policy == "Never":
        return NEVER
    nominated = pod.status.nominated_node_name
    refusal = refusals.get(nominated)
    if not nominated or (refusal is not None and refusal.code == UNRESOLVABLE):
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


def _reprieved(snapshot: Snapshot, pod: Pod, victim: Pod, node: str) -> bool:
    """Put a pod back, and leave it there if the waiting pod still fits."""
    snapshot.assume(victim, node)
    if snapshot.refusal(pod, node) is None:
        return True
    snapshot.unassume(victim)
    return False


def _by_budget(
    pods: Sequence[Pod], budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[Pod], list[Pod]]:
    """Pods whose eviction would break a budget, and the others, in their order."""
    allowed = {budget.key: budget.status.disruptions_allowed for budget in budgets}
    protected: list[Pod] = []
    others: list[Pod] = []
    for pod in pods:
        (protected if _breaks_one(pod, budgets, allowed) else others).append(pod)
    return protected, others


def _breaks_one(pod: Pod, budgets: Sequence[PodDisruptionBudget], allowed: dict[str, int]) -> bool:
    """Use up one disruption of each budget of a pod; says whether one had none left."""
    breaks = False
    for budget in budgets:
        if _guards(budget, pod) and pod.name not in budget.status.disrupted_pods:
            allowed[budget.key] -= 1
            breaks = breaks or allowed[budget.key] < 0
    return breaks


def _guards(budget: PodDisruptionBudget, pod: Pod) -> bool:
    if budget.namespace != pod.namespace or not pod.metadata.labels:
        return False
    selector = compile_selector(budget.spec.selector)
    return not selector.matches_everything and selector.matches(pod.metadata.labels)


def _importance(snapshot: Snapshot, pod: Pod) -> tuple[object, ...]:
    """Sorts the most important pod first: highest priority, then longest running, then by name."""
    return -snapshot.priority(pod), _start(pod), _in_order(pod.key)


def _in_order(name: str) -> tuple[tuple[int, str], ...]:
    """A name such that `web-2` comes before `web-10`."""
    parts = NUMBERS.split(name)
    return tuple((len(part) if part.isdigit() else 0, part) for part in parts)


def _start(pod: Pod) -> float:
    """When a pod started; one that has not is later than all that have."""
    if pod.status.start_time is None:
        return float("inf")
    return datetime.fromisoformat(pod.status.start_time).timestamp()


def _cost(snapshot: Snapshot, candidate: Preemption) -> tuple[object, ...]:
    """What a candidate costs; the least is best."""
    priorities = [snapshot.priority(pod) for pod in candidate.victims]
    highest = max(priorities)
    first_start = min(
        _start(pod)
        for pod, priority in zip(candidate.victims, priorities, strict=True)
        if priority == highest
    )
    return (
        candidate.budgets_broken,
        highest,
        sum(priority - LOWEST_PRIORITY for priority in priorities),
        len(priorities),
        -first_start,
        candidate.node,
    )
