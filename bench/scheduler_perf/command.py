"""`python -m bench scheduler-perf --from DIR [NAME…]`: upstream's workloads, one line each."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from bayplan.client import Client, Tuning
from bayplan.client.config import from_kubeconfig
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.scheduler.config import default_settings, read_settings
from bayplan.scheduler.config.settings import SchedulerSettings
from bayplan.scheduler.daemon import SchedulerDaemon
from bench.scheduler_perf.steps import Steps, Throughput
from bench.scheduler_perf.workloads import Workload, WorkloadError, read_workloads, select

TUNING = Tuning(qps=1e6, burst=10**6, in_flight=256)


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
        measured = asyncio.run(_run(workload))
    except TimeoutError:
        return {"workload": workload.name, "failed": "pods were left without a node"}
    return {
        "workload": workload.name,
        "pods": measured.pods,
        "seconds": round(measured.seconds, 2),
        "pods/s": round(measured.average, 1),
        "threshold": workload.threshold,
        "times": round(measured.average / workload.threshold, 2) if workload.threshold else None,
    }


async def _run(workload: Workload) -> Throughput:
    async with _cluster() as kubeconfig:
        access = from_kubeconfig([kubeconfig])
        async with Client(access, TUNING) as load, Client(access, TUNING) as own:
            settings = _settings(workload)
            daemon = SchedulerDaemon(settings)
            leading = asyncio.ensure_future(daemon.lead(own))
            try:
                await daemon.ready.wait()
                return await Steps(load, workload, settings.profiles[0].name).run()
            finally:
                leading.cancel()
                await asyncio.gather(leading, return_exceptions=True)


def _settings(workload: Workload) -> SchedulerSettings:
    if workload.scheduler_config is not None:
        return read_settings(workload.scheduler_config)
    return default_settings()


@asynccontextmanager
async def _cluster() -> AsyncIterator[Path]:
    """An embedded server of the run's own, or the cluster that KUBECONFIG_E2E names."""
    if named := os.environ.get("KUBECONFIG_E2E"):
        yield Path(named)
        return
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        async with ApiServer(ServerConfig(kubeconfig=kubeconfig)):
            yield kubeconfig
