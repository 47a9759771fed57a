"""The engine asks about every change once, wakes keys in order, and retries what failed."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.clock import LoopClock
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import Controller, Create, Plan, RequeueAfter
from bayplan.embedded.control.engine import DelayingQueue, Engine
from bayplan.embedded.control.sink import ActionSink
from bayplan.embedded.control.view import CONFIG_MAPS
from tests.embedded.apiserver.backends import new_backend
from tests.embedded.simulation.virtual_clusters import VirtualCluster, virtual_cluster

pytestmark = pytest.mark.whole


EMPTY = "seed: 1\n"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50), st.booleans())))
def test_a_timeline_wakes_each_key_at_the_time_that_was_set_last(
    moves: list[tuple[int, int, bool]],
) -> None:
    timeline: DelayingQueue[int] = DelayingQueue()
    expected: dict[int, tuple[int, int]] = {}
    for order, (key, due, drop) in enumerate(moves):
        if drop:
            timeline.drop(key)
            expected.pop(key, None)
        else:
            timeline.set(key, due)
            expected[key] = (due, order)
    assert len(timeline) == len(expected)
    in_order = sorted(expected, key=lambda key: expected[key])
    early = timeline.pop_due(25)
    assert early == [key for key in in_order if expected[key][0] <= 25]
    assert timeline.pop_due(100) == in_order[len(early) :]
    assert timeline.next_due() is None


class Scripted(Controller[str]):
    """Does as a test says, and remembers when it was asked."""

    name = "scripted"
    storages = (CONFIG_MAPS,)

    def __init__(self, w: VirtualCluster, plans: list[Plan | Exception]) -> None:
        self._now = w.simulation.now
        self._start = self._now()
        self._plans = plans
        self.asked: list[float] = []

    def notice(self, change: WatchCacheEvent) -> Iterable[str]:
        return (change.entry.key.name,)

    def decide(self, key: str) -> Plan:
        self.asked.append(self._now() - self._start)
        plan = self._plans.pop(0) if self._plans else []
        if isinstance(plan, Exception):
            raise plan
        return plan


async def test_a_key_is_asked_again_when_it_said_so() -> None:
    async with virtual_cluster(EMPTY, settle=0) as w:
        scripted = Scripted(w, [[RequeueAfter(5)], [RequeueAfter(10)]])
        w.simulation.engine.add(scripted)
        w.simulation.engine.enqueue(scripted, "a")
        await w.forward(100)
        assert scripted.asked == [0, 5, 15]


async def test_an_answer_without_a_time_forgets_the_time_before() -> None:
    async with virtual_cluster(EMPTY, settle=0) as w:
        scripted = Scripted(w, [[RequeueAfter(5)], []])
        w.simulation.engine.add(scripted)
        w.simulation.engine.enqueue(scripted, "a")
        await w.forward(1)
        w.simulation.engine.enqueue(scripted, "a")
        await w.forward(100)
        assert scripted.asked == [0, 1]


async def test_what_fails_is_tried_again_with_growing_pauses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with virtual_cluster(EMPTY, settle=0) as w:
        scripted = Scripted(w, [ValueError("no"), ValueError("no"), ValueError("no")])
        w.simulation.engine.add(scripted)
        w.simulation.engine.enqueue(scripted, "a")
        await w.forward(100)
        assert scripted.asked == [0, 1, 3, 7]
        assert w.simulation.engine.failures == 3
    assert "failed to decide about a" in caplog.text


class Failing(Controller[str]):
    """Never manages anything."""

    name = "failing"
    storages = ()

    def decide(self, key: str) -> Plan:
        raise ValueError(key)


async def test_what_has_failed_for_days_is_still_tried_every_five_minutes() -> None:
    backend = await new_backend(LoopClock())
    engine = Engine(backend.store, ActionSink(backend), LoopClock())
    failing = Failing()
    engine.add(failing)
    engine.enqueue(failing, "a")
    await engine.run(until=300 * 1050)
    assert engine.failures > 1030


async def test_a_refused_write_is_tried_again_and_stops_nobody() -> None:
    async with virtual_cluster(EMPTY, settle=0) as w:
        bad = Create("pods", {"metadata": {"name": "p", "namespace": "default"}, "spec": {}})
        meta = {"name": "fine", "namespace": "default"}
        scripted = Scripted(w, [[bad], [Create(CONFIG_MAPS, {"metadata": meta})]])
        w.simulation.engine.add(scripted)
        w.simulation.engine.enqueue(scripted, "a")
        await w.forward(10)
        assert w.simulation.engine.refusals == 1
        assert w.get(CONFIG_MAPS, "fine") is not None


async def test_a_stopped_engine_returns() -> None:
    async with virtual_cluster(EMPTY, settle=0) as w:
        w.simulation.engine.stop()
        await w.simulation.run()
