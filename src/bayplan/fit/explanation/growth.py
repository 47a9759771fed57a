"""One more node of a kind that the cluster has: a clean copy, with its CSINode and DaemonSet pods.

Nodes of one kind have the same size, zone, instance type, taints and volume limits. A copy gets a
name of its own, and none of the trouble that the original may be in (a cordon, a taint of a state).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from bayplan.fit.explanation.fix import FixKind, Step
from bayplan.fit.explanation.steps.moves import is_bound_to_its_node
from bayplan.fit.explanation.steps.taints import is_lifecycle_taint, uncordoned
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.cluster import Cluster
from bayplan.kube.labels import HOSTNAME, INSTANCE_TYPE, ZONE
from bayplan.kube.meta import KubeObject, ObjectMeta
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSINode

MOST_KINDS = 24
NodeKind = tuple[object, ...]


def one_more_node(snapshot: Snapshot, pod: Pod) -> Iterator[Step]:
    """For each kind of node on which the pod would fit, one more of it."""
    cluster = snapshot.cluster
    for original, count in _kinds(cluster):
        name = _new_name(cluster, original.name)
        puts = copy_of(snapshot, original, name)
        with snapshot.fork():
            for obj in puts:
                snapshot.put(obj)
            fits = snapshot.refusal(pod, name) is None
        if fits:
            text = f"add one node like {original.name}{_described(original)}"
            # Of kinds that all will do, the most usual is the likeliest to be at hand.
            yield Step(FixKind.ADD_NODE, text, 4.0 + 0.5 / count, pod, puts)


def copy_of(snapshot: Snapshot, node: Node, name: str) -> tuple[KubeObject, ...]:
    """A new node like another: the node, its CSINode, and the pods that every such node runs."""
    cluster = snapshot.cluster
    fresh = uncordoned(node)
    taints = [taint for taint in fresh.spec.taints if not is_lifecycle_taint(taint)]
    labels = {k: name if v == node.name else v for k, v in node.metadata.labels.items()}
    labels[HOSTNAME] = name
    copy = replace(
        fresh,
        metadata=ObjectMeta(name=name, labels=labels, annotations=node.metadata.annotations),
        spec=replace(fresh.spec, taints=taints, provider_id=""),
    )
    csinode = cluster.csinodes.get(node.name)
    return (copy, *_csinode_copy(csinode, name), *_daemons(snapshot, node.name, name))


def _csinode_copy(csinode: CSINode | None, name: str) -> list[KubeObject]:
    if csinode is None:
        return []
    meta = ObjectMeta(name=name, annotations=csinode.metadata.annotations)
    return [replace(csinode, metadata=meta)]


def _daemons(snapshot: Snapshot, node: str, copy: str) -> list[KubeObject]:
    return [
        replace(
            pod,
            metadata=replace(pod.metadata, name=f"{pod.name}-{copy}", uid=""),
            spec=replace(pod.spec, node_name=copy, volumes=[], affinity=None),
        )
        for pod in snapshot.pods_on(node)
        if is_bound_to_its_node(pod)
    ]


def _kinds(cluster: Cluster) -> list[tuple[Node, int]]:
    """One node of each kind with how many there are, the most usual kind first."""
    firsts: dict[NodeKind, Node] = {}
    counts: Counter[NodeKind] = Counter()
    for name in sorted(cluster.slots.by_name):
        node = cluster.node_at(cluster.slots.by_name[name])
        kind = _kind(node, cluster.csinodes.get(name))
        firsts.setdefault(kind, node)
        counts[kind] += 1
    return [(firsts[kind], count) for kind, count in counts.most_common(MOST_KINDS)]


def _kind(node: Node, csinode: CSINode | None) -> NodeKind:
    labels = node.metadata.labels
    drivers = csinode.spec.drivers if csinode else []
    return (
        tuple(sorted((name, str(value)) for name, value in node.status.allocatable.items())),
        tuple(sorted((k, v) for k, v in labels.items() if v != node.name and k != HOSTNAME)),
        tuple((t.key, t.value, t.effect) for t in node.spec.taints if not is_lifecycle_taint(t)),
        tuple((d.name, d.allocatable.count if d.allocatable else None) for d in drivers),
    )


def _described(node: Node) -> str:
    labels = node.metadata.labels
    said = [labels[key] for key in (INSTANCE_TYPE, ZONE) if key in labels]
    return f" ({', '.join(said)})" if said else ""


def _new_name(cluster: Cluster, like: str) -> str:
    name = f"{like}-more"
    while name in cluster.slots.by_name:
        name += "-more"
    return name
