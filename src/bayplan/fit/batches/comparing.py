"""Which groups compare nodes, so that where one pod goes can decide about the next."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.fit.batches.groups import Group
from bayplan.fit.signatures.terms import TermKind
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.pods import Pod


def compares_nodes(group: Group, own_labels: frozenset[str]) -> bool:
    """Whether more than one node's room decides about a group on new nodes."""
    signature = group.signature
    return (
        group.hinges
        or bool(signature.hard_spread or signature.terms.affinity)
        or any(placed.topology_key not in own_labels for placed in signature.terms.anti_affinity)
    )


def told_apart(group: Group, daemons: Iterable[Pod], snapshot: Snapshot) -> bool:
    """Whether daemons keep some pods of a group away and others not: the group was made without
    them, and its pods may differ by labels that only they read.
    """
    known, signatures = snapshot.cluster.namespaces, snapshot.cluster.signatures
    terms = [
        owned.term
        for daemon in daemons
        for owned in signatures.of(daemon).terms.owned
        if owned.kind is TermKind.KEEPS_OUT
    ]
    if not terms:
        return False
    namespace, labels = group.signature.namespace, [pod.metadata.labels for pod in group.pods]
    kept_out = ({term.concerns(namespace, one, known) for one in labels} for term in terms)
    return any(len(answers) > 1 for answers in kept_out)


def looks_at(group: Group, other: Group, snapshot: Snapshot) -> bool:
    """Whether a group wants to be near another one, or to be spread over where it is."""
    known, namespace, labels = snapshot.cluster.namespaces, other.signature.namespace, other.labels
    return any(
        placed.term.picks(namespace, labels, known) for placed in group.signature.terms.affinity
    ) or any(
        constraint.selector.matches(labels) and group.signature.namespace == namespace
        for constraint in group.signature.hard_spread
    )
