"""The status of groups and queues, written to their objects in the background when it changes.

All changes of a group within a second are one write: PodGroups that pods need and that do not exist
are created with their status, others have their phase, counts and conditions changed, and queues
what is allocated in them and how many groups of each phase they have. A write that failed is
repeated with the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import get_args

from msgspec.structs import replace

from bayplan.client.errors import ClientError, ForbiddenError, InvalidError, NotFoundError
from bayplan.kube.times import timestamp
from bayplan.kube.volcano import PodGroup, PodGroupCondition, PodGroupPhase, PodGroupStatus, Queue
from bayplan.queues import Group, QueueReason, Resources, WaitCode
from bayplan.queues.observed_queues import ObservedQueues
from bayplan.queues.resources import write_amounts
from bayplan.queues.status import NOT_ENOUGH_RESOURCES, SCHEDULED, UNSCHEDULABLE, group_status
from bayplan.scheduler.context import SchedulerContext
from bayplan.scheduler.messages import Notice, cut
from bayplan.scheduler.writes import Writes

NOT_ENOUGH_TASKS = "NotEnoughTasks"
OPEN = "Open"
_TOO_FEW = frozenset(
    (WaitCode.NOT_ENOUGH_PODS, WaitCode.NOT_ENOUGH_PODS_OF_TASK, WaitCode.FOREIGN_GATE)
)
_TOO_LITTLE = frozenset((WaitCode.QUOTA, WaitCode.SHARE, WaitCode.NO_NODE, WaitCode.EARLIER_GROUP))
PHASES: tuple[PodGroupPhase, ...] = get_args(PodGroupPhase)


def group_status_of(group: Group, reason_of: QueueReason | None, now: str) -> PodGroupStatus:
    """Return the status of a group that waits for something, or does not."""
    known, status = group.podgroup.status, group_status(group)
    conditions = {one.type: one for one in known.conditions}
    if reason_of is not None:
        shown = (_reason(reason_of), reason_of.text)
        conditions[UNSCHEDULABLE] = _condition(conditions, UNSCHEDULABLE, "True", shown, now)
    elif UNSCHEDULABLE in conditions:
        conditions[UNSCHEDULABLE] = _condition(conditions, UNSCHEDULABLE, "False", ("", ""), now)
    if status.condition is not None and status.condition.type == SCHEDULED:
        ready = (status.condition.reason, "")
        conditions[SCHEDULED] = _condition(conditions, SCHEDULED, "True", ready, now)
    phase = status.phase if group.members else group.phase
    return replace(known, phase=phase, running=status.running, conditions=list(conditions.values()))


def _condition(
    known: dict[str, PodGroupCondition], kind: str, status: str, shown: tuple[str, str], now: str
) -> PodGroupCondition:
    old = known.get(kind) or PodGroupCondition(type=kind)
    since = old.last_transition_time if old.status == status else now
    reason, message = shown
    return replace(old, status=status, reason=reason, message=message, last_transition_time=since)


def _reason(reason: QueueReason) -> str:
    """Return Volcano's two reasons where they apply, and ours where something is wrong."""
    if reason.code in _TOO_FEW:
        return NOT_ENOUGH_TASKS
    return NOT_ENOUGH_RESOURCES if reason.code in _TOO_LITTLE else reason.code.value


def queue_status_of(queue: Queue, allocated: Resources, phases: Counter[str]) -> dict[str, object]:
    """Return what has to be changed in a queue's status; empty if nothing has."""
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


log = logging.getLogger(__name__)
PAUSE = 1.0
"""Seconds between two rounds of writing."""
AT_ONCE = 16
Work = Coroutine[object, object, None]


def _unschedulable(status: PodGroupStatus) -> PodGroupCondition | None:
    found = (one for one in status.conditions if one.type == UNSCHEDULABLE)
    return next((one for one in found if one.status == "True"), None)


