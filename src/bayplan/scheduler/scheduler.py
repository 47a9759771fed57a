"""The scheduler: a loop that takes the next pod, decides, assumes, and hands the rest on.

Decisions are synchronous and see a snapshot that does not change under them; their effects (binds,
statuses, preemptions) go on in the background, and come back as events like everything else. So
there is one place where order matters, and it is this loop.

- `event_handlers`: events come from the live snapshot, after it shows them.
- `cycle`: a scheduling cycle places a pod or refuses it.
- `batch`: pods that use queues wait for their turn, and are tried with their group.
- `binding`, `status_patcher`, `preemption`: decisions are carried out.
- `bind_results`: the result of a bind is either observed, or undone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

from bayplan.base.clock import Clock
from bayplan.base.grace import finish_within
from bayplan.client import Untyped
from bayplan.client.events import EventRecorder
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.nodes import Node
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.observe import LiveSnapshot
from bayplan.scheduler.batch.batch_scheduler import BatchScheduler
from bayplan.scheduler.bind_results import BindResults
from bayplan.scheduler.binding import Binder
from bayplan.scheduler.config import SchedulerSettings
from bayplan.scheduler.context import Recorders, SchedulerContext
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.event_handlers import EventHandlers
from bayplan.scheduler.messages import Notice
from bayplan.scheduler.preemption import Preemptions
from bayplan.scheduler.queue import SchedulingQueue
from bayplan.scheduler.status_patcher import StatusPatcher
from bayplan.scheduler.volumes import Observed, VolumeBinder
from bayplan.scheduler.wakeup import wait_for_event
from bayplan.scheduler.writes import Writes

A_WHILE = 16
"""Scheduling cycles in a row before other tasks run."""
GRACE = 4.0
"""Seconds to finish what is under way when the scheduler stops: less than there are
between the end of a lease that was lost and its next holder.
"""


log = logging.getLogger(__name__)


class Scheduler:
    """Schedules the pods of some scheduler names."""

    def __init__(
        self,
        live: LiveSnapshot,
        settings: SchedulerSettings,
        writes: Writes,
        recorders: Recorders,
        clock: Clock,
    ) -> None:
        self._live = live
        self._clock = clock
        self._recorders = recorders
        self.statuses = StatusPatcher(writes.patch_status)
        self._context = SchedulerContext(live.snapshot, settings, self.statuses, recorders, clock)
        self.volumes = VolumeBinder(writes, _observed(live), clock)
        self._bind_results = BindResults(self._context, writes.read, is_observed=writes.is_observed)
        self.binder = Binder(writes, self.volumes, self._bind_results.ended)
        self._scheduling_cycle = SchedulingCycle(self._context, self.binder, writes)
        self.batch = BatchScheduler(self._context, self._scheduling_cycle, writes, settings.queues)
        self._context.batch = self.batch
        live.observer.listen(self.batch.on_event)
        self._event_handlers = EventHandlers(self._context, self.volumes, live.observer)

    @property
    def queue(self) -> SchedulingQueue[ClusterEvent]:
        """The pods that wait."""
        return self._context.queue

    @property
    def preemptions(self) -> Preemptions:
        """The preemptions that are under way."""
        return self._scheduling_cycle.preemptions

    @property
    def recorders(self) -> Collection[EventRecorder]:
        """The event recorders."""
        return self._recorders.recorders.values()

    def warn(self, about: Untyped, notice: Notice) -> None:
        """Record an event for the operator, in the name of the first profile."""
        self._context.note(self._context.first_name, about, notice)

    def warn_of_node(self, node: Node, reason: str, text: str) -> None:
        """Log and record what is wrong with a node."""
        log.warning("node %s: %s", node.name, text, extra={"node": node.name})
        self._context.note(
            self._context.first_name, node, Notice("Warning", reason, "Scheduling", text)
        )

    async def run(self) -> None:
        """Schedule until cancelled, then finish what is under way."""
        await self._live.synced()
        self._event_handlers.start()
        workers = [
            asyncio.ensure_future(work)
            for work in (
                self.binder.run(),
                self.statuses.run(),
                self.batch.run(),
                self._bind_results.look_after(),
            )
        ]
        cycle = asyncio.ensure_future(self._cycle())
        try:
            await asyncio.wait({cycle, *workers}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            cycle.cancel()
            await self._finish()
            for worker in workers:
                worker.cancel()
            ended = await asyncio.gather(cycle, *workers, return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException) and not isinstance(error, asyncio.CancelledError):
                raise error

    async def _cycle(self) -> None:
        tries = 0
        while True:
            entry = self.queue.pop(self._clock.monotonic())
            if entry is not None:
                self._scheduling_cycle.one(entry)
            if not self.batch.turn() and entry is None:
                await self._wait()
                continue
            tries += 1
            if self.binder.is_full:
                await self.binder.room()
            elif tries % A_WHILE == 0:
                await asyncio.sleep(0)

    async def _wait(self) -> None:
        """Wait for an event, or for the next back-off to be over."""
        news = self._context.wakeup
        news.clear()
        dues = [due for due in (self.queue.next_due(), self.batch.next_due()) if due is not None]
        left = min(dues) - self._clock.monotonic() if dues else None
        await wait_for_event(self._clock, news, left)

    async def _finish(self) -> None:
        """Let binds and status patches finish."""
        await finish_within(GRACE, self._drain())
        self.preemptions.cancel()

    async def _drain(self) -> None:
        await asyncio.gather(
            self.binder.drain(),
            self.batch.gate_removal.drain(),
            self.preemptions.drain(),
            self.statuses.drain(),
            *(recorder.drain() for recorder in self.recorders),
        )


def _observed(live: LiveSnapshot) -> Observed:
    return Observed(
        live.cached(PersistentVolumeClaim).get,
        live.cached(PersistentVolume).get,
        live.cached(Node).get,
    )
