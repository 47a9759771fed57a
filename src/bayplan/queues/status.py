"""What the objects of queues and groups should say of themselves.

A group is Pending until it is admitted, Inqueue until as many of its pods as it needs are on nodes,
then Running; Completed when all of those have ended; Unknown when some run and too few others can.
"""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.kube.queueing import PodGroupPhase
from bayplan.queues.groups import Group
from bayplan.queues.members import Status
from bayplan.queues.problems import Why
from bayplan.queues.rules import Rules

UNSCHEDULABLE, SCHEDULED = "Unschedulable", "Scheduled"
NOT_ENOUGH_RESOURCES = "NotEnoughResources"
READY = "tasks in gang are ready to be scheduled"

_ENDED = (Status.SUCCEEDED, Status.FAILED)


@dataclass(frozen=True, slots=True)
class GroupCondition:
    """What a group says of whether it can start."""

    type: str
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """What a group says of itself."""

    phase: PodGroupPhase
    condition: GroupCondition | None
    running: int
    succeeded: int
    failed: int


def group_status(group: Group, rules: Rules) -> GroupStatus:
    """The status of a group as its pods stand."""
    return GroupStatus(
        phase=_phase(group, rules),
        condition=_condition(group),
        running=group.count(Status.RUNNING),
        succeeded=group.count(Status.SUCCEEDED),
        failed=group.count(Status.FAILED),
    )


def _condition(group: Group) -> GroupCondition | None:
    if not group.members:
        return None
    if group.has_enough:
        return GroupCondition(SCHEDULED, READY)
    return GroupCondition(UNSCHEDULABLE, NOT_ENOUGH_RESOURCES)


def _phase(group: Group, rules: Rules) -> PodGroupPhase:
    if group.count(Status.RUNNING) and not group.has_enough:
        return "Unknown"
    ended = group.count(*_ENDED)
    scheduled = group.count(Status.RUNNING, Status.BOUND) + ended
    if scheduled >= group.min_member and (scheduled or rules.zero_min_member_completed):
        return "Completed" if scheduled == ended else "Running"
    return "Inqueue" if group.phase == "Inqueue" else "Pending"


def said_of(group: Group, why: Why) -> str:
    """Why a group cannot start, where that is not its queue's doing."""
    pending, needs = group.count(Status.PENDING), group.min_member
    if why is Why.NOT_ENOUGH_PODS:
        return f"{len(group.members)} pods are there, {needs} are needed to start"
    if why is Why.NOT_ENOUGH_PODS_OF_TASK:
        return "too few pods of a task are there to start"
    if why is Why.FOREIGN_GATE:
        return "too many of its pods are held by gates that are not the queue's to remove"
    return f"quota is there, and no nodes for {pending} of {len(group.members)} pods"
