"""What a group says of itself to people: what it waits for, in one line."""

from __future__ import annotations

from bayplan.queues.groups import Group
from bayplan.queues.members import Status
from bayplan.queues.problems import Why


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
