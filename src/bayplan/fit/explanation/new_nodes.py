"""One more node: of a kind that the cluster has, or of one that is changed so that the pod fits.

Nodes of one kind have the same size, zone, instance type, taints and volume limits. A new node is a
clean copy of one, with its CSINode and its DaemonSet pods; kinds whose nodes the pod may use at all
are tried first. Only where none of them will do is a copy changed, as the plugins propose that
refuse the pod on it; a change is tried like everything else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace as with_fields
from typing import NamedTuple

import numpy as np

from bayplan.fit.batches.template import NodeTemplate
from bayplan.fit.decision import Refusal
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.explanation.trial import SnapshotTrial
from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import ReadScope
from bayplan.fit.plugins.explanation import ChangedNode, NodeChange
from bayplan.fit.plugins.registry import node_changes, node_labels_read
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.cluster import ClusterState
from bayplan.kube.labels import HOSTNAME, INSTANCE_TYPE, ZONE
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSINode
from bayplan.kube.tolerations import is_status_taint

MOST_KINDS = 24
NodeKind = tuple[object, ...]
GROUP_LABELS = (
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "alpha.eksctl.io/nodegroup-name",
    "kops.k8s.io/instancegroup",
)
"""Labels of the node group of a cloud."""


class NewNodeSteps(NamedTuple):
    """Steps that add a node, and how many kinds of nodes were tried."""

    steps: list[Step]
    kinds: int


def propose_new_nodes(snapshot: Snapshot, pod: Pod) -> NewNodeSteps:
    """Propose one more node of each kind on which the pod would fit; or of a kind that is changed
    as little as will do.
    """
    every = node_kinds(snapshot.cluster, _labels_that_matter(snapshot.cluster, pod))
    kinds = _likely_first(snapshot, pod, every)[:MOST_KINDS]
    steps = list(_more_of(snapshot, pod, kinds, AS_IT_IS))
    for change in node_changes():
        if not steps:
            steps = list(_more_of(snapshot, pod, kinds, change))
    return NewNodeSteps(steps, len(kinds))


def _more_of(
    snapshot: Snapshot, pod: Pod, kinds: list[list[Node]], change: NodeChange
) -> Iterator[Step]:
    for nodes in kinds:
        original, count = nodes[0], len(nodes)
        template = NodeTemplate.from_node(snapshot, original.name)
        name = _new_name(snapshot.cluster, original.name)
        new = _changed(snapshot, pod, template, name, change)
        if new is None:
            continue
        puts = tuple(with_fields(template, node=new.node).objects(name))
        if _refusal_on_new(snapshot, pod, name, puts) is None:
            text = f"add one node like {original.name}{_described(original)}{new.difference}"
            # Of kinds that all will do, the most frequent is the most likely to be available.
            yield Step(change.kind, text, change.cost + 0.5 / count, pod, puts)


def _changed(
    snapshot: Snapshot, pod: Pod, template: NodeTemplate, name: str, change: NodeChange
) -> ChangedNode | None:
    """Return a new node as a plugin would change it; None if it would not."""
    if change is AS_IT_IS:
        return ChangedNode(template.node, "")
    with snapshot.fork():
        for obj in template.objects(name):
            snapshot.put(obj)
        refusal = snapshot.refusal(pod, name)
        if refusal is None:
            return None
        return change.change(SnapshotTrial(snapshot, pod, name, refusal))


def _refusal_on_new(
    snapshot: Snapshot, pod: Pod, name: str, objects: Iterable[KubeObject]
) -> Refusal | None:
    """Return the refusal of a pod on a new node; None if it fits."""
    with snapshot.fork():
        for obj in objects:
            snapshot.put(obj)
        return snapshot.refusal(pod, name)


AS_IT_IS = NodeChange(lambda _: None, FixKind.ADD_NODE, 4.0)
"""The new node is like the others of its kind."""


def _likely_first(snapshot: Snapshot, pod: Pod, kinds: list[list[Node]]) -> list[list[Node]]:
    """Return the kinds first that the pod may use by their labels, taints and reach."""
    evaluation = snapshot.evaluation(pod)
    if not isinstance(evaluation, Evaluation) or len(kinds) <= MOST_KINDS:
        return kinds
    by_name = snapshot.cluster.slots.by_name
    slots = np.array([by_name[nodes[0].name] for nodes in kinds], dtype=np.intp)
    refused = np.zeros(len(kinds), dtype=np.int64)
    for one in evaluation.filters:
        if one.is_active and one.reads is ReadScope.NODE:
            refused += ~one.passes(slots)
    return [kinds[at] for at in np.argsort(refused, kind="stable").tolist()]


def _labels_that_matter(cluster: ClusterState, pod: Pod) -> frozenset[str]:
    """Return the labels by which kinds differ for a pod: those that plugins read, topology keys,
    and those of instance type and node group.
    """
    return node_labels_read(pod, cluster) | {INSTANCE_TYPE, *GROUP_LABELS, *cluster.topologies}


def node_kinds(cluster: ClusterState, labels: Collection[str] | None = None) -> list[list[Node]]:
    """Return the nodes of each kind by name, the most frequent kind first."""
    found: dict[NodeKind, list[Node]] = defaultdict(list)
    for name in sorted(cluster.slots.by_name):
        node = cluster.node_at(cluster.slots.by_name[name])
        found[_kind(node, cluster.csinodes.get(name), labels)].append(node)
    return sorted(found.values(), key=len, reverse=True)


def _kind(node: Node, csinode: CSINode | None, read: Collection[str] | None) -> NodeKind:
    labels, name = node.metadata.labels, node.name
    keys = sorted(labels) if read is None else read
    drivers = csinode.spec.drivers if csinode else []
    return (
        tuple(sorted(node.status.allocatable.items())),
        tuple((k, labels[k]) for k in keys if k in labels and labels[k] != name and k != HOSTNAME),
        tuple((t.key, t.value, t.effect) for t in node.spec.taints if not is_status_taint(t)),
        tuple((d.name, d.allocatable.count if d.allocatable else None) for d in drivers),
    )


def _described(node: Node) -> str:
    labels = node.metadata.labels
    described = [labels[key] for key in (INSTANCE_TYPE, ZONE) if key in labels]
    described += [f"group {labels[key]}" for key in GROUP_LABELS if key in labels][:1]
    return f" ({', '.join(described)})" if described else ""


def _new_name(cluster: ClusterState, like: str) -> str:
    name = f"{like}-more"
    while name in cluster.slots.by_name:
        name += "-more"
    return name
