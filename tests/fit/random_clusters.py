"""Random clusters: objects whose names come from small pools, so that they meet each other."""

from __future__ import annotations

import random
from collections.abc import Callable

from bayplan.kube.meta import KubeObject, LabelSelector
from bayplan.kube.nodes import TaintEffect
from bayplan.kube.pods import Pod, PodAffinityTerm
from bayplan.kube.volumes import Iscsi, Rbd, Volume
from tests.builders import (
    PodBuilder,
    expression,
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
    make_stateful_set,
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
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
NUMBER = "apps.kubernetes.io/pod-index"


class Dice(random.Random):
    """Randomness for a cluster of another size than the usual one; in a calm one, pods say nothing
    of other pods and nodes discourage nobody.
    """

    def __init__(self, seed: int, *, nodes: int, pods: int, volumes: int, calm: bool) -> None:
        super().__init__(seed)
        self.calm = calm
        self.nodes = [f"n{index}" for index in range(nodes)]
        self.pods = [f"p{index}" for index in range(pods)]
        self.volumes = [f"v{index}" for index in range(volumes)]


def _is_calm(rng: random.Random) -> bool:
    return isinstance(rng, Dice) and rng.calm


def _nodes(rng: random.Random) -> list[str]:
    return rng.nodes if isinstance(rng, Dice) else NODES


def _pods(rng: random.Random) -> list[str]:
    return rng.pods if isinstance(rng, Dice) else PODS


def _volumes(rng: random.Random) -> list[str]:
    return rng.volumes if isinstance(rng, Dice) else VOLUMES


def random_object(rng: random.Random) -> KubeObject:
    """Any object."""
    make: Callable[[random.Random], KubeObject] = rng.choice(
        [_node, _node, random_pod, random_pod, random_pod, _csinode, _pvc, _pv, *_OTHERS]
    )
    return make(rng)


def _node(rng: random.Random) -> KubeObject:
    name = rng.choice(_nodes(rng))
    node = make_node(name).capacity(
        cpu=rng.choice(["1", "4", "8"]), memory=rng.choice(["2Gi", "8Gi"]), pods=rng.choice([2, 10])
    )
    if rng.random() < 0.8:
        node.zone(rng.choice(["a", "b", "c"]))
    if rng.random() < 0.8:
        node.label(HOST, name)
    if rng.random() < 0.3:
        node.label(EBS_ZONE, rng.choice("abc"))
    if rng.random() < 0.3:
        effects: list[TaintEffect] = ["NoSchedule", "NoExecute"]
        effects += [] if _is_calm(rng) else ["PreferNoSchedule"]
        node.taint("dedicated", rng.choice(APPS), rng.choice(effects))
    if rng.random() < 0.1:
        node.unschedulable()
    if rng.random() < 0.3:
        node.image("registry.example/app:1", size=rng.choice([100, 900]) << 20)
    return node.obj()


def _csinode(rng: random.Random) -> KubeObject:
    csinode = make_csinode(rng.choice(_nodes(rng)))
    for driver in rng.sample(DRIVERS, rng.randrange(3)):
        csinode.driver(driver, rng.choice([None, 0, 1, 2]))
    if rng.random() < 0.5:
        csinode.migrated("kubernetes.io/aws-ebs")
    return csinode.obj()


def random_pod(rng: random.Random) -> Pod:
    """A pod, placed or not, with some of everything."""
    pod = make_pod(rng.choice(_pods(rng)), rng.choice(NAMESPACES))
    pod.cpu(rng.choice(["100m", "1", "3"])).memory(rng.choice(["64Mi", "1Gi"]))
    pod.labels(app=rng.choice(APPS)).priority(rng.randrange(3))
    if rng.random() < 0.5:
        pod.node(rng.choice(_nodes(rng)))
    for decorate in _DECORATIONS:
        if rng.random() < 0.25 and not (_is_calm(rng) and decorate in _ABOUT_OTHERS):
            decorate(pod, rng)
    return pod.obj()


def _decorate_claim(pod: PodBuilder, rng: random.Random) -> None:
    for name in rng.choices(CLAIMS, k=rng.randrange(1, 3)):
        pod.claim(name)


def _decorate_ephemeral(pod: PodBuilder, rng: random.Random) -> None:
    pod.ephemeral("data", rng.choice(CLASSES))


def _decorate_disk(pod: PodBuilder, rng: random.Random) -> None:
    read_only = rng.random() < 0.5
    iscsi = Iscsi(target_portal="portal", iqn="iqn", read_only=read_only)
    monitors = rng.sample(["m1", "m2", "m3"], 2)
    rbd = Rbd(monitors=monitors, image="image", read_only=read_only)
    add: list[Callable[[], PodBuilder]] = [
        lambda: pod.ebs(f"vol-{rng.randrange(3)}"),
        lambda: pod.gce_pd(f"disk-{rng.randrange(2)}", read_only=read_only),
        lambda: pod.azure_disk("disk"),
        lambda: pod.volume(Volume(name="iscsi", iscsi=iscsi)),
        lambda: pod.volume(Volume(name="rbd", rbd=rbd)),
    ]
    rng.choice(add)()


def _decorate_port(pod: PodBuilder, rng: random.Random) -> None:
    pod.host_port(rng.choice([80, 443]), host_ip=rng.choice(["", "0.0.0.0", "10.0.0.1"]))


def _decorate_toleration(pod: PodBuilder, rng: random.Random) -> None:
    pod.toleration("dedicated", rng.choice(APPS))


def _decorate_affinity(pod: PodBuilder, rng: random.Random) -> None:
    term = PodAffinityTerm(
        topology_key=rng.choice([ZONE, HOST]),
        label_selector=_about_pods(rng),
        namespaces=rng.choice([[], ["other"]]),
        namespace_selector=rng.choice(
            [None, LabelSelector(), selector(team="a"), expression("team", "DoesNotExist")]
        ),
        match_label_keys=rng.choice([[], ["app"]]),
        mismatch_label_keys=rng.choice([[], ["rev"]]),
    )
    pod.affinity_term(term, anti=rng.random() < 0.5)


def _about_pods(rng: random.Random) -> LabelSelector:
    """A selector of pods; a few speak of labels that number replicas, or that few pods have."""
    if rng.random() < 0.1:
        return expression(NUMBER, rng.choice(["In", "NotIn"]), "0")
    if rng.random() < 0.1:
        return expression(rng.choice(["rev", "app"]), rng.choice(["Exists", "DoesNotExist"]))
    return selector(app=rng.choice(APPS))


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
    pod.spread(
        rng.choice([ZONE, HOST]),
        rng.randrange(1, 3),
        rng.choice(["DoNotSchedule", "ScheduleAnyway"]),
        _about_pods(rng),
        match_label_keys=rng.choice([[], ["app"]]),
        node_affinity_policy=rng.choice(["Honor", "Ignore"]),
        node_taints_policy=rng.choice(["Honor", "Ignore"]),
    )


def _decorate_ending(pod: PodBuilder, rng: random.Random) -> None:
    if rng.random() < 0.5:
        pod.terminating()
    else:
        pod.phase(rng.choice(["Succeeded", "Running"]))


def _decorate_owner(pod: PodBuilder, rng: random.Random) -> None:
    pod.owner(rng.choice(["ReplicaSet", "StatefulSet"]), rng.choice(APPS))


def _decorate_labels(pod: PodBuilder, rng: random.Random) -> None:
    pod.label(rng.choice([NUMBER, "rev"]), rng.choice("01"))


def _decorate_resources(pod: PodBuilder, rng: random.Random) -> None:
    extra = rng.choice([pod.init, pod.sidecar, pod.overhead, pod.pod_level])
    extra(cpu=rng.choice(["200m", "2"]))


def _decorate_resize(pod: PodBuilder, rng: random.Random) -> None:
    pod.condition("PodResizePending", reason=rng.choice(["Infeasible", "Deferred"]))


def _decorate_nomination(pod: PodBuilder, rng: random.Random) -> None:
    pod.nominated(rng.choice(_nodes(rng))).started(f"2026-01-0{rng.randrange(1, 4)}T00:00:00Z")


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
    _decorate_ephemeral,
    _decorate_labels,
    _decorate_resources,
    _decorate_resize,
    _decorate_nomination,
)


