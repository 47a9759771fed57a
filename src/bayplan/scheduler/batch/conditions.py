"""What the status of a PodGroup or a Queue has to say, of what we write in it; pure functions."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from msgspec.structs import replace

from bayplan.kube.queueing import PodGroupCondition, PodGroupPhase, PodGroupStatus, Queue
from bayplan.queues import OURS, Group, NoRoom, Resources, Why
from bayplan.queues.resources import write_amounts
from bayplan.queues.status import NOT_ENOUGH_RESOURCES, SCHEDULED, UNSCHEDULABLE, group_status

NOT_ENOUGH_TASKS = "NotEnoughTasks"
OPEN = "Open"
_TOO_FEW = frozenset((Why.NOT_ENOUGH_PODS, Why.NOT_ENOUGH_PODS_OF_TASK, Why.FOREIGN_GATE))
_TOO_LITTLE = frozenset((Why.QUOTA, Why.SHARE, Why.NO_NODE, Why.EARLIER_GROUP))
PHASES: tuple[PodGroupPhase, ...] = get_args(PodGroupPhase)


def group_said(group: Group, waits_for: NoRoom | None, now: str) -> PodGroupStatus:
    """The status of a group that waits for something, or does not."""
    known, status = group.podgroup.status, group_status(group, OURS)
    conditions = {one.type: one for one in known.conditions}
    if waits_for is not None:
        told = (_reason(waits_for), waits_for.text)
        conditions[UNSCHEDULABLE] = _condition(conditions, UNSCHEDULABLE, "True", told, now)
    elif UNSCHEDULABLE in conditions:
        conditions[UNSCHEDULABLE] = _condition(conditions, UNSCHEDULABLE, "False", ("", ""), now)
    if status.condition is not None and status.condition.type == SCHEDULED:
        ready = (status.condition.reason, "")
        conditions[SCHEDULED] = _condition(conditions, SCHEDULED, "True", ready, now)
    phase = status.phase if group.members else group.phase
    return replace(known, phase=phase, running=status.running, conditions=list(conditions.values()))


def _condition(
    known: dict[str, PodGroupCondition], kind: str, status: str, told: tuple[str, str], now: str
) -> PodGroupCondition:
    old = known.get(kind) or PodGroupCondition(type=kind)
    since = old.last_transition_time if old.status == status else now
    reason, message = told
    return replace(old, status=status, reason=reason, message=message, last_transition_time=since)


def _reason(no_room: NoRoom) -> str:
    """Volcano's two words where they fit, and ours where something is wrong."""
    if no_room.why in _TOO_FEW:
        return NOT_ENOUGH_TASKS
    return NOT_ENOUGH_RESOURCES if no_room.why in _TOO_LITTLE else no_room.why.value


def queue_said(queue: Queue, allocated: Resources, phases: Counter[str]) -> dict[str, object]:
    """What has to be changed in a queue's status; empty if nothing has."""
    known = queue.status
    amounts: dict[str, object] = dict(write_amounts(allocated))
    wanted: dict[str, object] = {phase.lower(): phases[phase] for phase in PHASES}
    changed = {name: count for name, count in wanted.items() if getattr(known, name) != count}
    if known.allocated != amounts:
        gone = {name: None for name in known.allocated if name not in amounts}
        changed["allocated"] = {**amounts, **gone}
    if not known.state:
        changed["state"] = OPEN
    return changed
