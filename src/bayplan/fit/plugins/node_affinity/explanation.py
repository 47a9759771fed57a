"""Label mismatches, and what would lift them: give the node the label, or let the pod ask for what
the node has.

Labels that Kubernetes or a cloud keeps (zones, host names, architectures) describe the node; for
those only the pod's side is proposed. To change a label that a node has is worse than to add one:
it may be true.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Filter
from bayplan.fit.plugins.trial import Explaining, Lack, Lacks, Proposal, Trial, lacks_by_node
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import SlotArray
from bayplan.kube.meta import Labels
from bayplan.kube.nodes import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.kube.pods import Affinity, NodeAffinity, Pod
from bayplan.kube.selectors import compile_node_term

_KEPT_DOMAINS = (
    "kubernetes.io",
    "k8s.io",
    "csi.aws.com",
    "amazonaws.com",
    "karpenter.sh",
    "gke.io",
    "cloud.google.com",
    "azure.com",
    "nvidia.com",
    "amd.com",
    "intel.com",
)
_FREE_DOMAIN = "node-role.kubernetes.io"


class Mismatch(NamedTuple):
    """What a pod wants of a node's labels that the node does not have."""

    selector: Labels
    """The entries of the nodeSelector."""
    term: NodeSelectorTerm | None
    """The term of required affinity that is nearest to matching."""
    expressions: list[NodeSelectorRequirement]
    """The expressions of that term."""


def mismatch(pod: Pod, node: Node) -> Mismatch:
    """What keeps a pod's selector and required affinity from matching a node."""
    labels = node.metadata.labels
    wrong = {k: v for k, v in pod.spec.node_selector.items() if labels.get(k) != v}
    unmet = [
        (term, _unmet(term, node))
        for term in _terms(pod)
        if term.match_expressions and not term.match_fields
    ]
    if not unmet or any(not expressions for _, expressions in unmet):
        return Mismatch(wrong, None, [])
    term, expressions = min(unmet, key=lambda one: len(one[1]))
    return Mismatch(wrong, term, expressions)


def label_keys(pod: Pod) -> frozenset[str]:
    """The labels of nodes that a pod's selector and required affinity speak of."""
    expressions = (e.key for term in _terms(pod) for e in term.match_expressions)
    return frozenset((*pod.spec.node_selector, *expressions))


def label_node(trial: Trial) -> Iterable[Step]:
    """Change the node's labels to what the pod wants."""
    found = mismatch(trial.pod, trial.node)
    wanted: dict[str, str | None] = dict(found.selector)
    for expression in found.expressions:
        wanted[expression.key] = _value_for(expression)
    if not wanted or any(is_kept_label(key) for key in wanted):
        return
    node = trial.node
    changes = [_change(key, value, node) for key, value in wanted.items()]
    text = f"{', '.join(changes)} on node {trial.name}"
    cost = sum(3.5 if key in node.metadata.labels else 2.0 for key in wanted)
    yield Step(FixKind.LABEL_NODE, text, cost, trial.pod, (labelled(node, wanted),))


def change_selector(trial: Trial) -> Iterable[Step]:
    """Change what the pod asks for to what the node has."""
    found = mismatch(trial.pod, trial.node)
    if not found.selector and not found.expressions:
        return
    labels = trial.node.metadata.labels
    said = [_selector_change(key, value, labels) for key, value in found.selector.items()]
    said += [f"drop {written(e)} from the required node affinity" for e in found.expressions]
    yield Step(FixKind.CHANGE_SELECTOR, ", ".join(said), 3.0 * len(said), _changed(trial, found))


def drop_node_affinity(trial: Trial) -> Iterable[Step]:
    """Drop required affinity that no label of the node could meet: by name, or of no terms."""
    found, terms = mismatch(trial.pod, trial.node), _terms(trial.pod)
    if not found.expressions and not any(compile_node_term(t).matches(trial.node) for t in terms):
        affinity = trial.pod.spec.affinity
        if affinity is not None and affinity.node_affinity and affinity.node_affinity.required:
            yield without_node_affinity(trial.pod)


def without_node_affinity(pod: Pod) -> Step:
    """The step that drops a pod's required node affinity."""
    names = sorted({v for term in _terms(pod) for f in term.match_fields for v in f.values})
    said = f" (to {', '.join(names)})" if names else ""
    text = f"drop the required node affinity{said}"
    return Step(FixKind.CHANGE_SELECTOR, text, 4.0, _without_required(pod))


def written(expression: NodeSelectorRequirement) -> str:
    """An expression as a person would say it."""
    values = f" [{', '.join(expression.values)}]" if expression.values else ""
    return f"'{expression.key} {expression.operator}{values}'"


def is_kept_label(key: str) -> bool:
    """Whether Kubernetes or a cloud keeps a label, so that nobody should set it by hand."""
    domain = key.partition("/")[0] if "/" in key else ""
    if domain == _FREE_DOMAIN:
        return False
    return any(domain == kept or domain.endswith(f".{kept}") for kept in _KEPT_DOMAINS)


