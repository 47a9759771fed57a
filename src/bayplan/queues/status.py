"""The status of groups, as it is to be written to their objects.

A group is Pending until it is admitted, Inqueue until as many of its pods as it needs are on nodes,
then Running; Completed when all of those have ended; Unknown when some run and too few others can.
"""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.kube.volcano import PodGroupPhase
from bayplan.queues.groups import Group
from bayplan.queues.members import TaskStatus
from bayplan.queues.problems import WaitCode

UNSCHEDULABLE, SCHEDULED = "Unschedulable", "Scheduled"
NOT_ENOUGH_RESOURCES = "NotEnoughResources"
READY = "tasks in gang are ready to be scheduled"

_ENDED = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


@dataclass(frozen=True, slots=True)
class GroupCondition:
    """The condition of a group: whether it can start."""

    type: str
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """The status of a group."""

    phase: PodGroupPhase
    condition: GroupCondition | None
    running: int
    succeeded: int
    failed: int


def group_status(group: Group) -> GroupStatus:
    """Return the status of a group, from the states of its pods."""
    return GroupStatus(
        phase=_phase(group),
        condition=_condition(group),
        running=group.count(TaskStatus.RUNNING),
        succeeded=group.count(TaskStatus.SUCCEEDED),
        failed=group.count(TaskStatus.FAILED),
    )


def _condition(group: Group) -> GroupCondition | None:
    if not group.members:
        return None
    if group.has_enough:
        return GroupCondition(SCHEDULED, READY)
    return GroupCondition(UNSCHEDULABLE, NOT_ENOUGH_RESOURCES)


def _phase(group: Group) -> PodGroupPhase:
    if group.count(TaskStatus.RUNNING) and not group.has_enough:
        return "Unknown"
    ended = group.count(*_ENDED)
    scheduled = group.count(TaskStatus.RUNNING, TaskStatus.BOUND) + ended
    if scheduled >= group.needed_to_run:
        return "Completed" if scheduled == ended else "Running"
    return "Inqueue" if group.phase == "Inqueue" else "Pending"


def wait_text(group: Group, why: WaitCode) -> str:
    """Return why a group cannot start, where that is not for quota."""
    pending, needs = group.count(TaskStatus.PENDING), group.min_member
    if why is WaitCode.NOT_ENOUGH_PODS:
        return f"it has {len(group.members)} pods, and needs {needs} to start"
    if why is WaitCode.NOT_ENOUGH_PODS_OF_TASK:
        return "it has fewer pods of a task than that needs to start"
    if why is WaitCode.FOREIGN_GATE:
        return "too many of its pods are held by gates that are not the queue's to remove"
    return f"quota is there, and no nodes for {pending} of {len(group.members)} pods"
