"""One more node of a kind that the cluster has: a node of a template after it.

Nodes of one kind have the same size, zone, instance type, taints and volume limits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from bayplan.fit.batches.template import Template
from bayplan.fit.explanation.fix import FixKind, Step
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.cluster import Cluster
from bayplan.kube.labels import HOSTNAME, INSTANCE_TYPE, ZONE
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSINode
from bayplan.kube.tolerations import tells_state

MOST_KINDS = 24
NodeKind = tuple[object, ...]


class Growth(NamedTuple):
    """New nodes that would help, and of how many kinds were tried."""

    steps: list[Step]
    kinds: int


def one_more_node(snapshot: Snapshot, pod: Pod) -> Growth:
    """For each kind of node on which the pod would fit, one more of it."""
    kinds = node_kinds(snapshot.cluster)[:MOST_KINDS]
    return Growth(list(_more_of(snapshot, pod, kinds)), len(kinds))


def _more_of(snapshot: Snapshot, pod: Pod, kinds: list[list[Node]]) -> Iterator[Step]:
    cluster = snapshot.cluster
    for nodes in kinds:
        original, count = nodes[0], len(nodes)
        name = _new_name(cluster, original.name)
        puts = tuple(Template.like(snapshot, original.name).objects(name))
        with snapshot.fork():
            for obj in puts:
                snapshot.put(obj)
            fits = snapshot.refusal(pod, name) is None
        if fits:
            text = f"add one node like {original.name}{_described(original)}"
            # Of kinds that all will do, the most usual is the likeliest to be at hand.
            yield Step(FixKind.ADD_NODE, text, 4.0 + 0.5 / count, pod, puts)


def node_kinds(cluster: Cluster) -> list[list[Node]]:
    """The nodes of each kind by name, the most usual kind first."""
    found: dict[NodeKind, list[Node]] = defaultdict(list)
    for name in sorted(cluster.slots.by_name):
        node = cluster.node_at(cluster.slots.by_name[name])
        found[_kind(node, cluster.csinodes.get(name))].append(node)
    return sorted(found.values(), key=len, reverse=True)


def _kind(node: Node, csinode: CSINode | None) -> NodeKind:
    labels = node.metadata.labels
    drivers = csinode.spec.drivers if csinode else []
    return (
        tuple(sorted((name, str(value)) for name, value in node.status.allocatable.items())),
        tuple(sorted((k, v) for k, v in labels.items() if v != node.name and k != HOSTNAME)),
        tuple((t.key, t.value, t.effect) for t in node.spec.taints if not tells_state(t)),
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
