"""The event recorder: writes events of the group events.k8s.io and counts repeated ones.

    recorder.record(pod, "Warning", "FailedScheduling", action="Scheduling", note="0/3 nodes ...")

The first occurrence creates an Event. When it occurs again it becomes a series: the second
occurrence is written at once, then only the count from time to time, and a last count when it has
stopped. A series ends when there was no occurrence for six minutes; the next one is a new Event.

`record` never waits and never fails: events are queued, aggregated, and sent by `run` in the
background, several at once. While the owner has more urgent requests (`is_busy`) they are sent one
by one, with a pause before each unless too many wait. When the queue is full, or the server does
not accept an event, it is dropped and counted.
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


class EventRecorder(Protocol):
    """Writes events about objects."""

    def record(
        self,
        regarding: KubeObject | Untyped,
        event_type: EventType,
        reason: str,
        *,
        action: str,
        note: str,
    ) -> None:
        """Queue an event about an object, without waiting."""
        ...

    async def run(self) -> None:
        """Send queued events until cancelled."""
        ...

    async def drain(self) -> None:
        """Wait until all events queued so far are sent."""
        ...


class NullEventRecorder:
    """An event recorder that writes nothing."""

    def record(
        self,
        regarding: KubeObject | Untyped,
        event_type: EventType,
        reason: str,
        *,
        action: str,
        note: str,
    ) -> None:
        """Drop the event."""

    async def run(self) -> None:
        """Return: there is nothing to send."""

    async def drain(self) -> None:
        """Return: there is nothing to wait for."""


SERIES_SECONDS = 360.0
REFRESH_SECONDS = 60.0
MAX_SERIES = 4096
"""Series that are kept; beyond that the one least recently seen is dropped."""

EventKey = tuple[str, ...]
"""The fields that two events of one series have in common."""


@dataclass(slots=True)
class RecordedSeries:
    """A series of equal events, and how much of it is written to the server."""

    key: EventKey
    namespace: str
    name: str
    last: float
    last_observed: str = ""
    """The time of its last occurrence, as Events have it."""
    count: int = 1
    written_count: int = 1
    written_at: float = field(default=float("-inf"))
    is_created: bool = True
    """Whether its Event was created."""

    @property
    def has_unwritten(self) -> bool:
        """Whether there were more occurrences than the written count."""
        return self.count > self.written_count

    def mark_written(self, now: float) -> None:
        """Note that the count was written."""
        self.written_count, self.written_at = self.count, now


class EventSeriesCache:
    """The series that have not ended, least recently seen first."""

    def __init__(self) -> None:
        self._by_key: OrderedDict[EventKey, RecordedSeries] = OrderedDict()

    def count(self, key: EventKey, now: float, observed: str) -> RecordedSeries | None:
        """Count one more occurrence; None if the series does not exist or has ended."""
        series = self._by_key.get(key)
        if series is None or now - series.last > SERIES_SECONDS:
            return None
        series.count += 1
        series.last, series.last_observed = now, observed
        self._by_key.move_to_end(key)
        return series

    def add(self, series: RecordedSeries) -> None:
        """Add a new series."""
        self._by_key[series.key] = series
        self._by_key.move_to_end(series.key)
        while len(self._by_key) > MAX_SERIES:
            self._by_key.popitem(last=False)

    def remove(self, series: RecordedSeries) -> None:
        """Remove a series whose Event the server no longer has."""
        if self._by_key.get(series.key) is series:
            del self._by_key[series.key]

    def due(self, now: float) -> Iterator[RecordedSeries]:
        """Yield the series whose count should be written now; ended ones are removed."""
        for series in tuple(self._by_key.values()):
            has_ended = now - series.last > SERIES_SECONDS
            if has_ended:
                self.remove(series)
            if (
                series.is_created
                and series.has_unwritten
                and (has_ended or now - series.written_at >= REFRESH_SECONDS)
            ):
                yield series


log = logging.getLogger(__name__)
MAX_NOTE_BYTES = 1024
QUEUE_LENGTH = 20_000
MAX_IN_FLIGHT = 8
"""The most requests in flight."""
COUNT_PERIOD = 30.0
PAUSE_SECONDS = 0.02
"""The pause before each event while there are more urgent requests."""
MAX_DEFERRED = QUEUE_LENGTH // 2
"""Events that may wait for more urgent requests."""


@dataclass(frozen=True, slots=True)
class EventReporter:
    """The reporting controller and its instance."""

    controller: str
    instance: str


@dataclass(frozen=True, slots=True)
class QueuedEvent:
    """An event that waits to be sent."""

    regarding: ObjectReference
    type: EventType
    reason: str
    action: str
    note: str
    time: str

    def key(self, *, by_note: bool) -> EventKey:
        """Return the key of its series; the note may differ within one, unless `by_note`."""
        about = self.regarding
        return (
            about.kind,
            about.namespace,
            about.name,
            about.uid,
            self.type,
            self.reason,
            self.action,
            self.note if by_note else "",
        )


class ApiEventRecorder:
    """Writes the events of one controller to the API server."""

    def __init__(
        self,
        client: Client,
        reporter: EventReporter,
        *,
        is_busy: Callable[[], bool] = lambda: False,
        distinguish_by_note: bool = False,
    ) -> None:
        self._client = client
        self._distinguish_by_note = distinguish_by_note
        """Whether events with different notes are different events, not a repetition."""
        self._is_busy = is_busy
        self._reporter = reporter
        self._rng: Random = client.rng
        self._queue: asyncio.Queue[QueuedEvent] = asyncio.Queue(QUEUE_LENGTH)
        self._series = EventSeriesCache()
        self._sending: set[asyncio.Task[None]] = set()
        self.dropped = 0

    @property
    def waiting(self) -> int:
        """How many events wait to be sent."""
        return self._queue.qsize()

    @property
    def in_flight(self) -> int:
        """How many requests are in flight."""
        return len(self._sending)

    def record(
        self,
        regarding: KubeObject | Untyped,
        event_type: EventType,
        reason: str,
        *,
        action: str,
        note: str,
    ) -> None:
        """Queue an event about an object; returns at once."""
        shortened = note.encode()[:MAX_NOTE_BYTES].decode(errors="ignore")
        time = micro_time(self._client.clock.now())
        event = QueuedEvent(reference_to(regarding), event_type, reason, action, shortened, time)
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Send queued events until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._send_events())
            group.create_task(self._send_counts())

    async def drain(self) -> None:
        """Wait until all events queued so far have been sent or dropped."""
        await self._queue.join()

    async def _send_events(self) -> None:
        try:
            while True:
                event = await self._queue.get()
                await self._wait_to_send()
                self._start(event)
        finally:
            for task in self._sending:
                task.cancel()

    async def _wait_to_send(self) -> None:
        """Wait until one more event may be sent."""
        if self._is_busy() and self.waiting < MAX_DEFERRED:
            await self._client.clock.sleep(PAUSE_SECONDS)
        while len(self._sending) >= (1 if self._is_busy() else MAX_IN_FLIGHT):
            await asyncio.wait(self._sending, return_when=asyncio.FIRST_COMPLETED)

    def _start(self, event: QueuedEvent) -> None:
        """Count an event, and start to send it if it is new or its series begins."""
        key = event.key(by_note=self._distinguish_by_note)
        series = self._series.count(key, self._client.clock.monotonic(), event.time)
        if series is None:
            work = self._add(self._api_event(event), key)
        elif series.count == 2 and series.is_created:
            work = self._write_count(series)
        else:
            self._queue.task_done()
            return
        task = asyncio.ensure_future(self._send(event.reason, work))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, reason: str, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        except ClientError as error:
            self.dropped += 1
            log.info("event not recorded: %s", error, extra={"reason": reason})
        finally:
            self._queue.task_done()

    async def _send_counts(self) -> None:
        while True:
            await self._client.clock.sleep(COUNT_PERIOD)
            for series in self._series.due(self._client.clock.monotonic()):
                try:
                    await self._write_count(series)
                except ClientError as error:
                    log.info("event count not written: %s", error, extra={"event": series.name})

    def _add(self, event: Event, key: EventKey) -> Coroutine[object, object, None]:
        """Begin a series with an event, and return the request that creates it."""
        meta, now = event.metadata, self._client.clock.monotonic()
        series = RecordedSeries(key, meta.namespace, meta.name, last=now, is_created=False)
        self._series.add(series)
        return self._create(event, series)

    async def _create(self, event: Event, series: RecordedSeries) -> None:
        try:
            await self._client.create(event)
        except ClientError:
            self._series.remove(series)
            raise
        series.is_created = True
        if series.has_unwritten:
            await self._write_count(series)  # it occurred again meanwhile

    async def _write_count(self, series: RecordedSeries) -> None:
        clock = self._client.clock
        change = {"count": series.count, "lastObservedTime": series.last_observed}
        try:
            await self._client.patch(
                Event, series.namespace, series.name, change=merge({"series": change})
            )
        except NotFoundError:
            self._series.remove(series)  # the server keeps events for an hour or so
        series.mark_written(clock.monotonic())

    def _api_event(self, event: QueuedEvent) -> Event:
        regarding = event.regarding
        return Event(
            metadata=ObjectMeta(
                name=f"{regarding.name}.{self._rng.getrandbits(64):016x}",
                namespace=regarding.namespace or DEFAULT_NAMESPACE,
            ),
            event_time=event.time,
            reporting_controller=self._reporter.controller,
            reporting_instance=self._reporter.instance,
            action=event.action,
            reason=event.reason,
            regarding=regarding,
            note=event.note,
            type=event.type,
        )


def reference_to(item: KubeObject | Untyped) -> ObjectReference:
    """Return a reference to an object."""
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
