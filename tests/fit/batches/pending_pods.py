"""Random clusters with pods that wait in numbers, and templates of nodes for them."""

from __future__ import annotations

import random
from typing import TypeVar

from msgspec.structs import replace

from bayplan.fit import Profile, Snapshot
from bayplan.fit.batches import NodeTemplate
from bayplan.kube.gates import FeatureGates
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node, NodeSpec
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSINode
from bayplan.kube.volumes import ClaimVolumeSource, Volume
from tests.builders import make_pod, make_pv, make_pvc, make_storage_class
from tests.fit.random_clusters import CLASSES, DRIVERS, random_object, random_pod

K = TypeVar("K", bound=KubeObject)
PROVISIONERS = (DRIVERS[0], "kubernetes.io/aws-ebs")
PROFILES = (
    Profile(),
    Profile(gates=FeatureGates({"VolumeLimitScaling": False})),
    Profile.kubernetes(volume_limit_scaling=True),
)


def random_cluster(rng: random.Random) -> Snapshot:
    """A cluster of some objects."""
    objects = [random_object(rng) for _ in range(rng.randrange(10, 60))]
    objects.append(make_storage_class(CLASSES[0], rng.choice(PROVISIONERS)).waits().obj())
    return Snapshot(objects, profile=rng.choice(PROFILES))


def waiting_pods(rng: random.Random, snapshot: Snapshot) -> list[Pod]:
    """Pods in sets of equals; some sets have a claim for each pod, bound or not."""
    return [
        pod for number in range(rng.randrange(1, 5)) for pod in _replicas(rng, snapshot, number)
    ]


def _replicas(rng: random.Random, snapshot: Snapshot, number: int) -> list[Pod]:
    pattern = random_pod(rng)
    if pattern.is_terminal or pattern.is_terminating:
        return []
    node = pattern.spec.node_name if rng.random() < 0.1 else ""
    claims = rng.choice(["none", "own", "common", "both"])
    bound = rng.random() < 0.5
    pods = []
    for index in range(rng.randrange(1, 9)):
        name, common = f"w{number}-{index}", f"common{rng.randrange(2)}"
        volumes = list(pattern.spec.volumes) if number == 0 else []
        if claims != "none":
            names = {"own": [name], "common": [common], "both": [name, common]}[claims]
            for claim in names:
                for obj in _claim(rng, claim, pattern.namespace, bound=bound):
                    snapshot.put(obj)
                source = ClaimVolumeSource(claim_name=claim)
                volumes.append(Volume(name=claim, persistent_volume_claim=source))
        metadata = replace(pattern.metadata, name=name, uid=name)
        spec = replace(pattern.spec, node_name=node, volumes=volumes)
        pods.append(replace(pattern, metadata=metadata, spec=spec))
    return pods


def _claim(rng: random.Random, name: str, namespace: str, *, bound: bool) -> list[KubeObject]:
    claim = make_pvc(name, namespace).size("1Gi").storage_class(CLASSES[0]).access("ReadWriteOnce")
    if not bound:
        return [claim.obj()]
    volume = make_pv(f"pv-{namespace}-{name}").size("1Gi").storage_class(CLASSES[0])
    volume = volume.csi(DRIVERS[0], name) if rng.random() < 0.8 else volume.ebs(name)
    return [claim.volume(f"pv-{namespace}-{name}").obj(), volume.bound_to(name, namespace).obj()]


def random_template(rng: random.Random) -> NodeTemplate:
    """A node of a kind that random clusters have, with a CSINode perhaps and some daemons."""
    node, csinode = _of_kind(rng, Node), _of_kind(rng, CSINode)
    if rng.random() < 0.7:
        node = replace(node, spec=NodeSpec())
    daemons = [
        make_pod(f"daemon-{index}").cpu("100m").labels(app="web").node(node.name)
        for index in range(rng.randrange(3))
    ]
    if daemons and rng.random() < 0.3:
        daemons[0].host_port(80)
    if daemons and rng.random() < 0.3:
        daemons[0].ephemeral("scratch", CLASSES[0])
    named = replace(csinode, metadata=replace(csinode.metadata, name=node.name))
    return NodeTemplate(
        node, named if rng.random() < 0.8 else None, tuple(one.obj() for one in daemons)
    )


def _of_kind(rng: random.Random, kind: type[K]) -> K:
    while True:
        found = random_object(rng)
        if isinstance(found, kind):
            return found
