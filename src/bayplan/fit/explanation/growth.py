"""One more node: of a kind that the cluster has, in a zone that a volume is bound to, or bigger.

Nodes of one kind have the same size, zone, instance type, taints and volume limits. A new node is a
clean copy of one, with its CSINode and its DaemonSet pods; kinds whose nodes the pod may use at all
are tried first. Only where none of them will do is a copy changed: its zone, where a bound volume
can be reached from no node that is there, or its size, where the pod is too large for all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace as with_fields
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from bayplan.fit import amounts
from bayplan.fit.batches.template import Template
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Reads, amount_filter
from bayplan.fit.plugins.registry import node_labels_read
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.volumes.topology import ZONE_LABELS, zone_needs
from bayplan.kube.labels import HOSTNAME, INSTANCE_TYPE, ZONE
from bayplan.kube.meta import Labels
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.quantity import Style, format_amount
from bayplan.kube.resources import CPU
from bayplan.kube.storage import CSINode, PersistentVolume
from bayplan.kube.tolerations import tells_state

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
"""Labels that say which group of a cloud a node is of."""


class NewNode(NamedTuple):
    """A node as a new one is to be, and in what it is not like the others of its kind."""

    node: Node
    but: str = ""
    cost: float = 4.0
    kind: FixKind = FixKind.ADD_NODE


Change = Callable[[Node], NewNode | None]
"""What a clean copy of a node is changed to; None if there is no reason to."""


class Growth(NamedTuple):
    """New nodes that would help, and of how many kinds were tried."""

    steps: list[Step]
    kinds: int


def one_more_node(snapshot: Snapshot, pod: Pod) -> Growth:
    """For each kind of node on which the pod would fit, one more of it; or of a kind that is
    changed as little as will do.
    """
    every = node_kinds(snapshot.cluster, _labels_that_matter(snapshot.cluster, pod))
    kinds = _likely_first(snapshot, pod, every)[:MOST_KINDS]
    steps = list(_more_of(snapshot, pod, kinds, _as_it_is))
    for changed in (_in_zone_of(snapshot, pod), _bigger(snapshot, pod)):
        if not steps:
            steps = list(_more_of(snapshot, pod, kinds, changed))
    return Growth(steps, len(kinds))


def _more_of(
    snapshot: Snapshot, pod: Pod, kinds: list[list[Node]], change: Change
) -> Iterator[Step]:
    cluster = snapshot.cluster
    for nodes in kinds:
        original, count = nodes[0], len(nodes)
        template = Template.like(snapshot, original.name)
        new = change(template.node)
        if new is None:
            continue
        name = _new_name(cluster, original.name)
        puts = tuple(with_fields(template, node=new.node).objects(name))
        with snapshot.fork():
            for obj in puts:
                snapshot.put(obj)
            fits = snapshot.refusal(pod, name) is None
        if fits:
            text = f"add one node like {original.name}{_described(original)}{new.but}"
            # Of kinds that all will do, the most usual is the likeliest to be at hand.
            yield Step(new.kind, text, new.cost + 0.5 / count, pod, puts)


def _as_it_is(node: Node) -> NewNode:
    return NewNode(node)


def _in_zone_of(snapshot: Snapshot, pod: Pod) -> Change:
    """The node in the zone of the volumes that the pod is bound to."""
    wanted: Labels = {}
    for pv in _bound(snapshot.cluster, pod):
        wanted |= _zone_labels(pv)

    def change(node: Node) -> NewNode | None:
        there = {key: value for key, value in wanted.items() if key in node.metadata.labels}
        if not there or all(node.metadata.labels[key] == there[key] for key in there):
            return None
        labels = {**node.metadata.labels, **wanted}
        said = ", ".join(sorted(set(there.values())))
        changed = replace(node, metadata=replace(node.metadata, labels=labels))
        return NewNode(changed, f", but in {said}, where its volumes are", 4.6)

    return change


def _zone_labels(pv: PersistentVolume) -> Labels:
    """The labels of zones and regions that a volume's affinity, or its own labels, ask for."""
    labels = {need.label: min(need.values) for need in zone_needs(pv)}
    required = pv.spec.node_affinity.required if pv.spec.node_affinity else None
    for term in required.node_selector_terms[:1] if required else ():
        for e in term.match_expressions:
            is_zone = e.key in ZONE_LABELS or e.key.endswith(("/zone", "/region"))
            if is_zone and e.operator == "In" and e.values:
                labels[e.key] = e.values[0]
    return labels


