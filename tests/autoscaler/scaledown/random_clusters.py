"""Whole clusters with too many nodes, at work in virtual time."""

from __future__ import annotations

from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.client import merge, untyped
from bayplan.embedded.simulation.clusterfile import ClusterSpec, parse_cluster
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from tests.autoscaler.running_autoscaler import STORIES, RunningCluster

DEPLOYMENTS = untyped("apps", "v1", "deployments", "Deployment")
QUICK = AutoscalerOptions(
    scale_down_unneeded_time=60.0,
    scale_down_unready_time=120.0,
    scale_down_delay_after_add=60.0,
)
HALF_EMPTY = """
seed: 1
csiDrivers:
  - name: disk.csi.example.com
storageClasses:
  - {name: disks, driver: disk.csi.example.com, default: true}
instanceTypes:
  - {name: large, cpu: 8, memory: 32Gi, price: 0.8}
nodeGroups:
  - name: workers
    instanceType: large
    count: COUNT
    min: MIN
    max: 10
    start: 5s
    drivers:
      - {name: disk.csi.example.com, limit: 8}
workloads:
  # By then all nodes are there.
  - at: 30s
    manifest:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web}
      spec:
        replicas: REPLICAS
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec:
            topologySpreadConstraints:
              - maxSkew: 1
                topologyKey: kubernetes.io/hostname
                whenUnsatisfiable: ScheduleAnyway
                labelSelector: {matchLabels: {app: web}}
            containers:
              - name: web
                image: registry.example.com/web:1
                resources: {requests: {cpu: CPU}}
"""


def half_empty(
    count: int = 4, replicas: int = 8, cpu: str = "1", least: int = 1, group: str = "    drivers:"
) -> ClusterSpec:
    """Nodes of 8 cpus that pods are spread over; `group` may say more of their group."""
    text = HALF_EMPTY.replace("COUNT", str(count)).replace("REPLICAS", str(replicas))
    text = text.replace("CPU", cpu).replace("MIN", str(least)).replace("    drivers:", group)
    return parse_cluster(text.encode(), "half-empty", STORIES)


async def resize(cluster: RunningCluster, replicas: int) -> None:
    """Let the deployment want so many pods."""
    change = merge({"spec": {"replicas": replicas}})
    await cluster.client.patch(DEPLOYMENTS, "default", "web", change=change)


async def guard(cluster: RunningCluster, at_least: int) -> None:
    """A budget for the pods of the deployment."""
    await cluster.client.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"minAvailable": at_least, "selector": {"matchLabels": {"app": "web"}}},
        }
    )


async def running(cluster: RunningCluster) -> list[Pod]:
    """The pods that run."""
    return [pod for pod in await cluster.pods() if pod.status.phase == "Running"]


async def taints(cluster: RunningCluster) -> dict[str, list[str]]:
    """By node, the keys of its taints."""
    nodes = (await cluster.client.list(Node)).items
    return {node.name: [taint.key for taint in node.spec.taints] for node in nodes}


async def begun(cluster: RunningCluster, pods: int) -> None:
    """Let time go by until so many pods run, for ten minutes at most."""
    for _ in range(120):
        await cluster.lab.forward(5)
        if len(await running(cluster)) == pods:
            return
    raise AssertionError(f"only {len(await running(cluster))} pods run")
