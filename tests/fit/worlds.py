"""Random clusters: objects whose names come from small pools, so that they meet each other."""

from __future__ import annotations

import random
from collections.abc import Callable

from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import TaintEffect
from bayplan.kube.pods import Pod
from tests.builders import (
    PodBuilder,
    make_attachment,
    make_capacity,
    make_csidriver,
    make_csinode,
    make_namespace,
    make_node,
    make_pdb,
    make_pod,
    make_pv,
    make_pvc,
    make_replica_set,
    make_service,
    make_storage_class,
    node_term,
    selector,
)

NODES = [f"n{index}" for index in range(5)]
PODS = [f"p{index}" for index in range(8)]
CLAIMS = [f"c{index}" for index in range(4)]
VOLUMES = [f"v{index}" for index in range(4)]
CLASSES = ["fast", "slow"]
DRIVERS = ["ebs.csi.aws.com", "nfs.csi.k8s.io"]
NAMESPACES = ["default", "other"]
APPS = ["web", "db"]
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def random_object(rng: random.Random) -> KubeObject:
    """Any object."""
    make: Callable[[random.Random], KubeObject] = rng.choice(
        [_node, _node, random_pod, random_pod, random_pod, _csinode, _pvc, _pv, *_OTHERS]
    )
    return make(rng)


def _node(rng: random.Random) -> KubeObject:
    name = rng.choice(NODES)
    node = make_node(name).capacity(
        cpu=rng.choice(["1", "4", "8"]), memory=rng.choice(["2Gi", "8Gi"]), pods=rng.choice([2, 10])
    )
    if rng.random() < 0.8:
        node.zone(rng.choice(["a", "b", "c"]))
    if rng.random() < 0.8:
        node.label(HOST, name)
    if rng.random() < 0.3:
        effects: list[TaintEffect] = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
        node.taint("dedicated", rng.choice(APPS), rng.choice(effects))
    if rng.random() < 0.1:
        node.unschedulable()
    if rng.random() < 0.3:
        node.image("registry.example/app:1", size=rng.choice([100, 900]) << 20)
    return node.obj()


def _csinode(rng: random.Random) -> KubeObject:
    csinode = make_csinode(rng.choice(NODES))
    for driver in rng.sample(DRIVERS, rng.randrange(3)):
        csinode.driver(driver, rng.choice([None, 0, 1, 2]))
    return csinode.obj()


def random_pod(rng: random.Random) -> Pod:
    """A pod, placed or not, with some of everything."""
    pod = make_pod(rng.choice(PODS), rng.choice(NAMESPACES))
    pod.cpu(rng.choice(["100m", "1", "3"])).memory(rng.choice(["64Mi", "1Gi"]))
    pod.labels(app=rng.choice(APPS)).priority(rng.randrange(3))
    if rng.random() < 0.5:
        pod.node(rng.choice(NODES))
    for decorate in _DECORATIONS:
        if rng.random() < 0.25:
            decorate(pod, rng)
    return pod.obj()


def _decorate_claim(pod: PodBuilder, rng: random.Random) -> None:
    pod.claim(rng.choice(CLAIMS))


def _decorate_disk(pod: PodBuilder, rng: random.Random) -> None:
    if rng.random() < 0.5:
        pod.ebs(f"vol-{rng.randrange(3)}")
    else:
        pod.gce_pd(f"disk-{rng.randrange(2)}", read_only=rng.random() < 0.5)


def _decorate_port(pod: PodBuilder, rng: random.Random) -> None:
    pod.host_port(rng.choice([80, 443]))


def _decorate_toleration(pod: PodBuilder, rng: random.Random) -> None:
    pod.toleration("dedicated", rng.choice(APPS))


def _decorate_affinity(pod: PodBuilder, rng: random.Random) -> None:
    meant = selector(app=rng.choice(APPS))
    key = rng.choice([ZONE, HOST])
    rng.choice([pod.affinity, pod.anti_affinity])(key, meant)


def _decorate_preference(pod: PodBuilder, rng: random.Random) -> None:
    meant = selector(app=rng.choice(APPS))
    prefer = rng.choice([pod.prefers_affinity, pod.prefers_anti_affinity])
    prefer(rng.randrange(1, 100), rng.choice([ZONE, HOST]), meant)


