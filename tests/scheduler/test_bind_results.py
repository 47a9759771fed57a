"""A bound pod that does not come back through the watch is looked up, until somebody answers."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from bayplan.base.clock import LoopClock
from bayplan.client.errors import UnreachableError
from bayplan.fit import Assumption, Snapshot
from bayplan.kube.pods import Pod
from bayplan.scheduler.bind_results import SEEN_WITHIN, BindResults
from bayplan.scheduler.binding import BindJob, Gone
from bayplan.scheduler.config import default_settings
from bayplan.scheduler.context import Recorders, SchedulerContext
from bayplan.scheduler.metrics import SchedulerMetrics
from bayplan.scheduler.queue import SubQueue
from bayplan.scheduler.status_patcher import StatusPatcher
from tests.builders import make_node, make_pod

pytestmark = pytest.mark.virtual


Answer = Pod | None | UnreachableError


class BoundPodFixture:
    """A pod that was decided and bound, and that nobody has seen since."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.pod = make_pod("p").scheduler("bayplan").uid("u").obj()
        self.snapshot = Snapshot([make_node("n").obj(), self.pod])
        self.clock = LoopClock()
        told = Recorders({}, SchedulerMetrics(CollectorRegistry()))
        settings, statuses = default_settings(), StatusPatcher(nothing_written)
        self.context = SchedulerContext(self.snapshot, settings, statuses, told, self.clock)
        self.assumption = self._bind()

    def _bind(self) -> Assumption:
        self.context.enqueue(self.pod)
        entry = self.context.queue.pop(0.0)
        assert entry is not None
        assumption = self.snapshot.assume(self.pod, self.snapshot.decide(self.pod))
        self.context.queue.done(entry)
        self.snapshot.finish_binding(assumption, SEEN_WITHIN)
        return assumption

    async def read(self, pod: Pod) -> Pod | None:
        answer = self.answers.pop(0)
        if isinstance(answer, UnreachableError):
            raise answer
        return answer

    async def wait(self, seconds: float) -> None:
        task = asyncio.ensure_future(BindResults(self.context, self.read).look_after())
        await self.clock.sleep(seconds)
        task.cancel()


async def test_a_failed_look_is_repeated_and_the_room_kept_meanwhile() -> None:
    it = BoundPodFixture(UnreachableError("no route"), UnreachableError("no route"), None)
    await it.wait(SEEN_WITHIN + 20)
    assert it.snapshot.assumptions() == [it.assumption]
    await it.wait(SEEN_WITHIN)
    assert (it.answers, it.snapshot.assumptions()) == ([], [])
    assert it.context.queue.count(SubQueue.BACKOFF) == 1  # until the watch too says that it is gone


async def test_a_pod_that_was_not_bound_after_all_is_tried_again() -> None:
    it = BoundPodFixture()
    it.answers.append(it.pod)
    await it.wait(SEEN_WITHIN + 1)
    assert it.snapshot.assumptions() == []
    assert it.context.queue.count(SubQueue.BACKOFF) == 1


async def test_a_pod_that_is_bound_is_taken_as_seen() -> None:
    it = BoundPodFixture()
    it.answers.append(replace(it.pod, spec=replace(it.pod.spec, node_name="n")))
    await it.wait(SEEN_WITHIN + 1)
    assert it.snapshot.assumptions() == []
    assert [pod.name for pod in it.snapshot.pods_on("n")] == ["p"]
    assert len(it.context.queue) == 0


async def nothing_written(_: Pod, __: dict[str, object]) -> None:
    """Nobody reads what is said here."""


async def test_who_is_said_to_be_gone_is_tried_again_after_its_rest_whatever_else_happens() -> None:
    it = BoundPodFixture()
    entry = it.context.queue.get("u")
    assert entry is not None
    it.context.wakeup.clear()
    BindResults(it.context, it.read).ended(
        BindJob(entry, it.pod, "n", it.assumption, 0.0, 0.0), Gone()
    )
    assert it.context.wakeup.is_set()
