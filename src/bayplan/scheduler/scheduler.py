"""The scheduler: a loop that takes the next pod, decides, assumes, and hands the rest on.

Decisions are synchronous and see a snapshot that does not change under them; what they lead to
(binds, statuses, preemptions) goes on in the background, and comes back as events like everything
else. So there is one place where the order of things matters, and it is this loop.

- *Events* come from the live snapshot, after it shows them. Pods of ours that have no node go into
  the queue, pods that have one leave it; then the queue is asked whom the event may help.
- *A try* places a pod (it is assumed, and bound in the background) or refuses it (it waits in the
  queue; its condition, and an event if that is news, say why; it may preempt others).
- *Alike*: as long as nothing has changed, a pod that is like one just refused is refused for the
  same reason without another look.
- *The end of a bind* is either seen (the pod comes back with its node), or undone here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from bayplan.client import Recorder
from bayplan.fit import Assumption
from bayplan.fit.events import Event
from bayplan.kube.clock import Clock
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.kube.times import timestamp
from bayplan.observe import LiveSnapshot, Problem
from bayplan.scheduler import messages
from bayplan.scheduler.attempt import Placed, Refused, attempt
from bayplan.scheduler.binding import Binder, Bound, Failed, Gone, Job, Result
from bayplan.scheduler.config import SchedulerProfile, SchedulerSettings
from bayplan.scheduler.judging import ModelJudge
from bayplan.scheduler.metrics import SchedulerMetrics
from bayplan.scheduler.preempting import Preemptions
from bayplan.scheduler.queue import Place, QueuedPod, SchedulingQueue
from bayplan.scheduler.statuses import Statuses
from bayplan.scheduler.volumes import Observed, VolumeBinder
from bayplan.scheduler.writes import Writes

log = logging.getLogger(__name__)
A_WHILE = 16
"""Tries in a row before others get a turn."""
SEEN_WITHIN = 60.0
"""Seconds after which a bound pod that has not come back through the watch is looked up."""
GRACE = 4.0
"""Seconds to finish what is under way when the scheduler is told to stop: less than there are
between the end of a lease that was lost and its next holder.
"""


@dataclass(frozen=True, slots=True)
class Told:
    """Whom the scheduler tells what it does."""

    recorders: Mapping[str, Recorder]
    """By the name of the scheduler that speaks."""
    metrics: SchedulerMetrics


class Scheduler:
    """Places the pods of some schedulers' names."""

    def __init__(
        self,
        live: LiveSnapshot,
        settings: SchedulerSettings,
        writes: Writes,
        told: Told,
        clock: Clock,
    ) -> None:
        self._live = live
        self._snapshot = live.snapshot
        self._settings = settings
        self._writes = writes
        self._told = told
        self._clock = clock
        self._profiles = {profile.name: profile for profile in settings.profiles}
        self.queue: SchedulingQueue[Event] = SchedulingQueue(
            ModelJudge(self._snapshot), backoff=settings.backoff, moved=self._moved
        )
        self.volumes = VolumeBinder(writes, _observed(live), clock)
        self.binder = Binder(writes, self.volumes, self._bind_ended)
        self.statuses = Statuses(writes)
        self.preemptions = Preemptions(writes, clock, self._sent_away, self._not_sent_away)
        self._news = asyncio.Event()
        self._alike: dict[Hashable, Refused] = {}
        self._early: list[Pod] | None = []
        live.observer.listen(self._heed)
        live.observer.aside.listen(self._set_aside)

    @property
    def recorders(self) -> Collection[Recorder]:
        """Whoever tells users what happens."""
        return self._told.recorders.values()

    # -- what happens --------------------------------------------------------------------------

    def _heed(self, event: Event) -> None:
        """Something in the cluster changed, and the snapshot shows it."""
        self._alike.clear()
        self.volumes.heed(event)
        before, after = event.before, event.after
        if not isinstance(before, Pod | None) or not isinstance(after, Pod | None):
            self._wake(event)
            return
        self._heed_pod(event, before, after)

    def _heed_pod(self, event: Event, before: Pod | None, after: Pod | None) -> None:
        self._enqueue(before, after)
        if _node(before) or _node(after) or _nominated(before) != _nominated(after):
            self._wake(event)
        elif before is not None and after is not None:
            uid = after.metadata.uid
            if self.queue.wake_one(uid, event, self._clock.monotonic(), why="PodUpdate"):
                self._news.set()

    def _enqueue(self, before: Pod | None, after: Pod | None) -> None:
        """Pods of ours without a node wait; whoever has one, or is going, does not."""
        if after is None or after.spec.node_name or after.is_terminal or after.is_terminating:
            gone = after if after is not None else before
            if gone is not None:
                self._forget(gone.metadata.uid)
        elif after.spec.scheduler_name in self._profiles:
            if self._early is not None:
                self._early.append(after)
            else:
                self.queue.put(after, self._clock.monotonic())
                self._news.set()

    def _forget(self, uid: str) -> None:
        self.queue.remove(uid)
        self.statuses.forget(uid)

    def _wake(self, event: Event) -> None:
        why = f"{event.kind.__name__}{event.action.capitalize()}"
        if self.queue.wake(event, self._clock.monotonic(), why=why):
            self._news.set()

    def _set_aside(self, problem: Problem) -> None:
        """A pod of ours that cannot be read waits in vain; tell its owner."""
        pod = problem.object if isinstance(problem.object, Pod) else None
        if problem.kind is not Pod or (pod is not None and not self._is_ours(pod)):
            return
        message = f"cannot be scheduled: {problem.text}"
        about = pod if pod is not None else _named(problem.key)
        self._note(next(iter(self._profiles)), about, messages.failed(message))
        if pod is not None:
            now = timestamp(self._clock.now())
            condition = messages.refused_condition(message, "SchedulerError", now)
            self.statuses.say(pod, condition, None)

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._profiles and not pod.spec.node_name

    def _moved(self, place: Place, why: str) -> None:
        if place not in {Place.IN_FLIGHT, Place.GONE}:
            self._told.metrics.incoming(place.value, why)

    # -- the loop ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Schedule until cancelled, then finish what is under way."""
        await self._live.synced()
        self._start_queue()
        workers = [
            asyncio.ensure_future(work)
            for work in (self.binder.run(), self.statuses.run(), self._expire())
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

    def _start_queue(self) -> None:
        """Everybody who waited before us, the oldest first."""
        early, self._early = self._early or [], None
        latest = {pod.metadata.uid: pod for pod in early}
        now = self._clock.monotonic()
        for pod in sorted(latest.values(), key=lambda p: p.metadata.creation_timestamp or ""):
            self.queue.put(pod, now)

    async def _cycle(self) -> None:
        tries = 0
        while True:
            entry = self.queue.pop(self._clock.monotonic())
            if entry is None:
                await self._wait()
                continue
            self._try(entry)
            tries += 1
            if self.binder.is_full:
                await self.binder.room()
            elif tries % A_WHILE == 0:
                await asyncio.sleep(0)

    async def _wait(self) -> None:
        """Wait for something to happen, or for somebody's rest to be over."""
        self._news.clear()
        due = self.queue.next_due()
        if due is None:
            await self._news.wait()
            return
        timer = asyncio.ensure_future(self._clock.sleep(due - self._clock.monotonic()))
        news = asyncio.ensure_future(self._news.wait())
        try:
            await asyncio.wait({timer, news}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            news.cancel()

    async def _finish(self) -> None:
        """Let what is being bound be bound, and what was said be written."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await self.binder.drain()
                await self.preemptions.drain()
                await self.statuses.drain()
                for recorder in self._told.recorders.values():
                    await recorder.drain()
        self.preemptions.cancel()

    # -- tries ---------------------------------------------------------------------------------

    def _try(self, entry: QueuedPod) -> None:
        """Try a pod; whatever goes wrong with one must not stop the others."""
        began = self._clock.monotonic()
        try:
            self._decide(entry, began)
        except Exception:
            log.exception("pod %s could not be tried", entry.pod.key)
            self._told.metrics.attempt(entry.pod.spec.scheduler_name, "error", 0.0)
            self.queue.failed(entry, began)

    def _decide(self, entry: QueuedPod, began: float) -> None:
        pod = entry.pod
        profile = self._profiles[pod.spec.scheduler_name]
        outcome = self._alike.get(entry.likeness) if entry.likeness is not None else None
        if outcome is None:
            busy = pod.metadata.uid in self.preemptions
            found = attempt(self._snapshot, pod, profile, may_preempt=not busy)
            if isinstance(found, Placed):
                self._told.metrics.decided(self._clock.monotonic() - began)
                self._assume(entry, profile, found, began)
                return
            outcome = found
            if entry.likeness is not None and outcome.preemption is None and not busy:
                self._alike[entry.likeness] = outcome
        self._told.metrics.decided(self._clock.monotonic() - began)
        self._refuse(entry, profile, outcome, began)

    def _assume(
        self, entry: QueuedPod, profile: SchedulerProfile, found: Placed, began: float
    ) -> None:
        assumption = self._snapshot.assume(entry.pod, found.decision)
        self._alike.clear()
        self.queue.done(entry)
        timeout = profile.args.bind_timeout
        self.binder.start(Job(entry, entry.pod, found.node, assumption, timeout, began))

    def _refuse(
        self, entry: QueuedPod, profile: SchedulerProfile, outcome: Refused, began: float
    ) -> None:
        pod, now = entry.pod, self._clock.monotonic()
        self.queue.refused(entry, outcome.plugins, now)
        self._told.metrics.attempt(profile.name, "unschedulable", now - began)
        self._told.metrics.refused(profile.name, outcome.plugins)
        if outcome.preemption is not None:
            self._preempt(pod, outcome)
        elif outcome.nomination == "" and self._snapshot.nominated_node(pod):
            self._clear_nomination(pod)
        moment = timestamp(self._clock.now())
        condition = messages.refused_condition(outcome.message, "Unschedulable", moment)
        if self.statuses.say(pod, condition, outcome.nomination):
            self._note(profile.name, pod, messages.failed(outcome.message))

    def _fail(self, entry: QueuedPod, profile: str, problem: str, began: float) -> None:
        """Something else than room was missing: rest, and try again."""
        now = self._clock.monotonic()
        self._told.metrics.attempt(profile, "error", now - began)
        self.queue.failed(entry, now)
        self._news.set()
        moment = timestamp(self._clock.now())
        condition = messages.refused_condition(problem, "SchedulerError", moment)
        if entry.place is not Place.GONE and self.statuses.say(entry.pod, condition, None):
            self._note(profile, entry.pod, messages.failed(problem))

    # -- preemption ----------------------------------------------------------------------------

    def _preempt(self, pod: Pod, outcome: Refused) -> None:
        found = outcome.preemption
        if found is None or found.node is None:
            return
        self._told.metrics.preempted(len(found.victims))
        self._snapshot.nominate(pod, found.node)
        for other in found.lower_nominated:
            self._clear_nomination(other)
            self.statuses.say(other, None, "")
        self._alike.clear()
        self.preemptions.start(pod, found.victims, found.node)

    def _clear_nomination(self, pod: Pod) -> None:
        self._snapshot.clear_nomination(pod)
        cleared = replace(pod, status=replace(pod.status, nominated_node_name=""))
        self._alike.clear()
        self._wake(Event.of(pod, cleared))

    def _sent_away(self, preemptor: Pod, victim: Pod, node: str) -> None:
        name = preemptor.spec.scheduler_name
        self._note(name, victim, messages.preempted(preemptor, node))

    def _not_sent_away(self, preemptor: Pod) -> None:
        """Its victims stay: it has no claim to the node, and may look again."""
        self._clear_nomination(preemptor)
        self.statuses.say(preemptor, None, "")
        self.queue.activate(preemptor.metadata.uid)
        self._news.set()

    # -- binding -------------------------------------------------------------------------------

    def _bind_ended(self, job: Job, result: Result) -> None:
        match result:
            case Bound():
                self._bound(job)
            case Gone():
                self._forget_assumption(job.pod, job.assumption)
                self._forget(job.pod.metadata.uid)
            case Failed(problem):
                self._forget_assumption(job.pod, job.assumption)
                self._fail(job.entry, job.pod.spec.scheduler_name, problem, job.began)

    def _bound(self, job: Job) -> None:
        now = self._clock.monotonic()
        self._snapshot.finish_binding(job.assumption, now + SEEN_WITHIN)
        metrics, name = self._told.metrics, job.pod.spec.scheduler_name
        metrics.attempt(name, "scheduled", now - job.began)
        metrics.bound(job.entry.attempts, now - job.entry.added)
        self._note(name, job.pod, messages.scheduled(job.pod, job.node))

    def _forget_assumption(self, pod: Pod, assumption: Assumption) -> None:
        """Take an assumption back; who waits for the room that it took hears of it."""
        if assumption not in self._snapshot.assumptions():
            return
        self._snapshot.forget(assumption)
        self._alike.clear()
        node = assumption.decision.node or ""
        there = replace(pod, spec=replace(pod.spec, node_name=node))
        self._wake(Event.of(there, None))

    async def _expire(self) -> None:
        """Bound pods that do not come back through the watch are looked up."""
        while True:
            await self._clock.sleep(SEEN_WITHIN / 4)
            for assumption in self._snapshot.expire(self._clock.monotonic()):
                await self._look_up(assumption)

    async def _look_up(self, assumption: Assumption) -> None:
        entry = self.queue.get(assumption.uid)
        if entry is None:
            return
        found = await self._writes.read(entry.pod)
        if found is None:
            self._forget(assumption.uid)
        elif found.spec.node_name:
            self._snapshot.observe(found)
            self._forget(assumption.uid)
        else:
            self.queue.failed(entry, self._clock.monotonic())
            self._news.set()

    def _note(self, name: str, about: Pod, notice: messages.Notice) -> None:
        self._told.recorders[name].note(
            about, notice.type, notice.reason, action=notice.action, text=notice.text
        )


def _node(pod: Pod | None) -> str:
    return "" if pod is None else pod.spec.node_name


def _nominated(pod: Pod | None) -> str:
    return "" if pod is None else pod.status.nominated_node_name


def _named(key: str) -> Pod:
    """A pod of which nothing but its name is known."""
    namespace, _, name = key.rpartition("/")
    pod = Pod(api_version="v1", kind="Pod")
    pod.metadata.namespace, pod.metadata.name = namespace, name
    return pod


def _observed(live: LiveSnapshot) -> Observed:
    return Observed(
        live.copy_of(PersistentVolumeClaim).get,
        live.copy_of(PersistentVolume).get,
        live.copy_of(Node).get,
    )
