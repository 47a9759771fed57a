"""NodeAffinity: the pod's nodeSelector, its required and its preferred node affinity.

Required affinity may name its nodes. kube-scheduler then narrows the nodes before it filters them,
and nodes that it did not ask carry no reason of their own.

What would lift a refusal is to give the node the label, or let the pod ask for what the node has.
Labels that Kubernetes or a cloud keeps (zones, host names, architectures) describe the node; for
those only the pod's side is proposed. To change a label that a node has is worse than to add one:
it may be true.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from bayplan.base.configfiles import convert_value, refuse_unknown_fields
from bayplan.fit.decision import UNRESOLVABLE, Refusal
from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.arguments import Arguments, PluginArguments, check_in_pod
from bayplan.fit.plugins.base import (
    CountedScore,
    EvaluationRequest,
    Filter,
    NodeSetFilter,
    PreFilterInput,
    Score,
)
from bayplan.fit.plugins.explanation import (
    Explainer,
    NodeRepair,
    Proposal,
    RepairEstimate,
    Trial,
    repair_by_node,
    with_labels,
)
from bayplan.fit.plugins.hints import ClusterEvent, Hints, UnschedulablePod, is_new_or_relabelled
from bayplan.fit.plugins.plugin import FILTERING, SCORING, Cause, SchedulerPlugin
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import NodeSet, SlotArray
from bayplan.kube.meta import Labels
from bayplan.kube.nodes import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.kube.pods import Affinity, NodeAffinity, Pod, PodSpec
from bayplan.kube.selectors import (
    NodeSelectorMatcher,
    NodeTermMatcher,
    compile_node_selector,
    compile_node_term,
)

NAME = "NodeAffinity"
REASON = "node(s) didn't match Pod's node affinity/selector"
ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
CONFLICT = "pod affinity terms conflict"


@dataclass(frozen=True, slots=True)
class AddedAffinity:
    """NodeAffinityArgs.addedAffinity, compiled: required and preferred for every pod."""

    required: NodeSelectorMatcher | None = None
    preferred: tuple[tuple[int, NodeTermMatcher], ...] = ()

    @classmethod
    def of(cls, affinity: NodeAffinity) -> AddedAffinity:
        """An affinity as written, ready to match."""
        return cls(
            required=compile_node_selector(affinity.required) if affinity.required else None,
            preferred=tuple(
                (one.weight, compile_node_term(one.preference))
                for one in affinity.preferred
                if one.weight
            ),
        )


def compile_filter(request: EvaluationRequest) -> Filter | None:
    """Compile the filter, if the pod selects nodes."""
    if request.signature.required_nodes.says_nothing:
        return None
    return NodeSetFilter(NAME, required_nodes(request.signature, request.cluster), REASON)


def compile_added(request: EvaluationRequest) -> Filter | None:
    """Compile the filter of the affinity that the profile adds to every pod."""
    required = request.plugins.args_of(AddedAffinity).required
    if required is None:
        return None
    nodes = request.cluster.node_sets.where((NAME, "added", required), required.matches)
    return NodeSetFilter(NAME, nodes, ENFORCED)


def refusal_before_nodes(arrival: PreFilterInput) -> Refusal | None:
    """Refuse required terms that name nodes but none that all of a term's fields name."""
    names = arrival.signature.node_names
    return Refusal.unresolvable(NAME, CONFLICT) if names is not None and not names else None


def required_nodes(signature: PodSignature, cluster: ClusterState) -> NodeSet:
    """The nodes that a signature's selector and required affinity allow."""
    required = signature.required_nodes
    return cluster.node_sets.where((NAME, required), required.matches)


def _node_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:
    """Whether a node that matches was added, or has other labels."""
    node = event.after
    matches = isinstance(node, Node) and pending.signature.required_nodes.matches(node)
    return matches and is_new_or_relabelled(pending, event)


HINTS: Hints = {Node: _node_may_help}


PRE_FILTER_RESULT = "PreFilterResult"
SUMMARY_REASON = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
"""The words of kube-scheduler's summary for nodes that were not evaluated."""


