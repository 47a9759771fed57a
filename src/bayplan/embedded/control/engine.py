"""The engine: calls controllers for changed keys, executes their plans, and waits.

There is one task for everything. A change in the store enqueues keys; each key is decided by itself
and its plan executed at once. When the queue is empty, the engine sleeps until the next requeue
time, or until a change. It uses only its clock, so a cluster behaves the same in real and in
virtual time.

A failed key is retried after one second, then two, then four, up to five minutes.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import defaultdict, deque
from collections.abc import Hashable
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from bayplan.base.clock import Clock
from bayplan.base.flowcontrol import exponential_delay
from bayplan.embedded.apiserver.store.store import ApiObjectStore
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import Controller, Plan, RequeueAfter
from bayplan.embedded.control.sink import ActionSink, WriteRefused

K = TypeVar("K", bound=Hashable)


class DelayingQueue(Generic[K]):
    """Keys by their due times."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._current: dict[K, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._current)

    def set(self, key: K, due: float) -> None:
        """Set the due time of a key, replacing an earlier one."""
        self._count += 1
        self._current[key] = self._count
        heapq.heappush(self._heap, (due, self._count, key))

    def drop(self, key: K) -> None:
        """Remove a key."""
        self._current.pop(key, None)

    def next_due(self) -> float | None:
        """Return the earliest due time."""
        heap = self._heap
        while heap and self._current.get(heap[0][2]) != heap[0][1]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now: float) -> list[K]:
        """Remove and return the keys that are due, in order."""
        found: list[K] = []
        while (due := self.next_due()) is not None and due <= now:
            key = heapq.heappop(self._heap)[2]
            del self._current[key]
            found.append(key)
        return found


def random_source(seed: int, revision: int, whose: str = "") -> Random:
    """Return random numbers for a run that begins at a revision of its store.

    A run that continues with a data file must not repeat the random numbers of an earlier one: it
    would create the same UIDs and names for other objects.
    """
    later = f"{seed} {revision} {whose}" if revision or whose else seed
    return Random(later)  # noqa: S311 - not for secrets


log = logging.getLogger(__name__)


MAX_BACKOFF = 300.0
_SLACK = 1e-5
"""A time closer than this counts as due: sums of floats are not exact."""
_TICK = 1e-3
"""The shortest wait: a difference of datetimes may be less than a clock can advance by."""
_YIELD_AFTER = 16
"""Decisions after which the event loop runs other tasks."""


class EngineTask(NamedTuple):
    """A key of one of the controllers."""

    controller: int
    key: Hashable


class Engine:
    """Runs controllers over one store."""

    def __init__(self, store: ApiObjectStore, sink: ActionSink, clock: Clock) -> None:
        self.sink = sink
        self.refusals = 0
        self.failures = 0
        self.decisions = 0
        self._store = store
        self._controllers: list[Controller[Any]] = []
        self._interested: dict[str, list[int]] = defaultdict(list)
        self._ready: deque[EngineTask] = deque()
        self._queued: set[EngineTask] = set()
        self._timeline: DelayingQueue[EngineTask] = DelayingQueue()
        self._failed: dict[EngineTask, int] = {}
        self._clock = clock
        self._start = clock.monotonic()
        self._news = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_due = 0.0
        self._stopped = False

    def now(self) -> float:
        """Return the seconds since the engine was created."""
        return self._clock.monotonic() - self._start

    @property
    def is_busy(self) -> bool:
        """Return whether there are keys to decide now."""
        return bool(self._ready) and not self._stopped

    def add(self, controller: Controller[K]) -> None:
        """Add a controller."""
        number = len(self._controllers)
        self._controllers.append(controller)
        for storage in controller.storages:
            self._interested[storage].append(number)

    def start(self) -> None:
        """Enqueue all existing objects, and from now on every change."""
        for storage in list(self._interested):
            for entry in self._store.list(storage):
                self._observe(WatchCacheEvent(entry, None, deleted=False))
        for number, controller in enumerate(self._controllers):
            for key in controller.first():
                self._enqueue(EngineTask(number, key))
        self._store.listeners.append(self._observe)

    def enqueue(self, controller: Controller[K], key: K) -> None:
        """Enqueue a key of a controller without a change."""
        self._enqueue(EngineTask(self._controllers.index(controller), key))

    def stop(self) -> None:
        """End `run` after the current key."""
        self._stopped = True
        self._news.set()

    async def run(self, until: float | None = None) -> None:
        """Work until a time, in seconds since the engine was created, or until stopped."""
        try:
            await self._run(until)
        finally:
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None

    async def _run(self, until: float | None) -> None:
        while not self._stopped:
            await self._settle()
            now = self.now() + _SLACK
            for task in self._timeline.pop_due(now):
                self._enqueue(task)
            if self._ready:
                continue
            if until is not None and now >= until:
                return
            await self._sleep(until)

    async def _settle(self) -> None:
        """Decide until the queue is empty."""
        while self._ready and not self._stopped:
            task = self._ready.popleft()
            self._queued.discard(task)
            await self._work(task)
            if self.decisions % _YIELD_AFTER == 0:
                await asyncio.sleep(0)

    async def _sleep(self, until: float | None) -> None:
        """Wait for the next due time, at most until a given one, or for a change."""
        due = self._timeline.next_due()
        if due is None or (until is not None and until < due):
            due = until
        self._news.clear()
        if due is not None:
            self._set_alarm(due)
        await self._news.wait()

    def _set_alarm(self, due: float) -> None:
        """Set the timer, unless an earlier one is set."""
        if self._alarm is not None:
            if self._alarm_due <= due:
                return
            self._alarm.cancel()
        left = max(0.0, due - self.now())
        self._alarm = asyncio.get_running_loop().call_later(left, self._ring)
        self._alarm_due = due

    def _ring(self) -> None:
        self._alarm = None
        self._news.set()

    async def _work(self, task: EngineTask) -> None:
        self.decisions += 1
        controller = self._controllers[task.controller]
        try:
            await self._carry_out(task, controller.decide(task.key))
        except WriteRefused as refusal:
            log.info("%s: %s", controller.name, refusal)
            self.refusals += 1
            self._retry(task)
        except Exception:
            log.exception("controller %s failed to decide about %s", controller.name, task.key)
            self.failures += 1
            self._retry(task)

    async def _carry_out(self, task: EngineTask, plan: Plan) -> None:
        self._timeline.drop(task)
        for step in plan:
            if isinstance(step, RequeueAfter):
                self._timeline.set(task, self.now() + max(_TICK, step.after))
            else:
                await self.sink.apply(step)
        self._failed.pop(task, None)

    def _retry(self, task: EngineTask) -> None:
        count = self._failed[task] = self._failed.get(task, -1) + 1
        self._timeline.set(task, self.now() + exponential_delay(1.0, MAX_BACKOFF, count))

    def _observe(self, change: WatchCacheEvent) -> None:
        """Enqueue the keys that a change concerns; a failing controller does not stop others."""
        for number in self._interested.get(change.entry.key.storage, ()):
            controller = self._controllers[number]
            try:
                for key in controller.notice(change):
                    self._enqueue(EngineTask(number, key))
            except Exception:
                log.exception("%s: cannot read %s", controller.name, change.entry.key)
                self.failures += 1

    def _enqueue(self, task: EngineTask) -> None:
        if task not in self._queued:
            self._queued.add(task)
            self._ready.append(task)
            self._news.set()