_ABOUT_OTHERS = (_decorate_affinity, _decorate_preference, _decorate_spread)


def _pvc(rng: random.Random) -> KubeObject:
    if rng.random() < 0.2:
        name = f"{rng.choice(_pods(rng))}-data"
        claim = make_pvc(name, rng.choice(NAMESPACES)).owner("Pod", name, uid="")
    else:
        claim = make_pvc(rng.choice(CLAIMS), rng.choice(NAMESPACES))
    claim.size(rng.choice(["1Gi", "5Gi", "20Gi"]))
    claim.storage_class(rng.choice(CLASSES))
    claim.access(rng.choice(["ReadWriteOnce", "ReadWriteOncePod"]))
    if rng.random() < 0.5:
        claim.volume(rng.choice(_volumes(rng)))
    if rng.random() < 0.1:
        claim.annotation("volume.kubernetes.io/selected-node", rng.choice(_nodes(rng)))
    return claim.obj()


def _pv(rng: random.Random) -> KubeObject:
    volume = make_pv(rng.choice(_volumes(rng))).size(rng.choice(["1Gi", "10Gi"]))
    volume.storage_class(rng.choice(CLASSES))
    if rng.random() < 0.7:
        volume.csi(rng.choice(DRIVERS), f"handle-{rng.randrange(3)}")
    else:
        volume.ebs(f"vol-{rng.randrange(3)}")
    if rng.random() < 0.5:
        volume.bound_to(rng.choice(CLAIMS))
    else:
        volume.available()
    if rng.random() < 0.3:
        volume.node_affinity(node_term(rng.choice([ZONE, EBS_ZONE]), "In", rng.choice("abc")))
    elif rng.random() < 0.5:
        volume.node_affinity(node_term(HOST, "In", rng.choice(_nodes(rng))))
    if rng.random() < 0.2:
        volume.label(ZONE, rng.choice("abc"))
    return volume.obj()