def _decorate_nodes(pod: PodBuilder, rng: random.Random) -> None:
    if rng.random() < 0.5:
        pod.node_affinity(node_term(ZONE, "In", rng.choice("abc"), "a"))
    else:
        pod.prefers_node(rng.randrange(1, 100), node_term(ZONE, "NotIn", rng.choice("abc")))


def _decorate_spread(pod: PodBuilder, rng: random.Random) -> None:
    key = rng.choice([ZONE, HOST])
    if rng.random() < 0.5:
        pod.spread(key, rng.randrange(1, 3))
    else:
        pod.spread(key, rng.randrange(1, 3), "ScheduleAnyway")


def _decorate_ending(pod: PodBuilder, rng: random.Random) -> None:
    if rng.random() < 0.5:
        pod.terminating()
    else:
        pod.phase(rng.choice(["Succeeded", "Running"]))


def _decorate_owner(pod: PodBuilder, rng: random.Random) -> None:
    pod.owner("ReplicaSet", rng.choice(APPS))


_DECORATIONS = (
    _decorate_claim,
    _decorate_disk,
    _decorate_port,
    _decorate_toleration,
    _decorate_affinity,
    _decorate_preference,
    _decorate_nodes,
    _decorate_spread,
    _decorate_ending,
    _decorate_owner,
)


def _pvc(rng: random.Random) -> KubeObject:
    claim = make_pvc(rng.choice(CLAIMS), rng.choice(NAMESPACES)).size(rng.choice(["1Gi", "5Gi"]))
    claim.storage_class(rng.choice(CLASSES))
    claim.access(rng.choice(["ReadWriteOnce", "ReadWriteOncePod"]))
    if rng.random() < 0.5:
        claim.volume(rng.choice(VOLUMES))
    return claim.obj()


def _pv(rng: random.Random) -> KubeObject:
    volume = make_pv(rng.choice(VOLUMES)).size(rng.choice(["1Gi", "10Gi"]))
    volume.storage_class(rng.choice(CLASSES))
    if rng.random() < 0.7:
        volume.csi(rng.choice(DRIVERS), f"handle-{rng.randrange(3)}")
    else:
        volume.ebs(f"vol-{rng.randrange(3)}")
    if rng.random() < 0.5:
        volume.bound_to(rng.choice(CLAIMS))
    if rng.random() < 0.3:
        volume.node_affinity(node_term(ZONE, "In", rng.choice("abc")))
    return volume.obj()


def _storage_class(rng: random.Random) -> KubeObject:
    made = make_storage_class(rng.choice(CLASSES), rng.choice(DRIVERS))
    if rng.random() < 0.8:
        made.waits()
    if rng.random() < 0.3:
        made.topology(ZONE, rng.choice("abc"))
    return made.obj()


def _driver(rng: random.Random) -> KubeObject:
    driver = make_csidriver(rng.choice(DRIVERS)).prevent_if_missing(rng.choice([None, True, False]))
    return (driver.storage_capacity() if rng.random() < 0.3 else driver).obj()


def _capacity(rng: random.Random) -> KubeObject:
    capacity = make_capacity(f"cap{rng.randrange(2)}", rng.choice(CLASSES))
    return capacity.capacity("3Gi").topology(selector({ZONE: rng.choice("abc")})).obj()


def _attachment(rng: random.Random) -> KubeObject:
    name = f"va{rng.randrange(3)}"
    return make_attachment(name, rng.choice(DRIVERS), rng.choice(NODES), rng.choice(VOLUMES)).obj()


def _service(rng: random.Random) -> KubeObject:
    return make_service(f"svc{rng.randrange(2)}", app=rng.choice(APPS)).obj()


def _replica_set(rng: random.Random) -> KubeObject:
    return make_replica_set(rng.choice(APPS), app=rng.choice(APPS)).obj()


def _namespace(rng: random.Random) -> KubeObject:
    return make_namespace(rng.choice(NAMESPACES)).labels(team=rng.choice("ab")).obj()


def _budget(rng: random.Random) -> KubeObject:
    budget = make_pdb(f"pdb{rng.randrange(2)}", selector(app=rng.choice(APPS)))
    return budget.allows(rng.randrange(2)).obj()


_OTHERS = (
    _storage_class,
    _driver,
    _capacity,
    _attachment,
    _service,
    _replica_set,
    _namespace,
    _budget,
)
