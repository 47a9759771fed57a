"""The same run is the same to the byte in every process, whatever names hash to there."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest

from tests.lab.simulation.runs import run_spec, variant

pytestmark = pytest.mark.whole


QUEUES = ("reports", "research", "nightly", "adhoc")
CLUSTER = """
seed: 11
csiDrivers: [{name: disk.csi.example.com}, {name: file.csi.example.com}]
storageClasses:
  - {name: disks, driver: disk.csi.example.com, default: true}
  - {name: files, driver: file.csi.example.com}
instanceTypes: [{name: small, cpu: 8, memory: 32Gi, price: 1.0}]
nodeGroups:
  - name: workers
    instanceType: small
    count: 2
    max: 8
    zones: [zone-a, zone-b]
    drivers: [{name: disk.csi.example.com, limit: 4}, {name: file.csi.example.com, limit: 3}]
  - {name: others, instanceType: small, max: 4}
workloads:
"""
QUEUE = """
  - at: 1s
    manifest:
      apiVersion: scheduling.volcano.sh/v1beta1
      kind: Queue
      metadata: {name: QUEUE}
      spec: {capability: {cpu: "9"}, deserved: {cpu: "4"}}
  - at: 20s
    arrivals: {count: 3, over: 3m}
    manifest:
      apiVersion: batch/v1
      kind: Job
      metadata: {name: QUEUE-job}
      spec:
        parallelism: 3
        completions: 3
        ttlSecondsAfterFinished: 30
        template:
          metadata:
            annotations:
              simulation.bayplan.io/runs-for: 90s
              scheduling.volcano.sh/queue-name: QUEUE
              scheduling.volcano.sh/group-min-member: "2"
              scheduling.volcano.sh/queue-allocation-gate: "GATED"
          spec:
            restartPolicy: Never
            containers: [{name: c, image: i, resources: {requests: {cpu: "2", memory: 1Gi}}}]
            volumes:
              - name: scratch
                ephemeral:
                  volumeClaimTemplate:
                    spec:
                      storageClassName: CLASS
                      accessModes: [ReadWriteOnce]
                      resources: {requests: {storage: 1Gi}}
"""


RUN = """
import sys
import msgspec
from bayplan.lab.simulation.runspec import RunSpec
from bayplan.lab.simulation.pool import run_simulation
print(run_simulation(msgspec.json.decode(sys.stdin.buffer.read(), type=RunSpec)).digest)
"""


def cluster() -> bytes:
    parts = [
        QUEUE.replace("QUEUE", name)
        .replace("GATED", "true" if number % 2 else "false")
        .replace("CLASS", "files" if number % 2 else "disks")
        for number, name in enumerate(QUEUES)
    ]
    return (CLUSTER + "".join(parts)).encode()


def test_a_run_does_not_depend_on_what_names_hash_to(long: bool) -> None:
    whole = msgspec.structs.replace(variant(cluster()), daemons="scheduler,autoscaler,queues")
    asked = msgspec.json.encode(run_spec(whole, seconds=420.0))
    digests = {number: _digest(asked, number) for number in range(4 if long else 2)}
    assert len(set(digests.values())) == 1, digests


def _digest(asked: bytes, hashing: int) -> bytes:
    """The digest of a run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=asked,
        env={**os.environ, "PYTHONHASHSEED": str(hashing)},
        check=True,
        stdout=subprocess.PIPE,
    )
    assert done.stdout
    return done.stdout
