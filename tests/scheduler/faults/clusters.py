"""A cluster in virtual time, schedulers on wires that fail, and what must be true in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random

from bayplan.base.clock import Clock
from bayplan.client import Access, Client, Untyped
from bayplan.client.daemon import elect
from bayplan.client.election import LeadershipLostError
from bayplan.embedded.apiserver.request import ADMIN
from bayplan.embedded.inprocess import InProcessTransport
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.lab import VirtualLab
from bayplan.scheduler.config import SchedulerSettings, default_settings
from bayplan.scheduler.daemon import SchedulerDaemon
from bayplan.scheduler.queue import SubQueue
from tests.scheduler.faults.truth import Truth
from tests.scheduler.faults.wire import Fault, FaultyWire, Plan

NODES, CPU, PODS, VOLUMES = 3, 4, 16, 3
CLUSTER = f"""
seed: 5
csiDrivers: [{{name: disk.example.com, topologyKey: "", provision: 2s, attach: 1s}}]
storageClasses: [{{name: disks, driver: disk.example.com, binding: WaitForFirstConsumer}}]
instanceTypes: [{{name: a, cpu: {CPU}, memory: 64Gi, pods: {PODS}}}]
nodeGroups:
  - name: n
    instanceType: a
    count: {NODES}
    start: 0.1
    drivers: [{{name: disk.example.com, limit: {VOLUMES}, delay: 1s}}]
"""
QUIET = 450.0
"""Seconds after the last fault within which everything must have come to rest: more than the
longest wait of the queue and the longest back-off together.
"""


class Replica:
    """One scheduler with a wire of its own."""

    def __init__(
        self,
        lab: VirtualLab,
        faults: Iterable[Fault],
        seed: int,
        clock: Clock,
        garbled: Mapping[bytes, bytes] | None = None,
    ) -> None:
        plan = Plan(lab.clock, Random(f"faults {seed}"), list(faults))
        self.wire = FaultyWire(InProcessTransport(lab.plane, ADMIN), plan, garbled)
        access = Access("https://in.process")
        rng = Random(seed)
        self.client = Client(access, transport=self.wire, clock=clock, rng=rng)
        self.daemon: SchedulerDaemon
        self.task: asyncio.Task[None]

    def start(self, settings: SchedulerSettings, *, elected: str = "") -> None:
        """Begin to schedule, or to stand for election."""
        self.daemon = SchedulerDaemon(settings)
        lead = self.daemon.lead
        work = elect(lead, "bayplan-scheduler")(self.client, elected) if elected else None
        self.task = asyncio.ensure_future(work if work is not None else lead(self.client))

    async def stop(self) -> None:
        """End in order."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def kill(self) -> None:
        """End without another word to anybody."""
        self.wire.is_dead = True
        await self.stop()


class FaultyCluster:
    """A cluster, its schedulers, and its API server's own record."""

    def __init__(self, lab: VirtualLab) -> None:
        self.lab = lab
        self.client = lab.client()
        self.truth = Truth(CPU, PODS, VOLUMES)
        lab.plane.store.listeners.append(self.truth.observe)
        self.replicas: list[Replica] = []

    def replica(
        self,
        *faults: Fault,
        settings: SchedulerSettings | None = None,
        elected: str = "",
        clock: Clock | None = None,
        garbled: Mapping[bytes, bytes] | None = None,
    ) -> Replica:
        """Start a scheduler whose requests meet these faults, and whose answers are garbled so."""
        clock = clock or self.lab.clock
        made = Replica(self.lab, faults, len(self.replicas) + 1, clock, garbled)
        made.start(settings or default_settings(["bayplan"]), elected=elected)
        self.replicas.append(made)
        return made

    async def create(self, *objects: Untyped) -> None:
        """Make objects, past all faults."""
        for one in objects:
            await self.client.create(one)

    async def forward(self, seconds: float) -> None:
        """Let time go by; a scheduler that failed meanwhile is an error."""
        await self.lab.forward(seconds)
        for one in self.replicas:
            if one.task.done() and not one.task.cancelled():
                with suppress(LeadershipLostError):
                    one.task.result()

    async def settle(self) -> None:
        """Let everything come to rest, and check that it has."""
        await self.forward(QUIET)
        assert self.truth.wrongs == []
        assert {uid: n for uid, n in self.truth.binds.items() if n != 1} == {}
        for one in self.replicas:
            if not one.wire.is_dead:
                check_at_rest(one)


def check_at_rest(one: Replica) -> None:
    """Nothing is assumed, nobody who has a place waits, nothing is kept for nobody."""
    scheduler, live = one.daemon.scheduler, one.daemon.live
    if scheduler is None or live is None:
        return
    assert live.snapshot.assumptions() == []
    placed = [entry.pod.key for entry in scheduler.queue if entry.pod.spec.node_name]
    assert placed == []
    assert scheduler.queue.count(SubQueue.IN_FLIGHT) == 0
    assert scheduler.queue.events_kept == 0
    assert scheduler.binder.under_way == 0
    assert len(scheduler.preemptions) == 0


@asynccontextmanager
async def faulty_cluster() -> AsyncIterator[FaultyCluster]:
    """A cluster that leaves no task behind."""
    others = asyncio.all_tasks()
    async with VirtualLab(parse_cluster(CLUSTER.encode(), "cluster.yaml", Path())) as lab:
        made = FaultyCluster(lab)
        await lab.forward(10)
        try:
            yield made
        finally:
            for one in made.replicas:
                await one.stop()
                await one.client.close()
        running = {task for task in asyncio.all_tasks() - others if "scheduler" in repr(task)}
        assert running == set()


def pod(name: str, cpu: str = "100m", *claims: str, **spec: object) -> Untyped:
    """A pod of ours."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    volumes = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": claim}}
        for number, claim in enumerate(claims)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": name},
        "spec": {
            "schedulerName": "bayplan",
            "containers": [container],
            "volumes": volumes,
            **spec,
        },
    }


def claim(name: str) -> Untyped:
    """A claim that waits for its first consumer."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "default", "name": name},
        "spec": {
            "storageClassName": "disks",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
