"""How groups and queues stand, written to their objects: in the background, and when it changes.

Whatever happens to a group within a second is one write: PodGroups that pods need and nobody made
are made with the status that they have by then, others have their phase, counts and conditions
changed, and queues what is allocated in them and how many groups of each phase they have. What
could not be written is written with the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import get_args

from msgspec.structs import replace

from bayplan.client.errors import ClientError, ForbiddenError, InvalidError, NotFoundError
from bayplan.kube.queueing import PodGroup, PodGroupCondition, PodGroupPhase, PodGroupStatus, Queue
from bayplan.kube.times import timestamp
from bayplan.queues import OURS, Group, NoRoom, Resources, Why
from bayplan.queues.registry import QueueRegistry
from bayplan.queues.resources import write_amounts
from bayplan.queues.status import NOT_ENOUGH_RESOURCES, SCHEDULED, UNSCHEDULABLE, group_status
from bayplan.scheduler.context import SchedulerContext
from bayplan.scheduler.messages import Notice, cut
from bayplan.scheduler.writes import Writes

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
        book: QueueRegistry,
        writes: Writes,
        waits_for: Callable[[str], NoRoom | None],
    ) -> None:
        self._context = context
        self._book = book
        self._news = asyncio.Event()
        book.on_news = self._news.set
        self._writes = writes
        self._clock = context.clock
        self._waits_for = waits_for
        self._phases: dict[str, tuple[str, str]] = {}
        """By group its queue and its phase, as they were last counted."""
        self._counts: dict[str, Counter[str]] = {}
        self._again: dict[str, None] = {}
        """The queues whose status could not be written."""
        self._hands = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            await self._clock.sleep(PAUSE)
            await self.say_all()

    async def say_all(self) -> None:
        """Write whatever has changed."""
        groups, self._book.unsaid = self._book.unsaid, {}
        queues, self._again = self._again, {}
        queues.update((name, None) for key in groups for name in self._counted(key))
        await asyncio.gather(*self._of_queues(queues), *self._of_groups(groups))

    # -- groups ----------------------------------------------------------------------------------

    def _of_groups(self, keys: Iterable[str]) -> list[Work]:
        groups = (self._book.ledger.groups.get(key) for key in keys)
        works = ((one, self._of_group(one)) for one in groups if one is not None and one.is_known)
        return [
            self._say(group.key, work, self._book.touch)
            for group, work in works
            if work is not None
        ]

    def _of_group(self, group: Group) -> Work | None:
        status = group_said(group, self._waits_for(group.key), timestamp(self._clock.now()))
        made = self._book.made.get(group.key)
        if made is not None and status != made.status:
            self._note(made, status)
            return self._writes.say_group(made, status)
        if made is not None:
            return None
        if group.members:
            return self._writes.make_group(replace(group.podgroup, status=status))
        return None

    def _note(self, made: PodGroup, status: PodGroupStatus) -> None:
        """Have an event written of what a group waits for, if that is news."""
        told = _unschedulable(status)
        if told is not None and told != _unschedulable(made.status):
            notice = Notice("Warning", UNSCHEDULABLE, "Scheduling", cut(told.message))
            self._context.note(self._context.first_name, made, notice)

    # -- queues ----------------------------------------------------------------------------------

    def _counted(self, key: str) -> list[str]:
        """Count a group by its phase; returns the queues that may stand otherwise now."""
        group = self._book.ledger.groups.get(key)
        old, new = self._phases.pop(key, None), None
        if group is not None and group.is_known:
            new = self._phases[key] = (group.queue, group_said(group, None, "").phase)
        for one, number in ((old, -1), (new, 1)):
            if one is not None:
                self._counts.setdefault(one[0], Counter())[one[1]] += number
        queues = [one[0] for one in (old, new) if one is not None]
        return [name for queue in queues for name in self._book.ledger.tree.path(queue)]

    def _of_queues(self, names: Iterable[str]) -> list[Work]:
        nodes = self._book.ledger.tree.nodes
        queues = [nodes[name].queue for name in names if name in nodes]
        works = ((one, self._of_queue(one)) for one in queues if one.metadata.uid)
        return [self._say(queue.name, work, self._see_again) for queue, work in works
                if work is not None]  # fmt: skip

    def _of_queue(self, queue: Queue) -> Work | None:
        allocated = self._book.ledger.usage(queue.name).allocated
        status = queue_said(queue, allocated, self._counts.get(queue.name, Counter()))
        return self._writes.say_queue(queue, status) if status else None

    def _see_again(self, queue: str) -> None:
        self._again[queue] = None
        self._news.set()

    async def _say(self, key: str, work: Work, again: Callable[[str], None]) -> None:
        async with self._hands:
            try:
                await work
            except NotFoundError:
                return
            except (InvalidError, ForbiddenError) as error:
                # Somebody has to put that right; then it changes, and is written anew.
                log.warning("status of %s was refused: %s", key, error)
            except ClientError as error:
                log.info("status of %s not written: %s", key, error)
                again(key)
