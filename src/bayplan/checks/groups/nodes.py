"""Nodes that are not ready."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.checks.cluster import CheckedCluster, readiness
from bayplan.checks.findings import (
    CheckKind,
    Example,
    Finding,
    Severity,
    make_finding,
    plural,
    shortened,
)
from bayplan.kube.meta import Condition
from bayplan.kube.nodes import Node

NOT_READY = CheckKind(
    "NodeNotReady",
    Severity.ERROR,
    "a node has not been ready for a while",
    "No pod is scheduled to it, and its pods are evicted; volumes stay attached to it until it is"
    " ready again or deleted.",
    "See the conditions with kubectl describe node NODE. If the machine is gone for good: kubectl"
    " delete node NODE",
    (Node,),
)
KINDS = (NOT_READY,)


def _detail(ready: Condition) -> str:
    parts = (ready.reason or ready.status, shortened(ready.message))
    return ": ".join(part for part in parts if part)


def find(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield a finding about nodes whose Ready condition is False or Unknown."""
    examples = [
        Example(node.name, _detail(ready))
        for node in cluster.nodes.values()
        if (ready := readiness(node)) is not None
        and ready.status != "True"
        and not cluster.is_young(ready.last_transition_time)
        and not cluster.is_young(node.metadata.creation_timestamp)
    ]
    if examples:
        text = f"{plural(len(examples), 'node')} not ready"
        yield make_finding(NOT_READY, "Node", examples, text)
