"""A simulated day, and a cluster on the wall clock.

The day: 200 nodes; 5,000 jobs of one pod each arrive at random, run for ten minutes to an hour,
end, and are collected; a tenth of the pods have a volume of their own. Pods are placed first-fit,
by count. It is run twice in the same process: the digests of the two logs must be the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.simulation.clusterfile import ClusterSpec, parse_cluster
from bayplan.lab import LiveLab, VirtualLab, run_virtually
from bench.measure import Result
from tests.embedded.simulation.first_fit import FirstFit

DAY = 24 * 3600.0
NODES = 200
PODS = 5000

_CLUSTER = """
seed: 7
csiDrivers: [{name: disk.csi.example.com}]
storageClasses: [{name: standard, driver: disk.csi.example.com, default: true}]
instanceTypes: [{name: large, cpu: 32, memory: 128Gi, price: 1.5}]
nodeGroups:
  - name: workers
    instanceType: large
    count: %(nodes)d
    zones: [zone-a, zone-b, zone-c]
    drivers: [{name: disk.csi.example.com, limit: 25}]
faults:
  - {kind: node-dies, node: workers-7, at: 6h, for: 30m}
  - {kind: node-flaps, node: workers-9, at: 12h, for: 10m}
workloads:
  - arrivals: {count: %(plain)d, over: 22h}
    manifest: %(job)s
  - arrivals: {count: %(stored)d, over: 22h}
    manifest: %(stored_job)s
"""
_JOB = (
    "{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {ttlSecondsAfterFinished: 300, "
    "template: {metadata: {annotations: {simulation.bayplan.io/runs-for: %s}}, "
    "spec: {restartPolicy: Never, containers: [{name: work, image: work}]%s}}}}"
)
_VOLUME = (
    ", volumes: [{name: data, ephemeral: {volumeClaimTemplate: {spec: {accessModes: "
    "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]"
)
_WALL = """
instanceTypes: [{name: large, cpu: 32, memory: 128Gi}]
nodeGroups: [{name: workers, instanceType: large, count: %(nodes)d, start: 1s}]
workloads:
  - manifest:
      apiVersion: apps/v1
      kind: ReplicaSet
      metadata: {name: many}
      spec:
        replicas: %(pods)d
        selector: {matchLabels: {app: many}}
        template:
          metadata: {labels: {app: many}}
          spec: {containers: [{name: c, image: i}]}
"""


def day(nodes: int = NODES, pods: int = PODS) -> ClusterSpec:
    """The cluster of the simulated day."""
    stored = pods // 10
    text = _CLUSTER % {
        "nodes": nodes,
        "plain": pods - stored,
        "stored": stored,
        "job": _JOB % ("plain", "30m", ""),
        "stored_job": _JOB % ("stored", "1h", _VOLUME),
    }
    return parse_cluster(text.encode(), "day.yaml", Path())


async def run_day(spec: ClusterSpec, seconds: float = DAY) -> tuple[str, int, int]:
    """Run it; returns the log's digest, its lines and how many pods succeeded."""
    lab = VirtualLab(spec)
    lab.simulation.engine.add(FirstFit(lab.simulation.view))
    async with lab:
        await lab.run(seconds)
        if lab.simulation.engine.failures:
            raise RuntimeError("a controller failed")
        return lab.log.digest, lab.log.lines, lab.log.counts["DELETED jobs.batch"]


async def run_wall(nodes: int, pods: int, seconds: float) -> tuple[float, float]:
    """Seconds until all pods run, and the share of a core that they then take."""
    spec = parse_cluster((_WALL % {"nodes": nodes, "pods": pods}).encode(), "wall.yaml", Path())
    lab = LiveLab(spec, ServerConfig())
    simulation = lab.simulation
    simulation.engine.add(FirstFit(simulation.view))
    async with lab:
        working = asyncio.create_task(lab.run())
        start = time.monotonic()
        while sum(pod.is_ready for pod in simulation.view.pods.values()) < pods:  # noqa: ASYNC110
            await asyncio.sleep(0.5)
        loaded = time.monotonic() - start
        start, used = time.monotonic(), time.process_time()
        await asyncio.sleep(seconds)
        share = (time.process_time() - used) / (time.monotonic() - start)
        lab.stop()
        await working
        return loaded, share


def cases() -> Iterator[Result]:
    """All figures of the simulation."""
    loaded, share = asyncio.run(run_wall(1000, 10_000, 60.0))
    yield Result("simulation/wall/running", loaded, "s")
    yield Result("simulation/wall/cores", share, "cores")
    digests = set()
    seconds = float("inf")
    for _ in range(2):
        start = time.process_time()
        digest, lines, ended = run_virtually(run_day(day()))
        seconds = min(seconds, time.process_time() - start)
        digests.add(digest)
        if ended != PODS:
            raise RuntimeError(f"{ended} of {PODS} jobs ended and were collected")
    yield Result("simulation/day", seconds, "s")
    yield Result("simulation/day/changes", lines, "changes")
    yield Result("simulation/day/different-logs", len(digests) - 1, "logs")
