"""Clusters and pods to measure on."""

from __future__ import annotations

import random

from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node, NodeSelectorTerm
from bayplan.kube.pods import Pod
from tests.builders import (
    make_csinode,
    make_node,
    make_pdb,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
    name_term,
    node_term,
    selector,
)

DRIVER = "ebs.csi.aws.com"
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
ZONES = 3
SHAPES = 20


def nodes(count: int) -> list[Node]:
    """Equal nodes in three zones."""
    return [
        make_node(f"node-{index}")
        .capacity(cpu="32", memory="128Gi", pods=110)
        .zone(f"zone-{index % ZONES}")
        .label("kubernetes.io/hostname", f"node-{index}")
        .obj()
        for index in range(count)
    ]


def csinodes(count: int, limit: int = 25) -> list[KubeObject]:
    """A CSINode for each node."""
    return [make_csinode(f"node-{index}").driver(DRIVER, limit).obj() for index in range(count)]


def plain_pods(count: int) -> list[Pod]:
    """Pods in 20 shapes, mixed."""
    rng = random.Random(1)
    return [
        make_pod(f"plain-{index}")
        .cpu(f"{100 + 50 * shape}m")
        .memory(f"{128 + 64 * shape}Mi")
        .labels(app=f"app-{shape}")
        .obj()
        for index in range(count)
        for shape in [rng.randrange(SHAPES)]
    ]


def volume_pods(count: int) -> tuple[list[Pod], list[KubeObject]]:
    """Pods with one CSI volume each, half bound and half waiting for their first consumer."""
    objects: list[KubeObject] = [make_storage_class("ebs", DRIVER).waits().obj()]
    pods = []
    for index in range(count):
        claim = make_pvc(f"claim-{index}").storage_class("ebs").size("10Gi")
        if index % 2:
            claim = claim.volume(f"pv-{index}")
            volume = make_pv(f"pv-{index}").csi(DRIVER, f"vol-{index}").size("10Gi")
            volume = volume.storage_class("ebs").bound_to(f"claim-{index}")
            objects.append(volume.node_affinity(_in_region()).obj())
        objects.append(claim.obj())
        pod = make_pod(f"volume-{index}").cpu("100m").memory("128Mi")
        pods.append(pod.claim(f"claim-{index}").obj())
    return pods, objects


def _in_region() -> NodeSelectorTerm:
    return node_term(ZONE, "In", *(f"zone-{index}" for index in range(ZONES)))


def spread_pods(count: int) -> list[Pod]:
    """Pods of ten applications, each spread over zones and hosts."""
    return [
        make_pod(f"spread-{index}")
        .cpu("100m")
        .memory("128Mi")
        .labels(app=f"spread-{index % 10}")
        .spread(ZONE, max_skew=1)
        .spread(HOST, max_skew=2)
        .obj()
        for index in range(count)
    ]


def repelling_pods(count: int) -> list[Pod]:
    """Pods of ten applications, no two of one on the same host."""
    return [
        make_pod(f"apart-{index}")
        .cpu("100m")
        .memory("128Mi")
        .labels(app=f"apart-{index % 10}")
        .anti_affinity(HOST, selector(app=f"apart-{index % 10}"))
        .obj()
        for index in range(count)
    ]


def local_volume_pods(nodes: int, each: int) -> tuple[list[Pod], list[KubeObject]]:
    """Pods with one local volume each, as many as there are volumes on all nodes."""
    no_provisioner = "kubernetes.io/no-provisioner"
    objects: list[KubeObject] = [make_storage_class("local", no_provisioner).waits().obj()]
    pods = []
    for index in range(nodes * each):
        here = node_term(HOST, "In", f"node-{index % nodes}")
        volume = make_pv(f"local-{index}").size("100Gi").storage_class("local").available()
        objects.append(volume.node_affinity(here).obj())
        objects.append(make_pvc(f"claim-{index}").storage_class("local").size("50Gi").obj())
        pod = make_pod(f"local-{index}").cpu("100m").memory("128Mi")
        pods.append(pod.claim(f"claim-{index}").obj())
    return pods, objects


def job_pods(jobs: int, each: int) -> list[Pod]:
    """Pods of jobs that differ by name, and so in the labels that a job gives its pods."""
    return [
        make_pod(f"job-{job}-{index}", "batch")
        .cpu("100m")
        .memory("128Mi")
        .labels(
            {
                "batch.kubernetes.io/controller-uid": f"uid-{job}",
                "batch.kubernetes.io/job-completion-index": str(index),
                "batch.kubernetes.io/job-name": f"job-{job}",
                "controller-uid": f"uid-{job}",
                "job-name": f"job-{job}",
            }
        )
        .owner("Job", f"job-{job}")
        .obj()
        for job in range(jobs)
        for index in range(each)
    ]


def daemon_pods(nodes: int) -> list[Pod]:
    """Pods of a DaemonSet: each for one node, by its name."""
    return [
        make_pod(f"daemon-{index}", "kube-system")
        .cpu("100m")
        .memory("128Mi")
        .labels(app="daemon")
        .owner("DaemonSet", "daemon")
        .node_affinity(name_term(f"node-{index}"))
        .obj()
        for index in range(nodes)
    ]


def crowded(count: int, each: int, budgets: int) -> list[KubeObject]:
    """Full nodes, `each` pods of low priorities on every one, with so many budgets over them."""
    rng = random.Random(1)
    objects: list[KubeObject] = [*nodes(count)]
    for index in range(count * each):
        app = rng.randrange(budgets * 2)
        pod = make_pod(f"low-{index}", f"team-{app % 10}").labels(app=f"app-{app}", tier="web")
        pod.cpu(f"{32000 // each}m").memory("1Gi").priority(rng.randrange(3))
        objects.append(pod.node(f"node-{index // each}").started(_moment(rng)).obj())
    for index in range(budgets):
        guarded = selector(app=f"app-{index}")
        budget = make_pdb(f"budget-{index}", guarded, namespace=f"team-{index % 10}")
        objects.append(budget.allows(rng.randrange(3)).obj())
    return objects


def urgent_pods(count: int) -> list[Pod]:
    """Pods of high priority that fit nowhere unless others leave."""
    return [
        make_pod(f"urgent-{index}").cpu(f"{4 + index}").memory("1Gi").priority(1000).obj()
        for index in range(count)
    ]


def _moment(rng: random.Random) -> str:
    return f"2026-01-{rng.randrange(1, 29):02}T{rng.randrange(24):02}:00:00Z"
