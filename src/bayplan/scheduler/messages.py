"""Events and conditions of the scheduler, with the texts of kube-scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bayplan.kube.events import EventType
from bayplan.kube.meta import Condition
from bayplan.kube.pods import POD_SCHEDULED, Pod

LONGEST_NOTE = 1024
_CUT = " ..."
DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTED = "PreemptionByScheduler"
Reason = Literal[
    "Unschedulable",
    "SchedulerError",
    "SchedulingGated",
    "Schedulable",
    "NotAdmitted",
    "ReservationTimedOut",
]
"""Why a pod has no node. Autoscalers scale up for those that are Unschedulable, and for no others;
the last three are of pods in queues.
"""


@dataclass(frozen=True, slots=True)
class Notice:
    """An event about a pod."""

    type: EventType
    reason: str
    action: str
    text: str


def scheduled(pod: Pod, node: str) -> Notice:
    """Return the event of a pod that was bound."""
    text = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
    return Notice("Normal", "Scheduled", "Binding", text)


def failed(message: str) -> Notice:
    """Return the event of a pod that could not be scheduled."""
    return Notice("Warning", "FailedScheduling", "Scheduling", cut(message))


def unreadable_pod(problem: str) -> Notice:
    """Return the event of an invalid pod, which is not scheduled."""
    return failed(f"cannot be scheduled: {problem}")


def unused(problem: str) -> Notice:
    """Return the event of another invalid object, which is ignored."""
    return Notice("Warning", "SetAside", "Observing", cut(f"not used for scheduling: {problem}"))


def preempted(preemptor: Pod, node: str) -> Notice:
    """Return the event of a victim; kube-scheduler names the preemptor by its uid."""
    text = f"Preempted by pod {preemptor.metadata.uid} on node {node}"
    return Notice("Normal", "Preempted", "Preempting", text)


def refused_condition(message: str, reason: Reason, now: str) -> Condition:
    """Return the PodScheduled condition of a pod that could not be scheduled."""
    return Condition(
        type=POD_SCHEDULED, status="False", reason=reason, message=message, last_transition_time=now
    )


def victim_condition(scheduler: str, now: str) -> Condition:
    """Return the DisruptionTarget condition of a victim."""
    return Condition(
        type=DISRUPTION_TARGET,
        status="True",
        reason=PREEMPTED,
        message=f"{scheduler}: preempting to accommodate a higher priority pod",
        last_transition_time=now,
    )


def condition_change(pod: Pod, wanted: Condition) -> Condition | None:
    """Return the condition as it has to be written, or None if the pod has it already.

    The time stays if only the words change.
    """
    known = next((one for one in pod.status.conditions if one.type == wanted.type), None)
    if known is None or known.status != wanted.status:
        return wanted
    if (known.reason, known.message) == (wanted.reason, wanted.message):
        return None
    return Condition(
        type=wanted.type,
        status=wanted.status,
        reason=wanted.reason,
        message=wanted.message,
        last_transition_time=known.last_transition_time or wanted.last_transition_time,
    )


def status_patch(
    pod: Pod, condition: Condition | None, nominated: str | None = None
) -> dict[str, object] | None:
    """Return a strategic merge patch of a pod's status, with its uid; None if nothing changes.

    `nominated` is the node that the pod shall be nominated for, empty for none any more; None
    leaves what is there.
    """
    changed = None if condition is None else condition_change(pod, condition)
    status: dict[str, object] = {}
    if changed is not None:
        status["conditions"] = [
            {
                "type": changed.type,
                "status": changed.status,
                "reason": changed.reason,
                "message": changed.message,
                "lastTransitionTime": changed.last_transition_time,
            }
        ]
    if nominated is not None and nominated != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated or None
    return {"metadata": {"uid": pod.metadata.uid}, "status": status} if status else None


def cut(text: str) -> str:
    """Text that an event can carry."""
    data = text.encode()
    if len(data) <= LONGEST_NOTE:
        return text
    return data[: LONGEST_NOTE - len(_CUT)].decode(errors="ignore") + _CUT
