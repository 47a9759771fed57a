"""Small clusters to simulate, and orders of runs of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from bayplan.embedded.simulation.clusterfile import plain_cluster
from bayplan.lab.measurement import RunMeasurements
from bayplan.lab.simulation.pool import run_simulation
from bayplan.lab.simulation.runspec import RunSpec, SimulationInputs, SimulationVariant

STORIES = Path(__file__).parents[3] / "examples" / "stories"
FULL = STORIES / "1-attach-limit-reached.yaml"
OFF = "VolumeLimitScaling=false"
DISK = "disk.csi.example.com"
SMALL = b"""
seed: 3
instanceTypes: [{name: small, cpu: 4, memory: 8Gi, price: 1.0}]
nodeGroups: [{name: workers, instanceType: small, count: 1, max: 6, start: 20s}]
faults: [{kind: stock-out, group: workers, at: 1m, for: 6m}]
workloads:
  - arrivals: {count: 40, over: 20m}
    manifest:
      apiVersion: batch/v1
      kind: Job
      metadata: {name: work}
      spec:
        ttlSecondsAfterFinished: 30
        template:
          metadata: {annotations: {simulation.bayplan.io/runs-for: 3m}}
          spec:
            restartPolicy: Never
            containers: [{name: c, image: i, resources: {requests: {cpu: "2"}}}]
"""


def variant(text: bytes = SMALL, name: str = "base", gates: str = "") -> SimulationVariant:
    cluster = plain_cluster(text, "cluster.yaml", STORIES)
    daemons = "scheduler,autoscaler"
    return SimulationVariant(
        name=name, cluster=cluster, source="cluster.yaml", gates=gates, daemons=daemons
    )


def run_spec(
    one: SimulationVariant, seed: int = 1, seconds: float = 1800.0, points: int = 60
) -> RunSpec:
    return RunSpec(variant=one, seed=seed, seconds=seconds, points=points)


RUNS_OF_FULL = pytest.mark.xdist_group("runs-of-full")
"""Mark of tests that look at the same runs: one worker makes them, once."""


@cache
def run_of_full(gates: str = "") -> RunMeasurements:
    """The run of the cluster whose attach limit is reached, made once for all tests."""
    return run_simulation(run_spec(variant(FULL.read_bytes(), gates=gates)))


def inputs(
    *variants: SimulationVariant, seeds: int = 2, seconds: float = 1800.0
) -> SimulationInputs:
    return SimulationInputs(
        variants=list(variants), seeds=list(range(1, seeds + 1)), seconds=seconds, points=60
    )
