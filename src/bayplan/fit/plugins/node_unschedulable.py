"""NodeUnschedulable: a cordoned node takes only pods that tolerate its being so."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Filter, NodeSetFilter, Question
from bayplan.fit.plugins.hints import Hints, newly
from bayplan.fit.plugins.plugin import Cause, Plugin
from bayplan.fit.plugins.trial import Explaining, Proposal, Trial
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.tolerations import tolerates

NAME = "NodeUnschedulable"
REASON = "node(s) were unschedulable"
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def compile_filter(question: Question) -> Filter | None:
    """The filter, unless the pod tolerates a cordon."""
    if any(tolerates(toleration, CORDON) for toleration in question.signature.tolerations):
        return None
    nodes = question.cluster.node_sets.where(NAME, lambda node: not node.spec.unschedulable)
    return NodeSetFilter(NAME, nodes, REASON)


_HINTS: Hints = {
    Node: lambda _, event: newly(event, lambda node: not node.spec.unschedulable),
}
"""A node that takes pods again."""


def uncordon(trial: Trial) -> Iterable[Step]:
    """Let the node take pods again."""
    yield Step(
        FixKind.UNCORDON,
        f"uncordon node {trial.name}",
        1.0,
        trial.pod,
        (uncordoned(trial.node),),
    )


def uncordoned(node: Node) -> Node:
    """The node without its cordon."""
    taints = [taint for taint in node.spec.taints if taint.key != CORDON.key]
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))


PLUGIN = Plugin(
    name=NAME,
    points=("filter",),
    node_fields=("spec.unschedulable",),
    cause=Cause.TAINTS,
    filters=(compile_filter,),
    hints=_HINTS,
    explaining=Explaining(proposals=(Proposal(uncordon),), least_cost=1.0),
)