class NamedNodes(NodeSetFilter):
    """Nodes that required affinity names."""

    @property
    def plugin(self) -> str:
        """The plugin that names them."""
        return NAME

    def refusal(self, slot: int) -> Refusal:  # noqa: ARG002 - the same for every node
        """Return a refusal without a reason, as the node is not evaluated."""
        return Refusal(
            UNRESOLVABLE, PRE_FILTER_RESULT, (), out_of_reach=True, summarised=(SUMMARY_REASON,)
        )


def can_pin(request: EvaluationRequest) -> bool:
    """Whether a pod of this question that names one node besides is refused, and taken there, for
    the same reasons.
    """
    return request.plugins.asks(NAME) and not request.default_spread.hard


def compile_named(request: EvaluationRequest) -> Filter | None:
    """Compile the filter, if every required term names nodes."""
    names = request.signature.node_names
    if not names:
        return None
    nodes = request.cluster.node_sets.where(
        (PRE_FILTER_RESULT, names), lambda node: node.name in names
    )
    return NamedNodes(PRE_FILTER_RESULT, nodes, SUMMARY_REASON)


class NodeAffinityScore(CountedScore):
    """The score by preferred node affinity."""

    name = NAME
    more_is_better = True


def compile_score(request: EvaluationRequest) -> Score | None:
    """Compile the score, if the pod prefers some nodes, or the profile does."""
    added = request.plugins.args_of(AddedAffinity).preferred
    preferred = (*added, *request.signature.preferred_nodes)
    if not preferred:
        return None

    def liking(node: Node) -> int:
        return sum(weight for weight, term in preferred if term.matches(node))

    return NodeAffinityScore(request.cluster.node_sets.tally((NAME, "score", preferred), liking))


# -- what is told and proposed ---------------------------------------------------------------------


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
    """The node selector entries and expressions of a pod that a node does not match."""

    selector: Labels
    """The entries of the nodeSelector."""
    term: NodeSelectorTerm | None
    """The term of required affinity that is nearest to matching."""
    expressions: list[NodeSelectorRequirement]
    """The expressions of that term."""


def mismatch(pod: Pod, node: Node) -> Mismatch:
    """Return why a pod's selector and required affinity do not match a node."""
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


def label_keys(pod: Pod, _: ClusterState | None = None) -> frozenset[str]:
    """Return the labels of nodes that a pod's selector and required affinity read."""
    expressions = (e.key for term in _terms(pod) for e in term.match_expressions)
    return frozenset((*pod.spec.node_selector, *expressions))


def label_node(trial: Trial) -> Iterable[Step]:
    """Propose to change the node's labels to match the pod."""
    found = mismatch(trial.pod, trial.node)
    wanted: dict[str, str | None] = dict(found.selector)
    for expression in found.expressions:
        wanted[expression.key] = _value_for(expression)
    if not wanted or any(is_managed_label(key) for key in wanted):
        return
    node = trial.node
    changes = [_change(key, value, node) for key, value in wanted.items()]
    text = f"{', '.join(changes)} on node {trial.name}"
    cost = sum(3.5 if key in node.metadata.labels else 2.0 for key in wanted)
    yield Step(FixKind.LABEL_NODE, text, cost, trial.pod, (with_labels(node, wanted),))


def change_selector(trial: Trial) -> Iterable[Step]:
    """Propose to change the pod's selector to match the node."""
    found = mismatch(trial.pod, trial.node)
    if not found.selector and not found.expressions:
        return
    labels = trial.node.metadata.labels
    described = [_selector_change(key, value, labels) for key, value in found.selector.items()]
    described += [
        f"drop {describe_expression(e)} from the required node affinity" for e in found.expressions
    ]
    yield Step(
        FixKind.CHANGE_SELECTOR, ", ".join(described), 3.0 * len(described), _changed(trial, found)
    )


def drop_node_affinity(trial: Trial) -> Iterable[Step]:
    """Propose to drop required affinity that no label of the node could meet."""
    found, terms = mismatch(trial.pod, trial.node), _terms(trial.pod)
    if not found.expressions and not any(compile_node_term(t).matches(trial.node) for t in terms):
        affinity = trial.pod.spec.affinity
        if affinity is not None and affinity.node_affinity and affinity.node_affinity.required:
            yield without_node_affinity(trial.pod)