def _terms(pod: Pod) -> list[NodeSelectorTerm]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None or not affinity.node_affinity.required:
        return []
    return affinity.node_affinity.required.node_selector_terms


def _unmet(term: NodeSelectorTerm, node: Node) -> list[NodeSelectorRequirement]:
    return [
        expression
        for expression in term.match_expressions
        if not compile_node_term(NodeSelectorTerm(match_expressions=[expression])).matches(node)
    ]


def _value_for(expression: NodeSelectorRequirement) -> str | None:
    """A value that meets an expression; None is to have no such label."""
    first = expression.values[0] if expression.values else ""
    match expression.operator:
        case "In":
            return first
        case "Exists":
            return "true"
        case "Gt":
            return str(_integer(first) + 1)
        case "Lt":
            return str(_integer(first) - 1)
        case _:
            return None


def _integer(text: str) -> int:
    return int(text) if text.lstrip("+-").isdecimal() and len(text) < 20 else 0


def labelled(node: Node, wanted: Mapping[str, str | None]) -> Node:
    """The node with these labels; None takes one away."""
    merged = {**node.metadata.labels, **wanted}
    labels = {key: value for key, value in merged.items() if value is not None}
    return replace(node, metadata=replace(node.metadata, labels=labels))


def _change(key: str, value: str | None, node: Node) -> str:
    now = node.metadata.labels.get(key)
    if value is None:
        return f"remove label {key}={now}"
    return f"set label {key}={value}" + (f" (now {now})" if now is not None else "")


def _selector_change(key: str, value: str, labels: Labels) -> str:
    if key in labels:
        return f"change nodeSelector {key} from {value} to {labels[key]}"
    return f"drop nodeSelector {key}={value}"


def _changed(trial: Trial, found: Mismatch) -> Pod:
    spec, labels = trial.pod.spec, trial.node.metadata.labels
    selector = {
        key: labels[key] if key in found.selector else value
        for key, value in spec.node_selector.items()
        if key not in found.selector or key in labels
    }
    return _without_expressions(
        replace(trial.pod, spec=replace(spec, node_selector=selector)), found
    )


def _without_expressions(pod: Pod, found: Mismatch) -> Pod:
    affinity = pod.spec.affinity
    if found.term is None or affinity is None or affinity.node_affinity is None:
        return pod
    left = [e for e in found.term.match_expressions if e not in found.expressions]
    required = affinity.node_affinity.required
    if required is None or not left:
        return _without_required(pod)
    term = replace(found.term, match_expressions=left)
    terms = [term if one is found.term else one for one in required.node_selector_terms]
    return _with_required(pod, replace(required, node_selector_terms=terms))


def _without_required(pod: Pod) -> Pod:
    return _with_required(pod, None)


def _with_required(pod: Pod, required: NodeSelector | None) -> Pod:
    affinity = pod.spec.affinity or Affinity()
    about_nodes = replace(affinity.node_affinity or NodeAffinity(), required=required)
    changed = replace(affinity, node_affinity=about_nodes)
    return replace(pod, spec=replace(pod.spec, affinity=changed))


# -- what is told --------------------------------------------------------------------------------


def _details(trial: Trial) -> list[str]:
    """The labels that the pod wants, and what the node has."""
    found, labels = mismatch(trial.pod, trial.node), trial.node.metadata.labels
    said = [
        f"wants label {key}={value}, node has {_have(labels.get(key))}"
        for key, value in found.selector.items()
    ]
    return said + [
        f"wants {written(e)}, node has {_have(labels.get(e.key))}" for e in found.expressions
    ]


def _have(value: str | None) -> str:
    return "none" if value is None else value or "an empty value"


def _names(trial: Trial) -> list[str]:
    """The nodes that the pod names."""
    wanted = trial.cluster.signatures.of(trial.pod).node_names or ()
    return [f"required affinity names {', '.join(sorted(wanted))}"]


def _lacking(_: Filter, pod: Pod, cluster: Cluster, slots: SlotArray) -> Lacks:
    """Nodes lack alike that have the same of the labels that the pod reads."""
    keys = sorted(label_keys(pod))
    known: dict[Hashable, Lack] = {}

    def of_node(node: Node, _: int) -> Lack:
        labels = node.metadata.labels
        key = tuple(labels.get(key) for key in keys)
        if key not in known:
            found = mismatch(pod, node)
            wanted = {*found.selector, *(e.key for e in found.expressions)}
            each = 3.0 if any(map(is_kept_label, wanted)) else 2.0
            known[key] = (key, each * len(wanted) or 4.0)
        return known[key]

    return lacks_by_node(of_node, cluster, slots)


def steps_before_nodes(cluster: Cluster, pod: Pod) -> list[Step]:  # noqa: ARG001 - as all of these
    """The step for terms that name nodes and no node that all of one term's fields name."""
    return [without_node_affinity(pod)]


EXPLAINING = Explaining(
    details=_details,
    proposals=(Proposal(label_node), Proposal(change_selector), Proposal(drop_node_affinity)),
    lacking=_lacking,
)
NOT_ASKED = Explaining(details=_names, proposals=(Proposal(drop_node_affinity),), least_cost=4.0)
