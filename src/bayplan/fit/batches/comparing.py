"""Which groups compare nodes, so that where one pod goes can decide about the next."""

from __future__ import annotations

from bayplan.fit.batches.groups import Group
from bayplan.fit.snapshot import Snapshot


def compares_nodes(group: Group, own_labels: frozenset[str]) -> bool:
    """Whether more than one node's room decides about a group on new nodes."""
    shape = group.shape
    return (
        group.hinges
        or bool(shape.hard_spread or shape.terms.affinity)
        or any(placed.topology_key not in own_labels for placed in shape.terms.anti_affinity)
    )


def looks_at(group: Group, other: Group, snapshot: Snapshot) -> bool:
    """Whether a group wants to be near another one, or to be spread over where it is."""
    known, namespace, labels = snapshot.cluster.namespaces, other.shape.namespace, other.labels
    return any(
        placed.term.picks(namespace, labels, known) for placed in group.shape.terms.affinity
    ) or any(
        constraint.selector.matches(labels) and group.shape.namespace == namespace
        for constraint in group.shape.hard_spread
    )
