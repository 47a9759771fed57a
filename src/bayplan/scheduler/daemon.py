"""The scheduler as a daemon: what it does while it is the leader.

`lead` is a coroutine function of one client, as every daemon's is; which cluster, clock and process
it is in it cannot tell.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping

from prometheus_client import CollectorRegistry

from bayplan.client import ApiEventRecorder, Client, EventReporter
from bayplan.client.events import EventRecorder, NullEventRecorder
from bayplan.fit import Profile
from bayplan.kube.gates import VOLUME_LIMIT_SCALING
from bayplan.observe import LimitCollector, LimitWatch, LiveSnapshot, follow
from bayplan.queues import Ledger
from bayplan.scheduler.batch.metrics import QueueMetrics
from bayplan.scheduler.batch.queue_informers import follow_queues
from bayplan.scheduler.config import SchedulerSettings, rules
from bayplan.scheduler.context import Recorders
from bayplan.scheduler.dryrun import Show, ShownWrites
from bayplan.scheduler.metrics import SchedulerMetrics
from bayplan.scheduler.queue import SubQueue
from bayplan.scheduler.scheduler import Scheduler
from bayplan.scheduler.skew import SkewWatch
from bayplan.scheduler.writes import LiveWrites

log = logging.getLogger(__name__)
_SHOWN = (SubQueue.ACTIVE, SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE, SubQueue.GATED, SubQueue.HELD)


class SchedulerDaemon:
    """A scheduler that can be started on any client."""

    def __init__(
        self,
        settings: SchedulerSettings,
        *,
        profile: Profile | None = None,
        registry: CollectorRegistry | None = None,
        instance: str = "bayplan",
        show: Show | None = None,
    ) -> None:
        self._settings = settings
        self._profile = rules(settings, profile)
        registry = registry or CollectorRegistry()
        registry.register(QueueMetrics(self._ledger))
        registry.register(LimitCollector("bayplan_scheduler", lambda: self._limits))
        self._metrics = SchedulerMetrics(registry)
        self._metrics.read(
            pending=self._pending,
            unschedulable=self._unschedulable,
            cached=self._cached,
            set_aside=self._set_aside,
        )
        self._instance = instance
        self._show = show
        """Where a dry run shows what it would do; None if it is none."""
        self.scheduler: Scheduler | None = None
        """The running scheduler, while it is the leader."""
        self.live: LiveSnapshot | None = None
        self._limits: LimitWatch | None = None
        self.ready = asyncio.Event()
        """Set while all objects have been observed."""

    async def lead(self, client: Client) -> None:
        """Schedule until cancelled."""
        log.info("became leader")
        notes = {one.name: self._notes(client, one.name) for one in self._settings.profiles}
        writes = LiveWrites(client) if self._show is None else ShownWrites(self._show)
        async with follow(client, profile=self._profile) as live:
            recorders = Recorders(notes, self._metrics)
            scheduler = Scheduler(live, self._settings, writes, recorders, client.clock)
            self.live, self.scheduler = live, scheduler
            if self._profile.gates.enabled(VOLUME_LIMIT_SCALING):
                # Where our lease is, the autoscaler's status is, too.
                where = self._settings.leader.namespace
                SkewWatch(self._metrics.skew, scheduler.warn, where).start(live.informers)
            beside = [asyncio.ensure_future(one.run()) for one in notes.values()]
            following = follow_queues(client, live.informers, scheduler.batch)
            beside.append(asyncio.ensure_future(following))
            try:
                await live.synced()
                self._limits = LimitWatch(live.snapshot, scheduler.warn_of_node)
                self._limits.start(live.observer)
                self.ready.set()
                await scheduler.run()
            finally:
                self.ready.clear()
                for one in beside:
                    one.cancel()
                self.live = self.scheduler = self._limits = None

    def _is_busy(self) -> bool:
        """Whether binds wait; events can wait longer."""
        return self.scheduler is not None and self.scheduler.binder.is_busy

    def _notes(self, client: Client, name: str) -> EventRecorder:
        if self._show is not None:
            return NullEventRecorder()
        return ApiEventRecorder(client, EventReporter(name, self._instance), is_busy=self._is_busy)

    def _pending(self) -> Mapping[str, float]:
        queue = self.scheduler.queue if self.scheduler is not None else None
        return {place.value: queue.count(place) if queue is not None else 0 for place in _SHOWN}

    def _unschedulable(self) -> Mapping[str, float]:
        entries = self.scheduler.queue if self.scheduler is not None else ()
        waiting = (entry for entry in entries if entry.subqueue is SubQueue.UNSCHEDULABLE)
        return Counter(plugin for entry in waiting for plugin in entry.plugins)

    def _cached(self) -> Mapping[str, float]:
        if self.live is None:
            return {}
        cluster = self.live.snapshot.cluster
        return {
            "nodes": len(cluster.slots),
            "pods": len(cluster.pods.by_key),
            "assumed_pods": len(self.live.snapshot.assumptions()),
        }

    def _ledger(self) -> Ledger | None:
        return self.scheduler.batch.ledger if self.scheduler is not None else None

    def _set_aside(self) -> Mapping[str, float]:
        problems = self.live.observer.invalid if self.live is not None else ()
        return Counter(problem.kind.__name__ for problem in problems)
