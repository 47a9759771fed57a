"""The PodScheduled condition of pods in queues, and events about it, written when they change.

| a pod | PodScheduled=False, reason |
|---|---|
| gated, waits for quota | SchedulingGated, as the API server wrote it |
| gated, something is wrong with its queue or group | SchedulingGated, with what is wrong |
| without a gate, asked for one, waits for quota | NotAdmitted |
| without a gate, asked for none, waits for quota | Unschedulable, as ever |
| admitted, no node fits | Unschedulable |
| admitted, would fit, others of its gang do not | Schedulable |
| admitted, and its reservation has timed out | ReservationTimedOut |

Autoscalers scale up for Unschedulable alone; ours also counts Schedulable, since such a pod takes
capacity that would look free to the rest of its gang. So they scale up for admitted pods, and, as
before there were gates, for pods that asked for none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bayplan.kube.pods import POD_SCHEDULED, Pod
from bayplan.queues import Gate, Group, Member, QueueReason, TaskStatus, WaitCode
from bayplan.scheduler import messages
from bayplan.scheduler.context import SchedulerContext
from bayplan.scheduler.messages import Reason

PASSING = frozenset(
    (
        WaitCode.QUOTA,
        WaitCode.SHARE,
        WaitCode.EARLIER_GROUP,
        WaitCode.NO_NODE,
        WaitCode.NOT_ENOUGH_PODS,
    )
)
"""What a pod waits for without anything being wrong; the rest has to be fixed by a user."""
TIMED_OUT: Reason = "ReservationTimedOut"
_Reported = tuple[WaitCode, str]


class PodConditions:
    """Writes the conditions of pods that wait."""

    def __init__(self, context: SchedulerContext, *, gates: bool) -> None:
        self._context = context
        self._gates = gates
        """Whether pods that ask for a gate are treated apart from those that do not."""
        self._recorders: dict[str, _Reported] = {}
        self._waits: dict[str, QueueReason] = {}
        self._unreported: dict[str, dict[str, None]] = {}

    def add_pod(self, member: Member) -> None:
        """Note a pod whose condition has not been written."""
        self._unreported.setdefault(member.group, {})[member.key] = None

    def forget(self, group: str) -> None:
        """Forget a group that is gone, or waits no longer."""
        for known in (self._recorders, self._waits, self._unreported):
            known.pop(group, None)

    def reason_of(self, group: str) -> QueueReason | None:
        """Return what a group waits for, as last reported."""
        return self._waits.get(group)

    def set_waiting(self, group: Group, reason: QueueReason) -> bool:
        """Write that the pods of a group wait for their queue; returns whether that is new."""
        saying = (reason.code, _text(reason))
        news = self._recorders.get(group.key) != saying
        unreported = self._unreported.pop(group.key, {})
        keys = group.members if news else [key for key in unreported if key in group.members]
        self._recorders[group.key] = saying
        if news:
            self._waits[group.key] = replace(reason, text=saying[1])
        for key in tuple(keys):
            self._set_condition(group.members[key], reason, saying[1])
        return news

    def _set_condition(self, member: Member, reason: QueueReason, text: str) -> None:
        if (
            member.status is not TaskStatus.PENDING
            or member.reserved
            or member.gate is Gate.FOREIGN
        ):
            return
        wrong = reason.code not in PASSING
        if member.gate is not Gate.NONE:
            if wrong:
                self._patch(member.pod, text, "SchedulingGated")
        elif self._gates and member.opted_in:
            self._patch(member.pod, text, "NotAdmitted")
        else:
            self._patch(member.pod, text, "Unschedulable")

    def refused(self, pod: Pod, message: str) -> None:
        """Write that no node fits an admitted pod."""
        self._patch(pod, message, "Unschedulable")

    def set_fits(self, pod: Pod, gang: str) -> None:
        """Write that a pod fits, but others of its gang do not."""
        text = f"waits for the rest of group {gang}, for which no node fits"
        self._patch(pod, text, "Schedulable")

    def set_timed_out(self, members: Iterable[Member], group: Group) -> None:
        """Write that the reservation of pods has timed out."""
        text = f"no node was found in time; its quota in queue {group.queue} is released"
        for member in members:
            self._patch(member.pod, text, TIMED_OUT)

    def _patch(self, pod: Pod, text: str, reason: Reason) -> None:
        context, name = self._context, pod.spec.scheduler_name
        condition = messages.refused_condition(text, reason, context.moment())
        if context.statuses.patch_status(pod, condition, None):
            context.note(name, pod, messages.failed(text))


def has_timed_out(pod: Pod) -> bool:
    """Whether the condition of a pod is that its reservation has timed out."""
    conditions = pod.status.conditions
    return any(one.type == POD_SCHEDULED and one.reason == TIMED_OUT for one in conditions)


def _text(reason: QueueReason) -> str:
    """Return the message: without the amounts that are left, which change all the time."""
    if reason.code is WaitCode.QUOTA:
        return f"queue {reason.queue} has no quota left: {', '.join(reason.resources)}"
    return reason.text
