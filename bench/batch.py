"""Queues end to end: server with simulated nodes, scheduler and load as processes of their own.

- 10,000 Jobs of one gated pod each, in 20 queues, on 500 nodes: from the first that is created to
  the last that runs.
- 200 gangs of 50 pods, likewise.
- 5,000 queues with pending pods in each leaf, which cost nothing: see `bench.pending_queues`.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
import uvloop

from bayplan.client import Change, Client, ClientOptions, Informer, Selection, Untyped
from bayplan.client.config import from_kubeconfig
from bayplan.client.errors import NotFoundError
from bayplan.deploy.crds import QUEUEING, definition
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.volcano import QUEUE_SCHEDULING_GATE, PodGroup, Queue
from bench import pending_queues
from bench.measure import Result
from bench.scheduler_perf.creation import many
from bench.scheduler_perf.posts import post
from bench.scheduler_perf.processes import running, scheduler
from bench.scheduler_perf.progress import WATCHED_PODS, WatchedPod

NODES, QUEUES = 500, 20
JOBS, GANGS, GANG = 10_000, 200, 50
LONGEST = 900.0
PAUSE = 0.2
SETTLES = 3.0
"""Seconds until the last statuses of groups and queues are written."""
TUNING = ClientOptions(qps=1e6, burst=10**6, in_flight=256)
API = "scheduling.volcano.sh/v1beta1"
CLUSTER = f"""
seed: 1
instanceTypes: [{{name: large, cpu: 32, memory: 128Gi, pods: 110}}]
nodeGroups: [{{name: n, instanceType: large, count: {NODES}, start: 0.1}}]
"""
_VERBS = ("POST", "PUT", "PATCH", "DELETE")
_encode = msgspec.json.Encoder().encode


def cases() -> Iterator[Result]:
    """Every figure, as it is measured."""
    yield from pending_queues.cases()
    loads: dict[str, Load] = {"jobs": Jobs(), "gangs": Gangs()}
    for name, load in loads.items():
        measured = uvloop.run(run(load))
        yield Result(f"batch/{name}/seconds", measured.seconds, "s")
        yield Result(f"batch/{name}/pods", measured.pods / measured.seconds, "1/s")
        yield Result(f"batch/{name}/writes", measured.writes / measured.pods, "a pod")
        yield Result(f"batch/{name}/cpu", measured.cpu, "s")


@dataclass(frozen=True, slots=True)
class BatchRun:
    """What a run came to."""

    pods: int
    seconds: float
    writes: float
    """Requests of the scheduler that change something."""
    cpu: float
    """Seconds of processor time that the scheduler took."""


class Load(Protocol):
    """What is made."""

    pods: int
    made: int
    """How many objects it makes itself while it is measured."""

    async def prepare(self, client: Client) -> None:
        """Make what the pods need."""
        ...

    async def make(self, client: Client) -> None:
        """Make the pods, or who makes them."""
        ...


class Jobs:
    """Jobs of one pod each."""

    pods = made = JOBS

    async def prepare(self, client: Client) -> None:
        """They need nothing but queues."""

    async def make(self, client: Client) -> None:
        """Make the Jobs."""
        path = "/apis/batch/v1/namespaces/default/jobs"
        await post(client, path, (_encode(_job(number)) for number in range(JOBS)), _heard)


class Gangs:
    """Gangs of pods that name their groups."""

    pods = made = GANGS * GANG

    async def prepare(self, client: Client) -> None:
        """Make the groups."""

        async def make(number: int) -> None:
            spec = {"queue": f"q{number % QUEUES}", "minMember": GANG}
            meta = {"namespace": "default", "name": f"g{number}"}
            made: Untyped = {"apiVersion": API, "kind": "PodGroup", "metadata": meta, "spec": spec}
            await client.create(made)

        await many(GANGS, make)

    async def make(self, client: Client) -> None:
        """Make the pods, gang by gang."""
        bodies = (_encode(_member(number)) for number in range(self.pods))
        await post(client, "/api/v1/namespaces/default/pods", bodies, _heard)


async def run(load: Load) -> BatchRun:
    """One run."""
    async with _cluster() as (kubeconfig, client):
        await _install(client)
        await load.prepare(client)
        async with scheduler(kubeconfig) as process, _counting(client) as count:
            before, cpu = await _writes(client), process.cpu
            began = time.perf_counter()
            await load.make(client)
            await count.until(load.pods)
            seconds, cpu = time.perf_counter() - began, process.cpu - cpu
            await asyncio.sleep(SETTLES)
            writes = await _writes(client) - before - load.made
            return BatchRun(load.pods, seconds, writes, cpu)


@asynccontextmanager
async def _cluster() -> AsyncIterator[tuple[Path, Client]]:
    """An API server with simulated nodes around it, and a client."""
    with tempfile.TemporaryDirectory() as folder:
        file, kubeconfig = Path(folder) / "cluster.yaml", Path(folder) / "kubeconfig"
        file.write_text(CLUSTER, "utf-8")
        options = ("--filename", str(file), "--kubeconfig", str(kubeconfig))
        async with (
            running("up", *options, ready="export KUBECONFIG"),
            Client(from_kubeconfig([kubeconfig]), TUNING) as client,
        ):
            await _until_ready(client)
            yield kubeconfig, client


async def _until_ready(client: Client) -> None:
    async with asyncio.timeout(LONGEST):
        while True:
            nodes = (await client.list(Node)).items
            if len(nodes) == NODES and not any(one.spec.taints for one in nodes):
                return
            await asyncio.sleep(PAUSE)


async def _install(client: Client) -> None:
    """Have the server serve queues, and make them."""
    for name in QUEUEING:
        await client.create(definition(name))
    for kind in (Queue, PodGroup):
        await _until_served(client, kind)
    for number in range(QUEUES):
        spec = {"capability": {"cpu": str(NODES * 32 // QUEUES)}}
        made = {"apiVersion": API, "kind": "Queue", "metadata": {"name": f"q{number}"}}
        await client.create({**made, "spec": spec})


async def _until_served(client: Client, kind: type[KubeObject]) -> None:
    while True:
        try:
            await client.list(kind)
        except NotFoundError:
            await asyncio.sleep(PAUSE)
        else:
            return


class _Count:
    """How many pods run."""

    def __init__(self) -> None:
        self._running = 0
        self._news = asyncio.Event()

    def count_pod(self, change: Change[WatchedPod]) -> None:
        """A pod runs, or has changed."""
        if change.type == "added":
            self._running += 1
            self._news.set()

    async def until(self, pods: int) -> None:
        """Wait until so many run."""
        async with asyncio.timeout(LONGEST):
            while self._running < pods:
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def _counting(client: Client) -> AsyncIterator[_Count]:
    count, pods = _Count(), Informer(client, WATCHED_PODS, Selection(fields="status.phase=Running"))
    pods.on_change(count.count_pod)
    following = asyncio.ensure_future(pods.run())
    try:
        await pods.synced.wait()
        yield count
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _writes(client: Client) -> float:
    """How many requests have changed something, but for leases."""
    total = 0.0
    for line in (await client.raw("/metrics")).decode().splitlines():
        counts = line.startswith("apiserver_request_total{") and 'resource="leases"' not in line
        if counts and any(f'verb="{verb}"' in line for verb in _VERBS):
            total += float(line.rpartition(" ")[2])
    return total


def _job(number: int) -> Untyped:
    pod = _template({"scheduling.volcano.sh/queue-name": f"q{number % QUEUES}"})
    kind = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"j{number}"}}
    return {**kind, "spec": {"template": pod}}


def _member(number: int) -> Untyped:
    gang, index = divmod(number, GANG)
    pod = _template({"scheduling.k8s.io/group-name": f"g{gang}"})
    meta = pod["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        **pod,
        "metadata": {**meta, "name": f"g{gang}-{index}"},
    }


def _template(annotations: dict[str, str]) -> dict[str, Untyped]:
    requests = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return {
        "metadata": {"annotations": {**annotations, QUEUE_SCHEDULING_GATE: "true"}},
        "spec": {
            "schedulerName": "bayplan",
            "restartPolicy": "Never",
            "schedulingGates": [{"name": QUEUE_SCHEDULING_GATE}],
            "containers": [{"name": "c", "image": "i", "resources": requests}],
        },
    }


def _heard(_uid: str, _moment: float) -> None:
    """That one is made is all that counts."""
