"""Random clusters in virtual time: as nodes are removed, every pod runs again and budgets hold."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.autoscaler.plan import AutoscalerPlan
from bayplan.embedded.simulation.clusterfile import ClusterSpec, parse_cluster
from bayplan.kube.pods import Pod
from bayplan.lab import VirtualLab
from bayplan.lab.virtual import run_virtually
from tests.autoscaler.running_autoscaler import STORIES, RunningCluster, virtual_running_cluster
from tests.autoscaler.scaledown.random_clusters import QUICK, guard, running

pytestmark = pytest.mark.whole


GROUPS = """
seed: SEED
csiDrivers:
  - name: disk.csi.example.com
storageClasses:
  - {name: disks, driver: disk.csi.example.com, default: true}
instanceTypes:
  - {name: large, cpu: 8, memory: 32Gi, price: 0.8}
  - {name: small, cpu: 4, memory: 16Gi, price: 0.5}
nodeGroups:
  - {name: a, instanceType: large, count: COUNT_A, max: 10, start: 5s, zones: [zone-a, zone-b],
     drivers: [{name: disk.csi.example.com, limit: LIMIT}]}
  - {name: b, instanceType: small, count: COUNT_B, max: 10, start: 5s, zones: [zone-a, zone-b],
     drivers: [{name: disk.csi.example.com, limit: LIMIT}]}
workloads:
  - at: 30s
    manifest:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web}
      spec:
        replicas: WEB
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec:
            topologySpreadConstraints:
              - {maxSkew: SKEW, topologyKey: KEY, whenUnsatisfiable: WHEN,
                 labelSelector: {matchLabels: {app: web}}}
            containers:
              - {name: c, image: i, resources: {requests: {cpu: WEB_CPU}}}
  - at: 30s
    manifest:
      apiVersion: apps/v1
      kind: StatefulSet
      metadata: {name: db}
      spec:
        serviceName: db
        replicas: DB
        podManagementPolicy: Parallel
        selector: {matchLabels: {app: db}}
        template:
          metadata: {labels: {app: db}}
          spec:
            containers: [{name: c, image: i, resources: {requests: {cpu: 200m}}}]
        volumeClaimTemplates:
          - metadata: {name: data}
            spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  - at: 30s
    manifest:
      apiVersion: apps/v1
      kind: DaemonSet
      metadata: {name: agent}
      spec:
        selector: {matchLabels: {app: agent}}
        template:
          metadata: {labels: {app: agent}}
          spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 50m}}}]}
"""


def random_spec(rng: random.Random) -> tuple[ClusterSpec, int, int]:
    """A cluster file, and how many pods its deployment and its stateful set have."""
    web, db = rng.randrange(1, 8), rng.randrange(4)
    words = {
        "SEED": rng.randrange(1000),
        "COUNT_A": rng.randrange(1, 4),
        "COUNT_B": rng.randrange(1, 4),
        "LIMIT": rng.randrange(1, 4),
        "WEB_CPU": rng.choice(["500m", "1", "2"]),
        "WEB": web,
        "SKEW": rng.randrange(1, 3),
        "KEY": rng.choice(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]),
        "WHEN": rng.choice(["DoNotSchedule", "ScheduleAnyway"]),
        "DB": db,
    }
    text = GROUPS
    if "zone" in str(words["KEY"]):
        # Of a group with nodes in two zones nobody knows beforehand where the next one comes, and
        # a zone that lacks pods may not get it: so each group has a zone of its own.
        for zone in ("zone-a", "zone-b"):
            text = text.replace("[zone-a, zone-b]", f"[{zone}]", 1)
    for word, value in words.items():
        text = text.replace(word, str(value))
    return parse_cluster(text.encode(), "random", STORIES), web, db


async def settled(cluster: RunningCluster, web: int) -> None:
    """Half an hour, in which the deployment's budget must hold whenever it was met."""
    met = False
    for _ in range(180):
        await cluster.lab.forward(10)
        count = len([pod for pod in await running(cluster) if pod.metadata.labels["app"] == "web"])
        met = met or count == web
        assert not met or count >= web - 1


def _others(pods: list[Pod]) -> list[Pod]:
    return [pod for pod in pods if pod.metadata.labels["app"] != "agent"]


async def _play(seed: int) -> None:
    spec, web, db = random_spec(random.Random(seed))
    async with virtual_running_cluster(spec, QUICK) as cluster:
        assert isinstance(cluster.lab, VirtualLab)
        await guard(cluster, max(web - 1, 1))
        await settled(cluster, web)
        all_pods = _others(await cluster.pods())
        assert len(all_pods) == web + db
        assert len(_others(await running(cluster))) == web + db
        before = set(await cluster.nodes())
        await cluster.lab.forward(900)
        assert set(await cluster.nodes()) == before, _why(cluster.autoscaler.plans()[-1])


def _why(plan: AutoscalerPlan) -> str:
    return f"{plan.removals} {plan.scale_ups}"


@settings(max_examples=4)
@given(st.integers(0, 2**32))
def test_every_evicted_pod_runs_again_and_a_settled_cluster_rests(seed: int) -> None:
    run_virtually(_play(seed))
