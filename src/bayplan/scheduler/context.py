"""The shared state of the scheduler: snapshot, queue, status patcher and recorders."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Protocol

from msgspec.structs import replace

from bayplan.base.clock import Clock
from bayplan.client import Untyped
from bayplan.client.events import EventRecorder
from bayplan.fit import Assumption, Snapshot
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.times import timestamp
from bayplan.scheduler import messages
from bayplan.scheduler.attempt import Refused
from bayplan.scheduler.config import SchedulerProfile, SchedulerSettings
from bayplan.scheduler.metrics import SchedulerMetrics
from bayplan.scheduler.queue import QueuedPod, SchedulingQueue, SubQueue
from bayplan.scheduler.queueing_hints import SnapshotHints
from bayplan.scheduler.status_patcher import StatusPatcher

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recorders:
    """Event recorders and metrics."""

    recorders: Mapping[str, EventRecorder]
    """By scheduler name."""
    metrics: SchedulerMetrics


class PodHolder(Protocol):
    """Holds pods until they have their turn."""

    def is_held(self, entry: QueuedPod) -> bool:
        """Whether a pod that could be tried waits for a turn."""

    def on_node_lost(self, pod: Pod) -> None:
        """Called when a pod has lost its node before it was bound."""


class SchedulerContext:
    """The snapshot, the queue, and what is known of both."""

    def __init__(
        self,
        snapshot: Snapshot,
        settings: SchedulerSettings,
        statuses: StatusPatcher,
        recorders: Recorders,
        clock: Clock,
    ) -> None:
        self.snapshot = snapshot
        self.statuses = statuses
        self.recorders = recorders
        self.clock = clock
        self.profiles = {profile.name: profile for profile in settings.profiles}
        self.queue: SchedulingQueue[ClusterEvent] = SchedulingQueue(
            SnapshotHints(snapshot),
            backoff=settings.backoff,
            on_move=self._on_move,
            is_held=self._is_held,
        )
        self.batch: PodHolder | None = None
        """Holds the pods that use queues."""
        self.wakeup = asyncio.Event()
        """Set when there may be something to do."""
        self.known_refusals: dict[Hashable, Refused] = {}
        """By signature, the refusals of pods since which nothing has changed."""

    def profile_of(self, pod: Pod) -> SchedulerProfile:
        """Return the profile of a pod of ours."""
        return self.profiles[pod.spec.scheduler_name]

    @property
    def first_name(self) -> str:
        """The scheduler name for events that concern no pod."""
        return next(iter(self.profiles))

    def is_ours(self, pod: Pod) -> bool:
        """Whether a pod has no node and is of one of our scheduler names."""
        return pod.spec.scheduler_name in self.profiles and not pod.spec.node_name

    def enqueue(self, pod: Pod) -> None:
        """Put a pod of ours without a node into the queue."""
        self.queue.put(pod, self.clock.monotonic())
        self.wakeup.set()

    def leave(self, uid: str) -> None:
        """Remove a pod that has its node, or is gone."""
        self.queue.remove(uid)
        self.statuses.forget(uid)

    def wake(self, event: ClusterEvent) -> None:
        """Requeue the pods that an event may help."""
        why = f"{event.kind.__name__}{event.action.capitalize()}"
        if self.queue.wake(event, self.clock.monotonic(), why=why):
            self.wakeup.set()

    def fail(self, entry: QueuedPod, problem: str, began: float) -> None:
        """Back off after an error that is not for capacity, and record it."""
        now, name = self.clock.monotonic(), entry.pod.spec.scheduler_name
        self.recorders.metrics.attempt(name, "error", now - began)
        self.queue.failed(entry, now)
        self.wakeup.set()
        log.info("failed", extra={"pod": entry.pod.key, "why": problem})
        condition = messages.refused_condition(problem, "SchedulerError", self.moment())
        if entry.subqueue is not SubQueue.GONE and self.statuses.patch_status(
            entry.pod, condition, None
        ):
            self.note(name, entry.pod, messages.failed(problem))

    def forget(self, pod: Pod, assumption: Assumption) -> None:
        """Forget an assumption; pods that wait for its capacity are requeued."""
        if assumption not in self.snapshot.assumptions():
            return
        self.snapshot.forget(assumption)
        if self.batch is not None:
            self.batch.on_node_lost(pod)
        self.known_refusals.clear()
        node = assumption.decision.node or ""
        there = replace(pod, spec=replace(pod.spec, node_name=node))
        self.wake(ClusterEvent.of(there, None))

    def clear_nomination(self, pod: Pod) -> None:
        """Clear the nomination of a pod; pods that wait for its capacity are requeued."""
        self.snapshot.clear_nomination(pod)
        cleared = replace(pod, status=replace(pod.status, nominated_node_name=""))
        self.known_refusals.clear()
        self.wake(ClusterEvent.of(pod, cleared))

    def note(self, name: str, about: KubeObject | Untyped, notice: messages.Notice) -> None:
        """Record an event in the name of a scheduler."""
        self.recorders.recorders[name].record(
            about, notice.type, notice.reason, action=notice.action, note=notice.text
        )

    def moment(self) -> str:
        """Return the current time as a timestamp."""
        return timestamp(self.clock.now())

    def _is_held(self, entry: QueuedPod) -> bool:
        return self.batch is not None and self.batch.is_held(entry)

    def _on_move(self, subqueue: SubQueue, why: str) -> None:
        if subqueue is not SubQueue.IN_FLIGHT and subqueue is not SubQueue.GONE:
            self.recorders.metrics.incoming(subqueue.value, why)
