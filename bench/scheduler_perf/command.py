"""`python -m bench scheduler-perf --from DIR [NAME…]`: upstream's workloads, one line each.

The API server, the scheduler and the load are processes of their own.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import uvloop

from bayplan.client import Client, ClientOptions
from bayplan.client.config import from_kubeconfig
from bayplan.client.errors import ClientError
from bayplan.scheduler.config import default_settings, read_settings
from bench.scheduler_perf.creation import ObjectCreator
from bench.scheduler_perf.posts import PostError
from bench.scheduler_perf.processes import Process, cluster, scheduler
from bench.scheduler_perf.progress import Measurement, PodSelection, Progress, Throughput
from bench.scheduler_perf.steps import Steps
from bench.scheduler_perf.workloads import (
    Operation,
    Workload,
    WorkloadError,
    read_workloads,
    select,
)

TUNING = ClientOptions(qps=1e6, burst=10**6, in_flight=256)


@dataclass(slots=True)
class ResourceUsage:
    """What a run took of the machine while it was measured."""

    scheduler: Process
    server: Process | None
    before: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    memory: float = 0.0
    load: float = 0.0

    def begin(self) -> None:
        """Look, before."""
        self.before = self._cpu()

    def end(self) -> None:
        """Look, after."""
        self.cpu = [now - then for now, then in zip(self._cpu(), self.before, strict=True)]
        self.memory = self.scheduler.memory
        self.load = os.getloadavg()[0]

    def _cpu(self) -> list[float]:
        own = sum(os.times()[:2])
        return [self.scheduler.cpu, self.server.cpu if self.server is not None else 0.0, own]


def main(arguments: Sequence[str]) -> int:
    """Run the workloads that are named, or upstream's own choice."""
    parser = argparse.ArgumentParser(prog="python -m bench scheduler-perf", description=__doc__)
    parser.add_argument("--from", dest="checkout", type=Path, required=True,
                        help="a checkout of Kubernetes")  # fmt: skip
    parser.add_argument("names", nargs="*", help="e.g. misc, SchedulingBasic/5000Nodes_10000Pods")
    asked = parser.parse_args(arguments)
    try:
        workloads = select(read_workloads(asked.checkout), asked.names)
    except WorkloadError as error:
        print(error, file=sys.stderr)
        return 1
    for workload in workloads:
        print(msgspec.json.encode(_line(workload)).decode(), flush=True)
    return 0


def _line(workload: Workload) -> dict[str, object]:
    if workload.left_out:
        return {"workload": workload.name, "left out": workload.left_out}
    try:
        measured, taken = uvloop.run(run(workload))
    except TimeoutError:
        return {"workload": workload.name, "failed": "pods were left without a node"}
    except (ClientError, PostError, ExceptionGroup) as error:
        return {"workload": workload.name, "failed": str(error)}
    return {
        "workload": workload.name,
        "pods": measured.pods,
        "seconds": round(measured.seconds, 2),
        "pods/s": round(measured.average, 1),
        "overall": round(measured.overall, 1),
        "threshold": workload.threshold,
        "times": round(measured.average / workload.threshold, 2) if workload.threshold else None,
        **shown(measured, taken),
    }


def shown(measured: Throughput, taken: ResourceUsage) -> dict[str, object]:
    """How long pods waited, and what it took."""
    of_scheduler, of_server, of_load = (round(one, 2) for one in taken.cpu)
    return {
        "alone": round(measured.alone(taken.cpu), 1),
        "p50": _rounded(measured.wait(0.5)),
        "p99": _rounded(measured.wait(0.99)),
        "scheduler cpu": of_scheduler,
        "server cpu": of_server,
        "load cpu": of_load,
        "scheduler MiB": round(taken.memory),
        "load average": round(taken.load, 1),
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


async def backlog(nodes: int, pods: int) -> tuple[Throughput, ResourceUsage]:
    """Pods that are there before the scheduler: from its start to the last pod's node."""
    here, name = Path(), default_settings().profiles[0].name
    workload = Workload("backlog", ())
    async with (
        cluster() as (kubeconfig, server),
        Client(from_kubeconfig([kubeconfig]), TUNING) as load,
    ):
        creator, progress = ObjectCreator(load, workload, name), Progress(load)
        await creator.nodes(0, Operation("createNodes", {"count": nodes}, here))
        await creator.namespace("backlog")
        making = Operation("createPods", {"count": pods}, here)
        bodies = creator.bodies(making, "backlog")
        await creator.pods(bodies, "backlog", lambda _uid, _moment: None)
        measurement = Measurement(progress, PodSelection(frozenset({"backlog"})))
        async with scheduler(kubeconfig) as scheduling:
            taken = ResourceUsage(scheduling, server)
            taken.begin()
            await progress.until_bound("backlog", pods)
            taken.end()
        await progress.close()
        return await measurement.end(), taken


async def steady(nodes: int, pods: int, rate: float) -> Throughput:
    """Pods that come one by one, so many a second, while the scheduler is at work."""
    here, name = Path(), default_settings().profiles[0].name
    async with (
        cluster() as (kubeconfig, _),
        scheduler(kubeconfig),
        Client(from_kubeconfig([kubeconfig]), TUNING) as load,
    ):
        creator, progress = ObjectCreator(load, Workload("steady", ()), name), Progress(load)
        await creator.nodes(0, Operation("createNodes", {"count": nodes}, here))
        await creator.namespace("steady")
        making = Operation("createPods", {"count": pods}, here)
        measurement = Measurement(progress, PodSelection(frozenset({"steady"})))
        await creator.pods_at_rate(making, "steady", measurement.sent, rate)
        await progress.until_bound("steady", pods)
        await progress.close()
        return await measurement.end()


async def run(workload: Workload) -> tuple[Throughput, ResourceUsage]:
    """One run of a workload."""
    config = workload.scheduler_config
    settings = read_settings(config) if config is not None else default_settings()
    async with (
        cluster() as (kubeconfig, server),
        scheduler(kubeconfig, config) as scheduling,
        Client(from_kubeconfig([kubeconfig]), TUNING) as load,
    ):
        taken = ResourceUsage(scheduling, server)
        steps = Steps(load, workload, settings.profiles[0].name)
        steps.begun, steps.ended = taken.begin, taken.end
        return await steps.run(), taken
