"""Events: the first time is told, the rest is counted, and nothing ever waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from bayplan.client import Access, ApiEventRecorder, Client, EventReporter, untyped
from bayplan.client.events import (
    MAX_DEFERRED,
    MAX_IN_FLIGHT,
    QUEUE_LENGTH,
    SERIES_SECONDS,
    EventSeriesCache,
    RecordedSeries,
)
from bayplan.kube.events import Event
from bayplan.kube.meta import ObjectMeta
from bayplan.kube.pods import Pod
from tests.client.scripted import Scripted, refusal
from tests.clocks import VirtualClock

CONFIG_MAPS = untyped("", "v1", "configmaps", "ConfigMap")


@asynccontextmanager
async def recording(client: Client) -> AsyncIterator[ApiEventRecorder]:
    recorder = ApiEventRecorder(client, EventReporter("bayplan.io/test", "test-0"))
    task = asyncio.ensure_future(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        await asyncio.wait({task})


def pod(namespace: str) -> Pod:
    return Pod(metadata=ObjectMeta(namespace=namespace, name="p", uid="u"))


async def test_something_new_becomes_an_event(client: Client, namespace: str) -> None:
    async with recording(client) as recorder:
        recorder.record(pod(namespace), "Warning", "NoRoom", action="Placing", note="0/3 nodes")
        await recorder.drain()
    (event,) = (await client.list(Event, namespace)).items
    assert (event.type, event.reason, event.action) == ("Warning", "NoRoom", "Placing")
    assert (event.note, event.reporting_controller) == ("0/3 nodes", "bayplan.io/test")
    assert (event.regarding.kind, event.regarding.name) == ("Pod", "p")
    assert event.series is None


async def test_what_repeats_is_counted_in_one_event(access: Access, namespace: str) -> None:
    clock = VirtualClock()
    async with Client(access, clock=clock, rng=Random(1)) as client, recording(client) as recorder:
        for n in range(10):
            recorder.record(pod(namespace), "Normal", "Waits", action="Placing", note=f"try {n}")
        await recorder.drain()
        (event,) = (await client.list(Event, namespace)).items
        assert event.series is not None
        assert 2 <= event.series.count <= 10
        counted = await after_a_minute(client, clock, namespace)
    assert counted == 10


async def after_a_minute(client: Client, clock: VirtualClock, namespace: str) -> int:
    """The count once the recorder has had the time to write it."""
    for _ in range(4):
        await clock.until_sleeping()
        await clock.advance(30)
    await clock.until_sleeping()
    (event,) = (await client.list(Event, namespace)).items
    return event.series.count if event.series else 1


async def test_a_note_is_cut_to_what_the_api_takes(client: Client, namespace: str) -> None:
    async with recording(client) as recorder:
        recorder.record(pod(namespace), "Normal", "Long", action="Telling", note="ü" * 2000)
        await recorder.drain()
        assert recorder.dropped == 0
    (event,) = (await client.list(Event, namespace)).items
    assert event.note == "ü" * 512


async def test_noting_never_fails_and_what_is_dropped_is_counted() -> None:
    async with Scripted(refusal(403, "Forbidden")) as server, Client(server.access) as client:
        idle = ApiEventRecorder(client, EventReporter("bayplan.io/test", "test-0"))
        for _ in range(QUEUE_LENGTH + 500):
            idle.record(pod("here"), "Normal", "Flood", action="Flooding", note="")
        assert idle.dropped == 500
        async with recording(client) as recorder:
            recorder.record(pod("here"), "Normal", "Refused", action="Trying", note="")
            await recorder.drain()
            assert recorder.dropped == 1


async def test_events_go_one_by_one_while_there_is_something_more_urgent(
    client: Client, namespace: str
) -> None:
    busy = True
    recorder = ApiEventRecorder(
        client, EventReporter("bayplan.io/test", "test-0"), is_busy=lambda: busy
    )
    at_once = []
    sending = asyncio.ensure_future(recorder.run())
    try:
        for busy in (True, False):
            for n in range(20):
                one = Pod(metadata=ObjectMeta(namespace=namespace, name=f"p{n}-{busy:d}", uid="u"))
                recorder.record(one, "Normal", "Told", action="Telling", note="")
            most = 0
            while recorder.waiting:
                await asyncio.sleep(0)
                most = max(most, recorder.in_flight)
            await recorder.drain()
            at_once.append(most)
    finally:
        sending.cancel()
        await asyncio.wait({sending})
    assert at_once == [1, MAX_IN_FLIGHT]
    assert len((await client.list(Event, namespace)).items) == 40


async def test_events_wait_for_something_more_urgent_unless_too_many_do() -> None:
    clock = VirtualClock()
    async with (
        Scripted(refusal(403, "Forbidden")) as server,
        Client(server.access, clock=clock) as client,
    ):
        recorder = ApiEventRecorder(
            client, EventReporter("bayplan.io/test", "test-0"), is_busy=lambda: True
        )
        for number in range(MAX_DEFERRED + 3):
            one = Pod(metadata=ObjectMeta(namespace="n", name=f"p{number}", uid="u"))
            recorder.record(one, "Normal", "Told", action="Telling", note="")
        sending = asyncio.ensure_future(recorder.run())
        await clock.until_sleeping(2)  # the one that counts, and the one that sends
        assert (recorder.waiting, clock.monotonic()) == (MAX_DEFERRED - 1, 0.0)
        sending.cancel()
        await asyncio.wait({sending})


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 500)), max_size=40))
def test_every_repetition_is_counted_in_the_end(plan: list[tuple[str, float]]) -> None:
    tally, now, written = EventSeriesCache(), 0.0, 0
    firsts = 0
    for name, pause in plan:
        now += pause
        written += write_due(tally, now)
        if tally.count((name,), now, "") is None:
            firsts += 1
            tally.add(RecordedSeries((name,), "here", name, last=now))
    written += write_due(tally, now + SERIES_SECONDS + 1)
    assert firsts + written == len(plan)
    assert not list(tally.due(now + 10 * SERIES_SECONDS))


def write_due(tally: EventSeriesCache, now: float) -> int:
    written = 0
    for series in tally.due(now):
        written += series.count - series.written_count
        series.mark_written(now)
    return written
