"""Over HTTPS: API servers that are stopped and started again, and leaders that vanish."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from bayplan.base.clock import WallClock
from bayplan.client import Access, Client
from bayplan.client.config import from_kubeconfig
from bayplan.client.daemon import elect
from bayplan.client.wire.http import HttpTransport
from bayplan.kube.pods import Pod
from bayplan.scheduler.config import default_settings
from bayplan.scheduler.daemon import SchedulerDaemon
from tests.patience import PATIENCE
from tests.scheduler.faults.wire import FaultyWire, Plan
from tests.scheduler.running_scheduler import RunningScheduler, node, pod, scheduling

pytestmark = pytest.mark.whole


COMMAND = str(Path(sys.executable).with_name("bayplan"))
NODES, EACH = 3, 4
HASTE = 10.0


class HastyClock(WallClock):
    """The machine's own time, ten times as fast, so that back-offs and leases take tenths."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start."""
        return super().monotonic() * HASTE

    async def sleep(self, seconds: float) -> None:
        """Return after a tenth of that."""
        await super().sleep(seconds / HASTE)


@asynccontextmanager
async def hasty(access: Access, wire: FaultyWire | None = None) -> AsyncIterator[Client]:
    """A client that does not wait long before it tries again."""
    async with Client(access, clock=HastyClock(), transport=wire) as made:
        yield made


@asynccontextmanager
async def served(folder: Path, listen: str = "127.0.0.1:0") -> AsyncIterator[Access]:
    """An API server as a process of its own, which is killed in the end; its data stay."""
    kubeconfig = folder / "kubeconfig"
    options = ("--data", str(folder / "data.db"), "--kubeconfig", str(kubeconfig))
    process = await asyncio.create_subprocess_exec(
        COMMAND, "apiserver", "--listen", listen, *options, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert b"serving" in await process.stdout.readline()
        yield from_kubeconfig([kubeconfig])
    finally:
        process.kill()
        await process.wait()


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something that must come true."""
    async with asyncio.timeout(PATIENCE):
        while not await holds():  # noqa: ASYNC110 - there is nobody to tell us
            await asyncio.sleep(0.05)


async def placed(client: Client) -> Counter[str]:
    """How many pods each node has."""
    pods = (await client.list(Pod, "default")).items
    return Counter(one.spec.node_name for one in pods if one.spec.node_name)


async def all_are_full(client: Client) -> bool:
    return await placed(client) == {f"n{number}": EACH for number in range(NODES)}


async def at_rest(it: RunningScheduler) -> bool:
    """Nothing is assumed, and only the pod waits for which there is no room."""
    return not it.live.snapshot.assumptions() and len(it.scheduler.queue) == 1


async def fill(client: Client, first: int, last: int) -> None:
    for number in range(first, last):
        await client.create(pod("default", f"p{number}", "1"))


async def test_pods_are_placed_once_though_the_server_is_killed(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        async with served(tmp_path) as access, Client(access) as client:
            for number in range(NODES):
                await client.create(node(f"n{number}", str(EACH)))
            ours = await stack.enter_async_context(hasty(access))
            it = await stack.enter_async_context(scheduling(ours))
            await fill(client, 0, 6)
        listen = access.server.removeprefix("https://")
        async with served(tmp_path, listen), Client(access) as client:
            await fill(client, 6, NODES * EACH + 1)
            await until(lambda: all_are_full(client))
            await until(lambda: at_rest(it))
            await stack.aclose()


async def test_the_next_leader_takes_over_from_one_that_vanished(tmp_path: Path) -> None:
    async with served(tmp_path) as access:
        wire = FaultyWire(HttpTransport(access, 10.0), Plan(HastyClock(), Random(1)))
        async with Client(access) as client, hasty(access, wire) as first, hasty(access) as second:
            for number in range(NODES):
                await client.create(node(f"n{number}", str(EACH)))
            one, two = (SchedulerDaemon(default_settings(["bayplan"])) for _ in range(2))
            leading = asyncio.ensure_future(elect(one.lead, "s")(first, "one"))
            await one.ready.wait()
            waiting = asyncio.ensure_future(elect(two.lead, "s")(second, "two"))
            await fill(client, 0, EACH)
            wire.is_dead = True  # nothing of it reaches the server any more
            await fill(client, EACH, NODES * EACH + 1)
            await until(lambda: all_are_full(client))
            assert two.scheduler is not None
            for task in (leading, waiting):
                task.cancel()
            await asyncio.gather(leading, waiting, return_exceptions=True)
