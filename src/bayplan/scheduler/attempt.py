"""One scheduling attempt of one pod: its node, or why none fits and what it preempts.

Nothing is changed. A pod that fits nowhere may preempt others, if its profile allows it; one whose
victims are still terminating keeps its nomination, and one for which preemption finds nothing loses
it.
"""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.fit import Decision, Refusal, Snapshot
from bayplan.fit.evaluation.verdicts import refusing_drivers
from bayplan.fit.explanation.message import unschedulable_message
from bayplan.fit.plugins.registry import names_drivers
from bayplan.fit.preemption import Preemption, preempt
from bayplan.kube.pods import Pod
from bayplan.scheduler.config import SchedulerProfile


@dataclass(frozen=True, slots=True)
class Placed:
    """The pod goes to a node."""

    node: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class Refused:
    """The pod fits nowhere now."""

    plugins: frozenset[str]
    message: str
    drivers: frozenset[str] = frozenset()
    """The CSI drivers that were missing, or at their attach limit, on some node."""
    nomination: str | None = None
    """The node that it is nominated for from now on; empty for none, None for as before."""
    preemption: Preemption | None = None
    """The pods that it preempts, if any."""


Outcome = Placed | Refused


def attempt(
    snapshot: Snapshot, pod: Pod, profile: SchedulerProfile, *, may_preempt: bool = True
) -> Outcome:
    """Try a pod."""
    decision = snapshot.decide(pod)
    if decision.node is not None:
        return Placed(decision.node, decision)
    refused, drivers = decision.plugins, _drivers(snapshot, pod, decision)
    if not may_preempt or not profile.preempts:
        return Refused(refused, unschedulable_message(snapshot, pod, None), drivers)
    found = preempt(snapshot, pod)
    message = unschedulable_message(snapshot, pod, found)
    if found.node is not None:
        return Refused(refused, message, drivers, found.node, found)
    return Refused(refused, message, drivers, "" if found.eligible else None)


def _drivers(snapshot: Snapshot, pod: Pod, decision: Decision) -> frozenset[str]:
    if not any(map(names_drivers, decision.plugins)):
        return frozenset()
    evaluation = snapshot.evaluation(pod)
    return frozenset() if isinstance(evaluation, Refusal) else refusing_drivers(evaluation)