def without_node_affinity(pod: Pod) -> Step:
    """The step that drops a pod's required node affinity."""
    names = sorted({v for term in _terms(pod) for f in term.match_fields for v in f.values})
    described = f" (to {', '.join(names)})" if names else ""
    text = f"drop the required node affinity{described}"
    return Step(FixKind.CHANGE_SELECTOR, text, 4.0, _without_required(pod))


def describe_expression(expression: NodeSelectorRequirement) -> str:
    """Describe an expression of a node selector."""
    values = f" [{', '.join(expression.values)}]" if expression.values else ""
    return f"'{expression.key} {expression.operator}{values}'"


def is_managed_label(key: str) -> bool:
    """Whether Kubernetes or a cloud manages a label, so that it must not be set by hand."""
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
    """Describe the labels that the pod requires, and those of the node."""
    found, labels = mismatch(trial.pod, trial.node), trial.node.metadata.labels
    described = [
        f"wants label {key}={value}, node has {_have(labels.get(key))}"
        for key, value in found.selector.items()
    ]
    return described + [
        f"wants {describe_expression(e)}, node has {_have(labels.get(e.key))}"
        for e in found.expressions
    ]


def _have(value: str | None) -> str:
    return "none" if value is None else value or "an empty value"


def _names(trial: Trial) -> list[str]:
    """Describe the nodes that the pod names."""
    wanted = trial.cluster.signatures.of(trial.pod).node_names or ()
    return [f"required affinity names {', '.join(sorted(wanted))}"]


def _estimate_repair(
    _: Filter, pod: Pod, cluster: ClusterState, slots: SlotArray
) -> RepairEstimate:
    """Group nodes by the labels that the pod reads."""
    keys = sorted(label_keys(pod))
    known: dict[Hashable, NodeRepair] = {}

    def of_node(node: Node, _: int) -> NodeRepair:
        labels = node.metadata.labels
        key = tuple(labels.get(key) for key in keys)
        if key not in known:
            found = mismatch(pod, node)
            wanted = {*found.selector, *(e.key for e in found.expressions)}
            each = 3.0 if any(map(is_managed_label, wanted)) else 2.0
            known[key] = (key, each * len(wanted) or 4.0)
        return known[key]

    return repair_by_node(of_node, cluster, slots)


def steps_before_nodes(cluster: ClusterState, pod: Pod) -> list[Step]:  # noqa: ARG001 - as all of these
    """The step for terms that name nodes and no node that all of one term's fields name."""
    return [without_node_affinity(pod)]


EXPLAINER = Explainer(
    details=_details,
    proposals=(Proposal(label_node), Proposal(change_selector), Proposal(drop_node_affinity)),
    estimate_repair=_estimate_repair,
)
EXPLAINER_NOT_ASKED = Explainer(
    details=_names, proposals=(Proposal(drop_node_affinity),), least_cost=4.0
)


# -- arguments -----------------------------------------------------------------------------------


class NodeAffinityArgs(PluginArguments):
    """Arguments of NodeAffinity."""

    added_affinity: dict[str, object] | None = None


def _compile(args: NodeAffinityArgs, field: str) -> AddedAffinity:
    place = f"{field}.addedAffinity"
    if args.added_affinity is None:
        return AddedAffinity()
    refuse_unknown_fields(args.added_affinity, NodeAffinity, place)
    added = convert_value(args.added_affinity, NodeAffinity, place)
    check_in_pod(PodSpec(affinity=Affinity(node_affinity=added)), place)
    return AddedAffinity.of(added)


PLUGIN = SchedulerPlugin(
    name=NAME,
    explainer=EXPLAINER,
    node_labels=label_keys,
    other_names={PRE_FILTER_RESULT: EXPLAINER_NOT_ASKED},
    steps_before_nodes=steps_before_nodes,
    points=(*FILTERING, *SCORING),
    node_fields=("metadata.name", "metadata.labels"),
    cause=Cause.AFFINITY,
    refuses_for_good=True,
    pre_filter=refusal_before_nodes,
    pre_filter_result=compile_named,
    can_pin=can_pin,
    filters=(compile_added, compile_filter),
    score=compile_score,
    arguments=Arguments(NodeAffinityArgs, _compile),
    weight=2,
    hints=HINTS,
)
