"""What pods and their owners are told of queues: conditions and events, when they are news.

| a pod | PodScheduled=False, reason |
|---|---|
| gated, waits for quota | SchedulingGated, as the API server wrote it |
| gated, something is wrong with its queue or group | SchedulingGated, with what is wrong |
| without a gate, asked for one, waits for quota | NotAdmitted |
| without a gate, asked for none, waits for quota | Unschedulable, as ever |
| let in, no node fits | Unschedulable |
| let in, would fit, others of its gang do not | Schedulable |
| let in, and its time is over | ReservationTimedOut |

Autoscalers buy for Unschedulable alone; ours also counts Schedulable, since such a pod takes room
that would look free to the rest of its gang. So they buy for pods that were let in, and, as before
there were gates, for pods that asked for none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bayplan.kube.pods import POD_SCHEDULED, Pod
from bayplan.queues import Gate, Group, Member, NoRoom, Status, Why
from bayplan.scheduler import messages
from bayplan.scheduler.context import SchedulerContext
from bayplan.scheduler.messages import Reason

PASSING = frozenset((Why.QUOTA, Why.SHARE, Why.EARLIER_GROUP, Why.NO_NODE, Why.NOT_ENOUGH_PODS))
"""What a pod waits for that comes by itself; the rest somebody has to put right."""
TIMED_OUT: Reason = "ReservationTimedOut"
Saying = tuple[Why, str]


class PodConditions:
    """Tells pods why they wait."""

    def __init__(self, context: SchedulerContext, *, gates: bool) -> None:
        self._context = context
        self._gates = gates
        """Whether pods that ask for a gate are told apart from those that do not."""
        self._told: dict[str, Saying] = {}
        self._waits: dict[str, NoRoom] = {}
        self._untold: dict[str, dict[str, None]] = {}

    def came(self, member: Member) -> None:
        """A pod is new, or has come back: it has not been told."""
        self._untold.setdefault(member.group, {})[member.key] = None

    def forget(self, group: str) -> None:
        """The group is gone, or waits no longer."""
        for known in (self._told, self._waits, self._untold):
            known.pop(group, None)

    def waits_for(self, group: str) -> NoRoom | None:
        """What a group waits for, as it was told."""
        return self._waits.get(group)

    def waits(self, group: Group, no_room: NoRoom) -> bool:
        """Tell the pods of a group that they wait for their queue; says whether that is news."""
        saying = (no_room.why, _text(no_room))
        news = self._told.get(group.key) != saying
        untold = self._untold.pop(group.key, {})
        keys = group.members if news else [key for key in untold if key in group.members]
        self._told[group.key] = saying
        if news:
            self._waits[group.key] = replace(no_room, text=saying[1])
        for key in tuple(keys):
            self._tell(group.members[key], no_room, saying[1])
        return news

    def _tell(self, member: Member, no_room: NoRoom, text: str) -> None:
        if member.status is not Status.PENDING or member.reserved or member.gate is Gate.FOREIGN:
            return
        wrong = no_room.why not in PASSING
        if member.gate is not Gate.NONE:
            if wrong:
                self._say(member.pod, text, "SchedulingGated")
        elif self._gates and member.opted_in:
            self._say(member.pod, text, "NotAdmitted")
        else:
            self._say(member.pod, text, "Unschedulable")

    def refused(self, pod: Pod, message: str) -> None:
        """No node fits a pod that was let in."""
        self._say(pod, message, "Unschedulable")

    def would_fit(self, pod: Pod, gang: str) -> None:
        """A node fits, but others of its gang find none."""
        text = f"waits for the rest of group {gang}, for which no node fits"
        self._say(pod, text, "Schedulable")

    def timed_out(self, members: Iterable[Member], group: Group) -> None:
        """No node was found in time."""
        text = f"no node was found in time; queue {group.queue} has its quota back"
        for member in members:
            self._say(member.pod, text, TIMED_OUT)

    def _say(self, pod: Pod, text: str, reason: Reason) -> None:
        context, name = self._context, pod.spec.scheduler_name
        condition = messages.refused_condition(text, reason, context.moment())
        if context.statuses.say(pod, condition, None):
            context.note(name, pod, messages.failed(text))


def says_timed_out(pod: Pod) -> bool:
    """Whether a pod says that no node was found for it in time."""
    conditions = pod.status.conditions
    return any(one.type == POD_SCHEDULED and one.reason == TIMED_OUT for one in conditions)


def _text(no_room: NoRoom) -> str:
    """What is told: without the amounts that are left, which change all the time."""
    if no_room.why is Why.QUOTA:
        return f"queue {no_room.queue} has no room: {', '.join(no_room.resources)}"
    return no_room.text
