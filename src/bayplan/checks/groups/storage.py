"""Volumes, claims and classes that no node can use, and pods on nodes that do not exist."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.findings import CheckKind, Example, Finding, Severity, make_finding, plural
from bayplan.kube.nodes import Node, NodeSelector, NodeSelectorTerm
from bayplan.kube.pods import Pod
from bayplan.kube.selectors import compile_node_selector
from bayplan.kube.storage import (
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
)

VOLUME = CheckKind(
    "VolumeOutOfReach",
    Severity.WARNING,
    "the node affinity of a bound volume matches no node",
    "Pods that use the claim are unschedulable until there is a matching node.",
    "Add a matching node: kubectl get pv NAME -o jsonpath='{.spec.nodeAffinity}' shows its labels."
    " If the node of a local volume is gone for good, its data is lost: delete claim and volume.",
    (Node, PersistentVolume),
)
CLASS = CheckKind(
    "ClassOutOfReach",
    Severity.WARNING,
    "claims wait for volumes of a class whose allowedTopologies match no node",
    "No volume is provisioned, and the claims' pods are unschedulable.",
    "Add a matching node, or recreate the class with other allowedTopologies.",
    (Node, StorageClass, PersistentVolumeClaim),
)
CLAIM = CheckKind(
    "ClaimForGoneNode",
    Severity.WARNING,
    "a claim waits for a volume on a selected node that does not exist",
    "The provisioner cannot find the node's topology, and the claim stays Pending.",
    f"Let the scheduler select a node again: kubectl annotate pvc NAME {SELECTED_NODE}-",
    (Node, PersistentVolumeClaim),
)
POD = CheckKind(
    "PodOnGoneNode",
    Severity.WARNING,
    "a pod is bound to a node that does not exist",
    "It does not run, and a StatefulSet does not replace it.",
    "Make sure that the machine is gone, then: kubectl delete pod NAME --grace-period=0 --force",
    (Node, Pod),
)
KINDS = (VOLUME, CLASS, CLAIM, POD)


def find(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield findings about volumes, classes, claims and pods that need a missing node."""
    yield from _volumes(cluster)
    yield from _classes(cluster)
    yield from _claims(cluster)
    yield from _pods(cluster)


class _Labels:
    """An index of nodes by label, so that not every volume is compared with every node."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._all = list(nodes)
        self._having: defaultdict[tuple[str, str], list[Node]] = defaultdict(list)
        for node in self._all:
            for label in node.metadata.labels.items():
                self._having[label].append(node)

    def reach(self, selector: NodeSelector) -> bool:
        """Return whether a node matches."""
        matcher = compile_node_selector(selector)
        if matcher.errors:
            return True  # invalid selectors are not reported here
        return any(
            matcher.matches(node)
            for term in selector.node_selector_terms
            for node in self._likely(term)
        )

    def _likely(self, term: NodeSelectorTerm) -> list[Node]:
        """Return a small superset of the nodes that a term matches."""
        found_by_label = [
            [node for value in one.values for node in self._having.get((one.key, value), ())]
            for one in term.match_expressions
            if one.operator == "In"
        ]
        return min(found_by_label, key=len, default=self._all)

    def allow(self, terms: Iterable[TopologySelectorTerm]) -> bool:
        """Return whether a node matches the allowedTopologies of a class."""
        return any(
            all(
                node.metadata.labels.get(one.key) in one.values
                for one in term.match_label_expressions
            )
            for term in terms
            for node in self._all
        )


def _volumes(cluster: CheckedCluster) -> Iterator[Finding]:
    labels, known = _Labels(cluster.nodes.values()), dict[str, bool]()
    examples = []
    for volume in cluster.all(PersistentVolume):
        affinity, claim = volume.spec.node_affinity, volume.spec.claim_ref
        if claim is None or affinity is None or affinity.required is None:
            continue
        if volume.status.phase in {"Released", "Failed"}:
            continue
        written = repr(affinity.required)
        if written not in known:
            known[written] = labels.reach(affinity.required)
        if not known[written]:
            examples.append(Example(volume.name, f"claim {claim.namespace}/{claim.name}"))
    if examples:
        text = f"{plural(len(examples), 'volume')} whose node affinity matches no node"
        yield make_finding(VOLUME, "PersistentVolume", examples, text)


def _classes(cluster: CheckedCluster) -> Iterator[Finding]:
    labels = _Labels(cluster.nodes.values())
    out = {
        one.name
        for one in cluster.all(StorageClass)
        if one.allowed_topologies and not labels.allow(one.allowed_topologies)
    }
    waiting: defaultdict[str, list[Example]] = defaultdict(list)
    for claim in cluster.all(PersistentVolumeClaim):
        name = claim.spec.storage_class_name or ""
        if name in out and not claim.spec.volume_name and cluster.reports(claim.key):
            waiting[name].append(Example(claim.key))
    for name, claims in sorted(waiting.items()):
        text = f"{plural(len(claims), 'claim')} of class {name}, whose topologies match no node"
        yield make_finding(CLASS, "PersistentVolumeClaim", claims, text, about=name)


def _claims(cluster: CheckedCluster) -> Iterator[Finding]:
    examples = [
        Example(claim.key, f"selected for node {node}")
        for claim in cluster.all(PersistentVolumeClaim)
        if not claim.spec.volume_name
        and cluster.reports(claim.key)
        and (node := claim.metadata.annotations.get(SELECTED_NODE, ""))
        and node not in cluster.nodes
        and not cluster.is_young(claim.metadata.creation_timestamp)
    ]
    if examples:
        text = f"{plural(len(examples), 'claim')} with a selected node that does not exist"
        yield make_finding(CLAIM, "PersistentVolumeClaim", examples, text)


def _pods(cluster: CheckedCluster) -> Iterator[Finding]:
    examples = [
        Example(pod.key, f"node {pod.spec.node_name}")
        for pod in cluster.all(Pod)
        if pod.spec.node_name
        and cluster.reports(pod.key)
        and pod.spec.node_name not in cluster.nodes
        and not pod.is_terminal
        and not cluster.is_young(pod.metadata.creation_timestamp)
    ]
    if examples:
        text = f"{plural(len(examples), 'pod')} on nodes that do not exist"
        yield make_finding(POD, "Pod", examples, text)