def _storage_class(rng: random.Random) -> KubeObject:
    provisioner = rng.choice([*DRIVERS, "kubernetes.io/aws-ebs", "kubernetes.io/no-provisioner"])
    made = make_storage_class(rng.choice(CLASSES), provisioner)
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
    node, volume = rng.choice(_nodes(rng)), rng.choice(_volumes(rng))
    return make_attachment(name, rng.choice(DRIVERS), node, volume).obj()


def _service(rng: random.Random) -> KubeObject:
    name = f"svc{rng.randrange(2)}"
    if rng.random() < 0.3:
        return make_service(name, rev=rng.choice("01")).obj()
    return make_service(name, app=rng.choice(APPS)).obj()


def _controller(rng: random.Random) -> KubeObject:
    if rng.random() < 0.5:
        return make_stateful_set(rng.choice(APPS), app=rng.choice(APPS)).obj()
    return make_replica_set(rng.choice(APPS), app=rng.choice(APPS)).obj()


def _namespace(rng: random.Random) -> KubeObject:
    namespace = make_namespace(rng.choice(NAMESPACES))
    return (namespace.labels(team=rng.choice("ab")) if rng.random() < 0.8 else namespace).obj()


def _budget(rng: random.Random) -> KubeObject:
    budget = make_pdb(f"pdb{rng.randrange(2)}", selector(app=rng.choice(APPS)))
    return budget.allows(rng.randrange(2)).obj()


_OTHERS = (
    _storage_class,
    _driver,
    _capacity,
    _attachment,
    _service,
    _controller,
    _namespace,
    _budget,
)
