"""What the parts of the scheduler share: the snapshot, the queue, and whom they tell."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Protocol

from msgspec.structs import replace

from bayplan.base.clock import Clock
from bayplan.client import Untyped
from bayplan.client.events import Notes
from bayplan.fit import Assumption, Snapshot
from bayplan.fit.events import Event
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.times import timestamp
from bayplan.scheduler import messages
from bayplan.scheduler.attempt import Refused
from bayplan.scheduler.config import SchedulerProfile, SchedulerSettings
from bayplan.scheduler.metrics import SchedulerMetrics
from bayplan.scheduler.queue import Place, QueuedPod, SchedulingQueue
from bayplan.scheduler.queue_judge import ModelJudge
from bayplan.scheduler.status_patcher import StatusPatcher

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recorders:
    """Whom the scheduler tells what it does."""

    recorders: Mapping[str, Notes]
    """By the name of the scheduler that speaks."""
    metrics: SchedulerMetrics


class Holder(Protocol):
    """Whoever gives turns to some pods."""

    def holds(self, entry: QueuedPod) -> bool:
        """Whether a pod that could be tried waits for a turn."""

    def forgotten(self, pod: Pod) -> None:
        """A pod has not got the node that it was to have."""


class SchedulerContext:
    """The snapshot, the queue, and what is known of both."""

    def __init__(
        self,
        snapshot: Snapshot,
        settings: SchedulerSettings,
        statuses: StatusPatcher,
        told: Recorders,
        clock: Clock,
    ) -> None:
        self.snapshot = snapshot
        self.statuses = statuses
        self.told = told
        self.clock = clock
        self.profiles = {profile.name: profile for profile in settings.profiles}
        self.queue: SchedulingQueue[Event] = SchedulingQueue(
            ModelJudge(snapshot),
            backoff=settings.backoff,
            moved=self._moved,
            holds=self._holds,
        )
        self.batch: Holder | None = None
        """Whoever gives turns to pods that use queues."""
        self.news = asyncio.Event()
        """Set when there may be something to do."""
        self.alike: dict[Hashable, Refused] = {}
        """What pods were told that nothing has happened since; for those that are like them."""

    def profile_of(self, pod: Pod) -> SchedulerProfile:
        """The profile that a pod of ours is served by."""
        return self.profiles[pod.spec.scheduler_name]

    @property
    def first_name(self) -> str:
        """The scheduler that speaks of what is nobody's in particular."""
        return next(iter(self.profiles))

    def is_ours(self, pod: Pod) -> bool:
        """Whether a pod waits for us."""
        return pod.spec.scheduler_name in self.profiles and not pod.spec.node_name

    def enqueue(self, pod: Pod) -> None:
        """A pod of ours has no node."""
        self.queue.put(pod, self.clock.monotonic())
        self.news.set()

    def leave(self, uid: str) -> None:
        """A pod has its node, or is gone."""
        self.queue.remove(uid)
        self.statuses.forget(uid)

    def wake(self, event: Event) -> None:
        """Something happened: whoever it may help is tried again."""
        why = f"{event.kind.__name__}{event.action.capitalize()}"
        if self.queue.wake(event, self.clock.monotonic(), why=why):
            self.news.set()

    def fail(self, entry: QueuedPod, problem: str, began: float) -> None:
        """Something else than room was missing: rest, and try again."""
        now, name = self.clock.monotonic(), entry.pod.spec.scheduler_name
        self.told.metrics.attempt(name, "error", now - began)
        self.queue.failed(entry, now)
        self.news.set()
        log.info("failed", extra={"pod": entry.pod.key, "why": problem})
        condition = messages.refused_condition(problem, "SchedulerError", self.moment())
        if entry.place is not Place.GONE and self.statuses.say(entry.pod, condition, None):
            self.note(name, entry.pod, messages.failed(problem))

    def forget(self, pod: Pod, assumption: Assumption) -> None:
        """Take an assumption back; who waits for the room that it took hears of it."""
        if assumption not in self.snapshot.assumptions():
            return
        self.snapshot.forget(assumption)
        if self.batch is not None:
            self.batch.forgotten(pod)
        self.alike.clear()
        node = assumption.decision.node or ""
        there = replace(pod, spec=replace(pod.spec, node_name=node))
        self.wake(Event.of(there, None))

    def clear_nomination(self, pod: Pod) -> None:
        """Keep no node for a pod any more; who waits for that room hears of it."""
        self.snapshot.clear_nomination(pod)
        cleared = replace(pod, status=replace(pod.status, nominated_node_name=""))
        self.alike.clear()
        self.wake(Event.of(pod, cleared))

    def note(self, name: str, about: KubeObject | Untyped, notice: messages.Notice) -> None:
        """Have an event written, by the scheduler of that name."""
        self.told.recorders[name].note(
            about, notice.type, notice.reason, action=notice.action, text=notice.text
        )

    def moment(self) -> str:
        """Now, as objects say it."""
        return timestamp(self.clock.now())

    def _holds(self, entry: QueuedPod) -> bool:
        return self.batch is not None and self.batch.holds(entry)

    def _moved(self, place: Place, why: str) -> None:
        if place is not Place.IN_FLIGHT and place is not Place.GONE:
            self.told.metrics.incoming(place.value, why)
