"""Nodes that are there and of no use."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.checks.cluster import CheckedCluster, readiness
from bayplan.checks.finding import CheckKind, Example, Finding, Severity, found, plural, shortened
from bayplan.kube.meta import Condition
from bayplan.kube.nodes import Node

NOT_READY = CheckKind(
    "NodeNotReady",
    Severity.ERROR,
    "a node has not been ready for a while",
    "Nothing is placed on it, and its pods are evicted; volumes stay attached to it until it is"
    " ready again or gone.",
    "kubectl describe node NODE says what its kubelet misses. If the machine is gone for good:"
    " kubectl delete node NODE",
    (Node,),
)
KINDS = (NOT_READY,)


def _said(ready: Condition) -> str:
    parts = (ready.reason or ready.status, shortened(ready.message))
    return ": ".join(part for part in parts if part)


def find(subject: CheckedCluster) -> Iterator[Finding]:
    """Nodes that say so themselves, or of which nothing has been heard."""
    examples = [
        Example(node.name, _said(ready))
        for node in subject.nodes.values()
        if (ready := readiness(node)) is not None
        and ready.status != "True"
        and not subject.is_young(ready.last_transition_time)
        and not subject.is_young(node.metadata.creation_timestamp)
    ]
    if examples:
        text = f"{plural(len(examples), 'node')} not ready"
        yield found(NOT_READY, "Node", examples, text)
