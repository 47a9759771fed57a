"""Events of the group events.k8s.io: what happened, told to people; what repeats is counted.

Pure bookkeeping. The first time something happens it is reported. When it happens again it becomes
a series: its second time is written at once, then only a count from time to time, and a last count
when it has stopped. What has not happened for six minutes is over; next time it is news again.

    recorder.note(pod, "Warning", "FailedScheduling", action="Scheduling", text="0/3 nodes ...")

Noting never waits and never fails: reports are queued, counted together where they repeat, and sent
by `run` in the background, several at once. Whoever has more urgent things to send says so
(`is_busy`); then they go one by one, with a pause before each unless too many wait. Events are help
for people, not a record: when the queue is full, or the server will not take them, they are dropped
and counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from bayplan.client.client import Client
from bayplan.client.errors import ClientError, NotFoundError
from bayplan.client.objects import name_of, namespace_of, uid_of
from bayplan.client.resources import Untyped
from bayplan.client.verbs.writes import merge
from bayplan.kube.codec import DEFAULT_NAMESPACE
from bayplan.kube.events import Event, EventType
from bayplan.kube.meta import KubeObject, ObjectMeta, ObjectReference
from bayplan.kube.times import micro_time


class Notes(Protocol):
    """Whoever writes events for users."""

    def note(
        self, about: KubeObject | Untyped, kind: EventType, reason: str, *, action: str, text: str
    ) -> None:
        """Have one written, without waiting for it."""
        ...

    async def run(self) -> None:
        """Write until cancelled."""
        ...

    async def drain(self) -> None:
        """Wait until everything noted so far is written."""
        ...


class NoEvents:
    """In place of a recorder: says nothing."""

    def note(
        self, about: KubeObject | Untyped, kind: EventType, reason: str, *, action: str, text: str
    ) -> None:
        """The status says it, too."""

    async def run(self) -> None:
        """There is nothing to send."""

    async def drain(self) -> None:
        """There is nothing to wait for."""


OVER = 360.0
REFRESH = 60.0
MOST = 4096
"""Series kept in mind; beyond that the one longest silent is forgotten."""

Happening = tuple[str, ...]
"""What makes two reports the same: about whom, what, why, by whom."""


@dataclass(slots=True)
class Series:
    """One thing that keeps happening, and how much of it is written down."""

    happening: Happening
    namespace: str
    name: str
    last: float
    count: int = 1
    written_count: int = 1
    written_at: float = field(default=float("-inf"))
    told: bool = True
    """Whether the server has its event."""

    @property
    def unwritten(self) -> bool:
        """Whether it has happened more often than is written."""
        return self.count > self.written_count

    def written(self, now: float) -> None:
        """The count has been written."""
        self.written_count, self.written_at = self.count, now


class Tally:
    """All series that are going on."""

    def __init__(self) -> None:
        self._going_on: OrderedDict[Happening, Series] = OrderedDict()

    def again(self, happening: Happening, now: float) -> Series | None:
        """Count one more; None if this is the first time, or the first in a long while."""
        series = self._going_on.get(happening)
        if series is None or now - series.last > OVER:
            return None
        series.count += 1
        series.last = now
        self._going_on.move_to_end(happening)
        return series

    def first(self, series: Series) -> None:
        """Remember something new."""
        self._going_on[series.happening] = series
        self._going_on.move_to_end(series.happening)
        while len(self._going_on) > MOST:
            self._going_on.popitem(last=False)

    def forget(self, series: Series) -> None:
        """It is no longer known to the server."""
        if self._going_on.get(series.happening) is series:
            del self._going_on[series.happening]

    def due(self, now: float) -> Iterator[Series]:
        """The series whose count should be written now; those that are over are forgotten."""
        for series in tuple(self._going_on.values()):
            over = now - series.last > OVER
            if over:
                self.forget(series)
            if series.told and series.unwritten and (over or now - series.written_at >= REFRESH):
                yield series


log = logging.getLogger(__name__)
LONGEST_NOTE = 1024
QUEUE = 20_000
IN_FLIGHT = 8
"""Events that are sent and not answered yet, at most."""
TICK = 30.0
PAUSE = 0.02
"""Seconds before each event while there is something more urgent."""
MANY = QUEUE // 2
"""Events that may wait for something more urgent."""


@dataclass(frozen=True, slots=True)
class Reporter:
    """Who reports: a controller, and which instance of it."""

    controller: str
    instance: str


@dataclass(frozen=True, slots=True)
class Report:
    """One thing to tell."""

    regarding: ObjectReference
    type: EventType
    reason: str
    action: str
    text: str
    moment: str
    """When it happened."""

    def happening(self, *, by_text: bool) -> Happening:
        """What makes two reports the same; the text may differ, unless they go by it."""
        about = self.regarding
        return (
            about.kind,
            about.namespace,
            about.name,
            about.uid,
            self.type,
            self.reason,
            self.action,
            self.text if by_text else "",
        )


class Recorder:
    """Reports for one controller."""

    def __init__(
        self,
        client: Client,
        reporter: Reporter,
        *,
        is_busy: Callable[[], bool] = lambda: False,
        apart_by_text: bool = False,
    ) -> None:
        self._client = client
        self._apart_by_text = apart_by_text
        """Whether another text makes another event, rather than one that has happened again."""
        self._is_busy = is_busy
        self._reporter = reporter
        self._rng: Random = client.rng
        self._queue: asyncio.Queue[Report] = asyncio.Queue(QUEUE)
        self._tally = Tally()
        self._sending: set[asyncio.Task[None]] = set()
        self.dropped = 0

    @property
    def waiting(self) -> int:
        """How many reports wait to be sent."""
        return self._queue.qsize()

    @property
    def in_flight(self) -> int:
        """How many are sent and not answered yet."""
        return len(self._sending)

    def note(
        self, about: KubeObject | Untyped, kind: EventType, reason: str, *, action: str, text: str
    ) -> None:
        """Report something about an object. Returns at once, whatever the server does."""
        shortened = text.encode()[:LONGEST_NOTE].decode(errors="ignore")
        moment = micro_time(self._client.clock.now())
        report = Report(reference_to(about), kind, reason, action, shortened, moment)
        try:
            self._queue.put_nowait(report)
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Send what is noted until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._send_reports())
            group.create_task(self._send_counts())

    async def drain(self) -> None:
        """Wait until everything noted so far has been sent or dropped."""
        await self._queue.join()

    async def _send_reports(self) -> None:
        try:
            while True:
                report = await self._queue.get()
                await self._turn()
                self._start(report)
        finally:
            for task in self._sending:
                task.cancel()

    async def _turn(self) -> None:
        """Wait until one more may go."""
        if self._is_busy() and self.waiting < MANY:
            await self._client.clock.sleep(PAUSE)
        while len(self._sending) >= (1 if self._is_busy() else IN_FLIGHT):
            await asyncio.wait(self._sending, return_when=asyncio.FIRST_COMPLETED)

    def _start(self, report: Report) -> None:
        """Count a report, and have it sent if that is called for."""
        happening = report.happening(by_text=self._apart_by_text)
        series = self._tally.again(happening, self._client.clock.monotonic())
        if series is None:
            work = self._tell(self._event(report), happening)
        elif series.count == 2 and series.told:
            work = self._count(series)
        else:
            self._queue.task_done()
            return
        task = asyncio.ensure_future(self._send(report.reason, work))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, reason: str, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        except ClientError as error:
            self.dropped += 1
            log.info("event %s not recorded: %s", reason, error)
        finally:
            self._queue.task_done()

    async def _send_counts(self) -> None:
        while True:
            await self._client.clock.sleep(TICK)
            for series in self._tally.due(self._client.clock.monotonic()):
                try:
                    await self._count(series)
                except ClientError as error:
                    log.info("event %s not counted: %s", series.name, error)

    def _tell(self, event: Event, happening: Happening) -> Coroutine[object, object, None]:
        """Tell the server; from now on, what is the same counts as its repetition."""
        meta, now = event.metadata, self._client.clock.monotonic()
        series = Series(happening, meta.namespace, meta.name, last=now, told=False)
        self._tally.first(series)
        return self._create(event, series)

    async def _create(self, event: Event, series: Series) -> None:
        try:
            await self._client.create(event)
        except ClientError:
            self._tally.forget(series)
            raise
        series.told = True
        if series.unwritten:
            await self._count(series)  # it happened again meanwhile

    async def _count(self, series: Series) -> None:
        now = self._client.clock
        change = {"count": series.count, "lastObservedTime": micro_time(now.now())}
        try:
            await self._client.patch(
                Event, series.namespace, series.name, change=merge({"series": change})
            )
        except NotFoundError:
            self._tally.forget(series)  # the server keeps events for an hour or so
        series.written(now.monotonic())

    def _event(self, report: Report) -> Event:
        about = report.regarding
        return Event(
            metadata=ObjectMeta(
                name=f"{about.name}.{self._rng.getrandbits(64):016x}",
                namespace=about.namespace or DEFAULT_NAMESPACE,
            ),
            event_time=report.moment,
            reporting_controller=self._reporter.controller,
            reporting_instance=self._reporter.instance,
            action=report.action,
            reason=report.reason,
            regarding=about,
            note=report.text,
            type=report.type,
        )


def reference_to(item: KubeObject | Untyped) -> ObjectReference:
    """A pointer to that object."""
    if isinstance(item, KubeObject):
        api_version, kind = item.api_version, item.kind or type(item).__name__
    else:
        api_version, kind = str(item.get("apiVersion", "")), str(item.get("kind", ""))
    return ObjectReference(
        api_version=api_version,
        kind=kind,
        namespace=namespace_of(item),
        name=name_of(item),
        uid=uid_of(item),
    )
