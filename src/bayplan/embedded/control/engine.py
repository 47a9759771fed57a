"""The engine: asks controllers about what changed, lets the sink act, and moves time along.

There is one task for everything. A change in the store puts keys on the queue; each key is decided
once at a time and its plan carried out at once. When the queue is empty, the engine sleeps until
the next moment at which somebody wants to be asked again, or until a change wakes it. It knows no
other time than its clock's, so a cluster behaves the same on the wall's clock and in virtual time.

What fails is asked again a second later, then two, then four, up to five minutes.
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
from bayplan.base.pacing import doubled
from bayplan.embedded.apiserver.store.store import Store
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import Controller, Plan, RequeueAfter
from bayplan.embedded.control.sink import Refused, Sink

K = TypeVar("K", bound=Hashable)


class Timeline(Generic[K]):
    """Keys by their due times."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._current: dict[K, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._current)

    def set(self, key: K, due: float) -> None:
        """Wake a key at that time, and at no other time that was set before."""
        self._count += 1
        self._current[key] = self._count
        heapq.heappush(self._heap, (due, self._count, key))

    def drop(self, key: K) -> None:
        """Do not wake a key."""
        self._current.pop(key, None)

    def next_due(self) -> float | None:
        """The earliest due time."""
        heap = self._heap
        while heap and self._current.get(heap[0][2]) != heap[0][1]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now: float) -> list[K]:
        """The keys whose time has come, in order; they are no longer set."""
        found: list[K] = []
        while (due := self.next_due()) is not None and due <= now:
            key = heapq.heappop(self._heap)[2]
            del self._current[key]
            found.append(key)
        return found


def dice(seed: int, revision: int, whose: str = "") -> Random:
    """Random numbers for a run that begins at a revision of its store.

    A run that goes on with a data file must not throw what an earlier one threw: it would make the
    same UIDs and names again, for other objects.
    """
    later = f"{seed} {revision} {whose}" if revision or whose else seed
    return Random(later)  # noqa: S311 - not for secrets


log = logging.getLogger(__name__)


MOST_BACKOFF = 300.0
_SLACK = 1e-5
"""A moment that is closer than this has come: sums of seconds are not exact."""
_TICK = 1e-3
"""The shortest wait: a date's microseconds, subtracted, may leave less than a clock can move by."""
_BREATH = 16
"""Decisions after which others in the same process get a turn."""


class Task(NamedTuple):
    """A key of one of the controllers."""

    controller: int
    key: Hashable


class Engine:
    """Runs controllers over one store."""

    def __init__(self, store: Store, sink: Sink, clock: Clock) -> None:
        self.sink = sink
        self.refusals = 0
        self.failures = 0
        self.decisions = 0
        self._store = store
        self._controllers: list[Controller[Any]] = []
        self._interested: dict[str, list[int]] = defaultdict(list)
        self._ready: deque[Task] = deque()
        self._queued: set[Task] = set()
        self._timeline: Timeline[Task] = Timeline()
        self._failed: dict[Task, int] = {}
        self._clock = clock
        self._start = clock.monotonic()
        self._news = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_due = 0.0
        self._stopped = False

    def now(self) -> float:
        """Seconds since the engine was made."""
        return self._clock.monotonic() - self._start

    @property
    def busy(self) -> bool:
        """Whether there is something to decide at this moment."""
        return bool(self._ready) and not self._stopped

    def add(self, controller: Controller[K]) -> None:
        """Run a controller."""
        number = len(self._controllers)
        self._controllers.append(controller)
        for storage in controller.storages:
            self._interested[storage].append(number)

    def start(self) -> None:
        """Look at everything that is there already, and from now on at every change."""
        for storage in list(self._interested):
            for entry in self._store.list(storage):
                self._observe(Change(entry, None, deleted=False))
        for number, controller in enumerate(self._controllers):
            for key in controller.first():
                self._enqueue(Task(number, key))
        self._store.listeners.append(self._observe)

    def ask(self, controller: Controller[K], key: K) -> None:
        """Ask a controller about a key soon, though no object changed."""
        self._enqueue(Task(self._controllers.index(controller), key))

    def stop(self) -> None:
        """End `run` as soon as the present key is done."""
        self._stopped = True
        self._news.set()

    async def run(self, until: float | None = None) -> None:
        """Work until a moment, in seconds since the engine was made, or until stopped."""
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
        """Decide until nothing is left to decide at this moment."""
        while self._ready and not self._stopped:
            task = self._ready.popleft()
            self._queued.discard(task)
            await self._work(task)
            if self.decisions % _BREATH == 0:
                await asyncio.sleep(0)

    async def _sleep(self, until: float | None) -> None:
        """Wait for somebody's moment, at most until a given one, or for a change."""
        due = self._timeline.next_due()
        if due is None or (until is not None and until < due):
            due = until
        self._news.clear()
        if due is not None:
            self._set_alarm(due)
        await self._news.wait()

    def _set_alarm(self, due: float) -> None:
        """Be woken at a moment; an alarm that rings earlier is as good, and is left alone."""
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

    async def _work(self, task: Task) -> None:
        self.decisions += 1
        controller = self._controllers[task.controller]
        try:
            await self._carry_out(task, controller.decide(task.key))
        except Refused as refusal:
            log.info("%s: %s", controller.name, refusal)
            self.refusals += 1
            self._retry(task)
        except Exception:
            log.exception("%s: deciding about %s failed", controller.name, task.key)
            self.failures += 1
            self._retry(task)

    async def _carry_out(self, task: Task, plan: Plan) -> None:
        self._timeline.drop(task)
        for step in plan:
            if isinstance(step, RequeueAfter):
                self._timeline.set(task, self.now() + max(_TICK, step.after))
            else:
                await self.sink.apply(step)
        self._failed.pop(task, None)

    def _retry(self, task: Task) -> None:
        count = self._failed[task] = self._failed.get(task, -1) + 1
        self._timeline.set(task, self.now() + doubled(1.0, MOST_BACKOFF, count))

    def _observe(self, change: Change) -> None:
        """Queue what a change concerns; whoever cannot read an object holds up nobody else."""
        for number in self._interested.get(change.entry.key.storage, ()):
            controller = self._controllers[number]
            try:
                for key in controller.notice(change):
                    self._enqueue(Task(number, key))
            except Exception:
                log.exception("%s: cannot read %s", controller.name, change.entry.key)
                self.failures += 1

    def _enqueue(self, task: Task) -> None:
        if task not in self._queued:
            self._queued.add(task)
            self._ready.append(task)
            self._news.set()
