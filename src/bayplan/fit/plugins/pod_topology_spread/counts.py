"""What the filter and the score of topology spreading share: who is counted where.

A constraint counts pods of its namespace that match its selector and are not terminating, on nodes
that have every topology label the constraints speak of and (unless told otherwise) that the pod
itself could use.
"""

from __future__ import annotations

from bayplan.fit.plugins.node_affinity.filter import required_nodes
from bayplan.fit.plugins.taint_toleration import tolerated_nodes
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.signatures.terms import PodMatch, SpreadConstraint, everything_in
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import NodeSet
from bayplan.fit.state.topology import SlotCounts, SpreadCounts
from bayplan.kube.selectors import NOTHING, Selector


def spread_counts(
    constraint: SpreadConstraint, signature: PodSignature, cluster: Cluster, keys: frozenset[str]
) -> SpreadCounts:
    """Matching pods by domain of a constraint; `keys` are labels that a node must have to count."""
    sets, set_key = _eligible(constraint, signature, cluster, keys)

    def make() -> SpreadCounts:
        topology = cluster.topology(constraint.topology_key)
        counts = SpreadCounts(
            topology, (lambda slot: all(slot in s for s in sets)) if sets else None
        )
        for slot in cluster.slots.by_name.values():
            counts.join(slot, 1)
        return counts

    match = pods_to_spread(constraint.selector, signature)
    key = ("spread", constraint.topology_key, match, set_key)
    counts = cluster.pod_counts.counter(key, match, make)
    if not isinstance(counts, SpreadCounts):
        raise TypeError("a spread constraint counts by domain")
    return counts


def node_counts(selector: Selector, signature: PodSignature, cluster: Cluster) -> SlotCounts:
    """Matching pods by node."""
    match = pods_to_spread(selector, signature)
    key = ("spread by node", match)
    counts = cluster.pod_counts.counter(key, match, lambda: SlotCounts(cluster.slots.capacity))
    if not isinstance(counts, SlotCounts):
        raise TypeError("pods by node are counted by slot")
    return counts


def pods_to_spread(selector: Selector, signature: PodSignature) -> PodMatch:
    """The pods that a constraint counts; an empty selector counts none."""
    meant = NOTHING if selector.matches_everything else selector
    return PodMatch((everything_in([signature.namespace], meant),), terminating_too=False)


def _eligible(
    constraint: SpreadConstraint, signature: PodSignature, cluster: Cluster, keys: frozenset[str]
) -> tuple[list[NodeSet], tuple[object, ...]]:
    """The sets that a node must be in to be counted, and a key that stands for them."""
    sets: list[NodeSet] = []
    key: list[object] = []
    others = tuple(sorted(keys - {constraint.topology_key}))
    if others:
        sets.append(_having_labels(others, cluster))
        key.append(others)
    if constraint.honor_affinity and not signature.required_nodes.says_nothing:
        sets.append(required_nodes(signature, cluster))
        key.append(signature.required_nodes)
    if constraint.honor_taints:
        sets.append(tolerated_nodes(signature, cluster))
        key.append(("tolerating", signature.tolerations_key))
    return sets, tuple(key)


def _having_labels(labels: tuple[str, ...], cluster: Cluster) -> NodeSet:
    return cluster.node_sets.where(
        ("labels", labels), lambda node: all(label in node.metadata.labels for label in labels)
    )
