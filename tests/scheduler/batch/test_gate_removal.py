"""No removal of a gate is lost, whatever the server says of the pod."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.base.clock import LoopClock
from bayplan.client.errors import NotFoundError, Status
from bayplan.kube.pods import Pod
from bayplan.scheduler.batch.gate_removal import GateRemoval, Ungated
from tests.builders import make_pod

pytestmark = pytest.mark.virtual


class LaggingServer:
    """A server that at first does not know of a pod."""

    def __init__(self, times: int) -> None:
        self.times = times

    async def ungate(self, pod: Pod) -> None:
        if self.times:
            self.times -= 1
            raise NotFoundError(Status(code=404), pod.key)

    async def read(self, pod: Pod) -> Pod | None:
        return pod


async def test_a_pod_that_is_said_to_be_gone_is_asked_for_until_the_watch_says_so_too() -> None:
    results: list[Ungated] = []
    clock = LoopClock()
    ungating = GateRemoval(LaggingServer(2), clock, lambda _, result: results.append(result))
    task = asyncio.ensure_future(ungating.run())
    pod, gone = make_pod("p").obj(), make_pod("gone").obj()
    ungating.start(pod)
    await clock.sleep(10)
    assert (results, len(ungating)) == ([Ungated.GONE, Ungated.GONE, Ungated.REMOVED], 0)
    ungating.start(gone)
    ungating.drop(gone.metadata.uid)
    await ungating.drain()
    task.cancel()