class QueueStatusWriter:
    """Writes the status of groups and queues."""

    def __init__(
        self,
        context: SchedulerContext,
        observed: ObservedQueues,
        writes: Writes,
        reason_of: Callable[[str], QueueReason | None],
    ) -> None:
        self._context = context
        self._observed = observed
        self._news = asyncio.Event()
        observed.on_unreported = self._news.set
        self._writes = writes
        self._clock = context.clock
        self._reason_of = reason_of
        self._phases: dict[str, tuple[str, str]] = {}
        """By group its queue and its phase, as they were last counted."""
        self._counts: dict[str, Counter[str]] = {}
        self._again: dict[str, None] = {}
        """The queues whose status could not be written."""
        self._actuators = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            await self._clock.sleep(PAUSE)
            await self.write_all()

    async def write_all(self) -> None:
        """Write whatever has changed."""
        groups, self._observed.unreported_groups = self._observed.unreported_groups, {}
        queues, self._again = self._again, {}
        queues.update((name, None) for key in groups for name in self._counted(key))
        await asyncio.gather(*self._of_queues(queues), *self._of_groups(groups))

    # -- groups ----------------------------------------------------------------------------------

    def _of_groups(self, keys: Iterable[str]) -> list[Work]:
        groups = (self._observed.ledger.groups.get(key) for key in keys)
        works = ((one, self._of_group(one)) for one in groups if one is not None and one.is_known)
        return [
            self._patch(group.key, work, self._observed.mark_unreported)
            for group, work in works
            if work is not None
        ]

    def _of_group(self, group: Group) -> Work | None:
        status = group_status_of(group, self._reason_of(group.key), timestamp(self._clock.now()))
        made = self._observed.podgroups.get(group.key)
        if made is not None and status != made.status:
            self._record_event(made, status)
            return self._writes.patch_group_status(made, status)
        if made is not None:
            return None
        if group.members:
            return self._writes.create_group(replace(group.podgroup, status=status))
        return None

    def _record_event(self, made: PodGroup, status: PodGroupStatus) -> None:
        """Have an event written of what a group waits for, if that is news."""
        shown = _unschedulable(status)
        if shown is not None and shown != _unschedulable(made.status):
            notice = Notice("Warning", UNSCHEDULABLE, "Scheduling", cut(shown.message))
            self._context.note(self._context.first_name, made, notice)

    # -- queues ----------------------------------------------------------------------------------

    def _counted(self, key: str) -> list[str]:
        """Count a group by its phase; returns the queues that may stand otherwise now."""
        group = self._observed.ledger.groups.get(key)
        old, new = self._phases.pop(key, None), None
        if group is not None and group.is_known:
            new = self._phases[key] = (group.queue, group_status_of(group, None, "").phase)
        for one, number in ((old, -1), (new, 1)):
            if one is not None:
                self._counts.setdefault(one[0], Counter())[one[1]] += number
        queues = [one[0] for one in (old, new) if one is not None]
        return [name for queue in queues for name in self._observed.ledger.tree.path(queue)]

    def _of_queues(self, names: Iterable[str]) -> list[Work]:
        nodes = self._observed.ledger.tree.nodes
        queues = [nodes[name].queue for name in names if name in nodes]
        works = ((one, self._of_queue(one)) for one in queues if one.metadata.uid)
        return [self._patch(queue.name, work, self._see_again) for queue, work in works
                if work is not None]  # fmt: skip

    def _of_queue(self, queue: Queue) -> Work | None:
        allocated = self._observed.ledger.usage(queue.name).allocated
        status = queue_status_of(queue, allocated, self._counts.get(queue.name, Counter()))
        return self._writes.patch_queue_status(queue, status) if status else None

    def _see_again(self, queue: str) -> None:
        self._again[queue] = None
        self._news.set()

    async def _patch(self, key: str, work: Work, check_again: Callable[[str], None]) -> None:
        async with self._actuators:
            try:
                await work
            except NotFoundError:
                return
            except (InvalidError, ForbiddenError) as error:
                # A user has to fix that; then it changes, and is written again.
                log.warning("status of %s rejected: %s", key, error)
            except ClientError as error:
                log.info("status of %s not written: %s", key, error)
                check_again(key)
