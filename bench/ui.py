"""The page's server on a large cluster: 5,000 nodes, 100,000 pods, 2,000 more that wait.

    python -m bench.ui

From the cluster being known to the whole state in a client's hands; what the state weighs; how many
changes a second reach a client, how late and in how many bytes; how long the event loop is held
meanwhile. Then the same from an API server (`bench.ui_live`), and hours of changes one after the
other (`bench.ui_hours`). Each is a process of its own, so that its memory is its own.

A loop is held by what its thread does until others have their turn (in milliseconds of the
processor), and by whatever else the machine does meanwhile: `held` is the first, `late` both.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from statistics import median

import aiohttp

from bayplan.base.clock import WallClock
from bayplan.client import Change
from bayplan.fit import Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.observe import Observer
from bayplan.ui.encoder import PageSource
from bayplan.ui.page import ClusterPage
from bayplan.ui.picture.picture import Picture
from bayplan.ui.server import PageServerOptions, serve
from bench.clusters import csinodes, nodes
from bench.measure import Result, peak_memory
from tests.builders import make_pod

NODES, PODS, WAITING, KINDS = 5000, 100_000, 2000, 40
RATE, SECONDS = 2000, 10
"""Changes a second that happen, and for how long."""
LOOK = 0.005
Figures = dict[str, tuple[float, str]]


def cases() -> Iterator[Result]:
    """What the process of its own prints."""
    for module, prefix in (("ui", "ui"), ("ui_live", "ui/live"), ("ui_hours", "ui/hours")):
        command = [sys.executable, "-m", f"bench.{module}"]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603
        for case, (value, unit) in json.loads(printed).items():
            yield Result(f"{prefix}/{case}", value, unit)


def _pod(number: int, node: str = "", *, phase: str = "Running") -> Pod:
    kind = number % KINDS
    pod = make_pod(f"app-{kind}-{number}", f"team-{kind % 10}").cpu(f"{100 + 10 * kind}m")
    pod.memory("256Mi").labels(app=f"app-{kind}").owner("ReplicaSet", f"app-{kind}").priority(0)
    return (pod.node(node).phase(phase) if node else pod).obj()


def objects() -> list[KubeObject]:
    placed = [_pod(number, f"node-{number % NODES}") for number in range(PODS)]
    waiting = [
        make_pod(f"big-{number}", "batch")
        .cpu(f"{40 + number % KINDS}")
        .owner("Job", f"big-{number % KINDS}")
        .obj()
        for number in range(WAITING)
    ]
    return [*nodes(NODES), *csinodes(NODES), *placed, *waiting]


class LoopMonitor:
    """How long the event loop was held at the most, in milliseconds: by its own thread, and by
    the clock.
    """

    def __init__(self) -> None:
        self.most = self.latest = 0.0

    async def watch(self) -> None:
        """Look every few milliseconds."""
        while True:
            began, busy = time.perf_counter(), time.thread_time()
            await asyncio.sleep(LOOK)
            self.most = max(self.most, (time.thread_time() - busy) * 1000)
            self.latest = max(self.latest, (time.perf_counter() - began - LOOK) * 1000)

    def take(self, case: str, found: Figures) -> None:
        """Write down what was seen so far, and begin anew."""
        found[f"{case}/held"] = (self.most, "ms of the processor")
        found[f"{case}/late"] = (self.latest, "ms")
        self.most = self.latest = 0.0


async def measure() -> dict[str, tuple[float, str]]:
    """All figures."""
    observer = Observer(Snapshot(objects()))
    clock, found, held = WallClock(), Figures(), LoopMonitor()
    pods = [_pod(number, f"node-{number % NODES}") for number in range(RATE * SECONDS)]
    watching = asyncio.create_task(held.watch())
    start, busy = time.perf_counter(), time.process_time()
    page = ClusterPage(
        Picture(observer.snapshot, clock.now), PageSource("live", "bench", live=True), clock
    )
    observer.listen(page.picture.hear)
    async with (
        page.running(),
        serve(page, PageServerOptions()) as url,
        aiohttp.ClientSession(url, auto_decompress=False) as session,
    ):
        body = await state(session)
        found["first/seconds"] = (time.perf_counter() - start, "s")
        found["first/core-seconds"] = (time.process_time() - busy, "s")
        held.take("first", found)
        found["state/bytes"] = (len(zlib.decompress(body, 31)), "bytes")
        found["state/gzip"] = (len(body), "bytes")
        seq = json.loads(zlib.decompress(body, 31))["seq"]
        await asyncio.sleep(2 * LOOK)
        held.take("reading", {})
        await _changes(session, seq, observer, pods, found)
        held.take("changes", found)
    watching.cancel()
    found["memory"] = (peak_memory(), "MiB")
    return found


async def state(session: aiohttp.ClientSession) -> bytes:
    """The whole state, as it is sent."""
    async with session.get("api/state", headers={"Accept-Encoding": "gzip"}) as answer:
        return await answer.read()


async def _changes(
    session: aiohttp.ClientSession,
    seq: int,
    observer: Observer,
    pods: list[Pod],
    found: Figures,
) -> None:
    """Let pods change at a steady pace, and see when and how they reach a client."""
    made: dict[str, float] = {}
    late: list[float] = []
    sent = 0
    all_read = asyncio.Event()
    reading = asyncio.create_task(_read(session, seq, made, late, all_read))
    await asyncio.sleep(1.0)
    began = time.perf_counter()
    while sent < len(pods):
        due = min(len(pods), int((time.perf_counter() - began) * RATE) + 1)
        for number in range(sent, due):
            old = pods[number]
            new = _pod(number, f"node-{number % NODES}", phase="Pending")
            made[old.key] = time.perf_counter()
            observer.handle(Change("updated", old=old, new=new))
        sent = due
        await asyncio.sleep(0.005)
    await all_read.wait()
    took = time.perf_counter() - began
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    found["changes/rate"] = (len(pods) / took, "changes/s")
    found["changes/latency"] = (median(late) * 1000, "ms")
    found["changes/latency-99"] = (sorted(late)[int(len(late) * 0.99)] * 1000, "ms")
    found["changes/bytes"] = (_read_bytes[0] / len(pods), "bytes a change")


_read_bytes = [0]


async def _read(
    session: aiohttp.ClientSession,
    seq: int,
    made: dict[str, float],
    late: list[float],
    all_read: asyncio.Event,
) -> None:
    async with session.get("api/stream", params={"after": str(seq)}) as answer:
        buffer = b""
        async for chunk in answer.content.iter_any():
            _read_bytes[0] += len(chunk)
            buffer += chunk
            *events, buffer = buffer.split(b"\n\n")
            now = time.perf_counter()
            for event in events:
                data = event.partition(b"data: ")[2]
                pods = json.loads(data).get("set", {}).get("pods", ()) if data else ()
                late.extend(now - made.pop(row[0]) for row in pods if row[0] in made)
            if len(late) == RATE * SECONDS:
                all_read.set()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