def _bound(cluster: Cluster, pod: Pod) -> list[PersistentVolume]:
    storage = cluster.storage
    claims = (storage.claim_of(pod, volume)[1] for volume in pod.spec.volumes)
    names = (claim.spec.volume_name for claim in claims if claim is not None)
    return [storage.volumes[name] for name in names if name in storage.volumes]


def _bigger(snapshot: Snapshot, pod: Pod) -> Change:
    """The node with enough of what even an empty one of its kind has too little of."""

    def change(node: Node) -> NewNode | None:
        short = _short_when_new(snapshot, pod, node)
        if not short:
            return None
        allocatable = dict(node.status.allocatable)
        for name, amount in short.items():
            allocatable[name] = _rounded(name, amount)
        said = " and ".join(amounts.of(name, amount) for name, amount in short.items())
        status = replace(node.status, allocatable=allocatable)
        changed = replace(node, status=status)
        return NewNode(changed, f", but bigger: with {said}", 6.0, FixKind.ADD_BIGGER_NODE)

    return change


def _short_when_new(snapshot: Snapshot, pod: Pod, node: Node) -> dict[str, int]:
    """By resource that a new node of this kind is short of, how much it would have to have."""
    name = _new_name(snapshot.cluster, node.name)
    with snapshot.fork():
        for obj in Template.like(snapshot, node.name).objects(name):
            snapshot.put(obj)
        evaluation, cluster = snapshot.evaluation(pod), snapshot.cluster
        filters = evaluation.filters if isinstance(evaluation, Evaluation) else ()
        resources = amount_filter(filters)
        slot = cluster.slots.by_name[name]
        short = resources.shortages(slot) if resources else {}
        columns, has = cluster.resources.columns, cluster.resources.allocatable[slot]
        found = {
            resource: int(has[columns[resource]]) + wanted - free
            for resource, (wanted, free) in short.items()
        }
    return {resource: _whole(resource, amount) for resource, amount in found.items()}


def _whole(resource: str, amount: int) -> int:
    """The next whole CPU, or GiB, above an amount."""
    unit = 1000 if resource == CPU else 2**30 if amounts.is_in_bytes(resource) else 1
    return -(-amount // unit) * unit


def _rounded(resource: str, amount: int) -> str:
    if resource == CPU:
        return str(amount // 1000)
    return format_amount(amount, Style.BINARY if amounts.is_in_bytes(resource) else Style.DECIMAL)


def _likely_first(snapshot: Snapshot, pod: Pod, kinds: list[list[Node]]) -> list[list[Node]]:
    """The kinds that the pod may use by their labels, taints and reach first."""
    evaluation = snapshot.evaluation(pod)
    if not isinstance(evaluation, Evaluation) or len(kinds) <= MOST_KINDS:
        return kinds
    by_name = snapshot.cluster.slots.by_name
    slots = np.array([by_name[nodes[0].name] for nodes in kinds], dtype=np.intp)
    refused = np.zeros(len(kinds), dtype=np.int64)
    for one in evaluation.filters:
        if one.has_say and one.reads is Reads.NODE:
            refused += ~one.passes(slots)
    return [kinds[at] for at in np.argsort(refused, kind="stable").tolist()]


def _labels_that_matter(cluster: Cluster, pod: Pod) -> frozenset[str]:
    """The labels by which kinds differ for a pod: those that it reads, those that say where nodes
    stand, to it or to others, and what they are.
    """
    said = (*ZONE_LABELS, INSTANCE_TYPE, *GROUP_LABELS, *cluster.topologies)
    of_volumes = (key for pv in _bound(cluster, pod) for key in _zone_labels(pv))
    return node_labels_read(pod) | frozenset((*said, *of_volumes))


def node_kinds(cluster: Cluster, labels: Collection[str] | None = None) -> list[list[Node]]:
    """The nodes of each kind by name, the most usual kind first; only some labels may matter."""
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
        tuple((t.key, t.value, t.effect) for t in node.spec.taints if not tells_state(t)),
        tuple((d.name, d.allocatable.count if d.allocatable else None) for d in drivers),
    )


def _described(node: Node) -> str:
    labels = node.metadata.labels
    said = [labels[key] for key in (INSTANCE_TYPE, ZONE) if key in labels]
    said += [f"group {labels[key]}" for key in GROUP_LABELS if key in labels][:1]
    return f" ({', '.join(said)})" if said else ""


def _new_name(cluster: Cluster, like: str) -> str:
    name = f"{like}-more"
    while name in cluster.slots.by_name:
        name += "-more"
    return name
