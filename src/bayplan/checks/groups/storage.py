"""Claims, volumes and classes of places where there is no node, and pods of nodes that are gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from bayplan.checks.cluster import CheckedCluster
from bayplan.checks.finding import CheckKind, Example, Finding, Severity, found, plural
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
    "a volume that belongs to a claim can be reached from no node",
    "Whatever uses the claim fits nowhere until there is a node in the right place.",
    "Add a node there: kubectl get pv NAME -o jsonpath='{.spec.nodeAffinity}' says where. If the"
    " node of a local volume is gone for good, so is what was on it: delete claim and volume.",
    (Node, PersistentVolume),
)
CLASS = CheckKind(
    "ClassOutOfReach",
    Severity.WARNING,
    "claims wait that are of a class whose allowedTopologies match no node",
    "No volume is made that a node could reach, and the claims' pods fit nowhere.",
    "Add a node there, or correct the class's allowedTopologies (it has to be made anew).",
    (Node, StorageClass, PersistentVolumeClaim),
)
CLAIM = CheckKind(
    "ClaimForGoneNode",
    Severity.WARNING,
    "a claim waits for its volume to be made for a node that is gone",
    "The provisioner cannot tell where the volume is to be, and the claim stays Pending.",
    f"kubectl annotate pvc NAME {SELECTED_NODE}- lets the scheduler choose again.",
    (Node, PersistentVolumeClaim),
)
POD = CheckKind(
    "PodOnGoneNode",
    Severity.WARNING,
    "a pod is bound to a node that does not exist",
    "It does not run, and a StatefulSet makes no other in its place.",
    "kubectl delete pod NAME --grace-period=0 --force, once the machine is certainly gone.",
    (Node, Pod),
)
KINDS = (VOLUME, CLASS, CLAIM, POD)


def find(subject: CheckedCluster) -> Iterator[Finding]:
    """Claims, volumes and classes out of reach of every node, and pods of nodes that are gone."""
    yield from _volumes(subject)
    yield from _classes(subject)
    yield from _claims(subject)
    yield from _pods(subject)


class _Labels:
    """Nodes by label, so that not every node is asked of every volume."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._all = list(nodes)
        self._having: defaultdict[tuple[str, str], list[Node]] = defaultdict(list)
        for node in self._all:
            for label in node.metadata.labels.items():
                self._having[label].append(node)

    def reach(self, selector: NodeSelector) -> bool:
        """Whether a node matches."""
        matcher = compile_node_selector(selector)
        if matcher.errors:
            return True  # what cannot be read is not this group's trouble
        return any(
            matcher.matches(node)
            for term in selector.node_selector_terms
            for node in self._likely(term)
        )

    def _likely(self, term: NodeSelectorTerm) -> list[Node]:
        """Nodes among which are all that a term matches: the fewest that are easily found."""
        found_by_label = [
            [node for value in one.values for node in self._having.get((one.key, value), ())]
            for one in term.match_expressions
            if one.operator == "In"
        ]
        return min(found_by_label, key=len, default=self._all)

    def allow(self, terms: Iterable[TopologySelectorTerm]) -> bool:
        """Whether a node is where a class makes volumes."""
        return any(
            all(
                node.metadata.labels.get(one.key) in one.values
                for one in term.match_label_expressions
            )
            for term in terms
            for node in self._all
        )


def _volumes(subject: CheckedCluster) -> Iterator[Finding]:
    labels, known = _Labels(subject.nodes.values()), dict[str, bool]()
    examples = []
    for volume in subject.all(PersistentVolume):
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
        text = f"{plural(len(examples), 'volume')} that no node can reach"
        yield found(VOLUME, "PersistentVolume", examples, text)


def _classes(subject: CheckedCluster) -> Iterator[Finding]:
    labels = _Labels(subject.nodes.values())
    out = {
        one.name
        for one in subject.all(StorageClass)
        if one.allowed_topologies and not labels.allow(one.allowed_topologies)
    }
    waiting: defaultdict[str, list[Example]] = defaultdict(list)
    for claim in subject.all(PersistentVolumeClaim):
        name = claim.spec.storage_class_name or ""
        if name in out and not claim.spec.volume_name and subject.tells_of(claim.key):
            waiting[name].append(Example(claim.key))
    for name, claims in sorted(waiting.items()):
        text = f"{plural(len(claims), 'claim')} of class {name}, for which there is no node"
        yield found(CLASS, "PersistentVolumeClaim", claims, text, about=name)


def _claims(subject: CheckedCluster) -> Iterator[Finding]:
    examples = [
        Example(claim.key, f"selected for node {node}")
        for claim in subject.all(PersistentVolumeClaim)
        if not claim.spec.volume_name
        and subject.tells_of(claim.key)
        and (node := claim.metadata.annotations.get(SELECTED_NODE, ""))
        and node not in subject.nodes
        and not subject.is_young(claim.metadata.creation_timestamp)
    ]
    if examples:
        text = f"{plural(len(examples), 'claim')} to be made for nodes that are gone"
        yield found(CLAIM, "PersistentVolumeClaim", examples, text)


def _pods(subject: CheckedCluster) -> Iterator[Finding]:
    examples = [
        Example(pod.key, f"node {pod.spec.node_name}")
        for pod in subject.all(Pod)
        if pod.spec.node_name
        and subject.tells_of(pod.key)
        and pod.spec.node_name not in subject.nodes
        and not pod.is_terminal
        and not subject.is_young(pod.metadata.creation_timestamp)
    ]
    if examples:
        text = f"{plural(len(examples), 'pod')} on nodes that are gone"
        yield found(POD, "Pod", examples, text)
