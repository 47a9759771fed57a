"""NodeUnschedulable: a cordoned node takes only pods that tolerate the unschedulable taint."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import EvaluationRequest, Filter, NodeSetFilter
from bayplan.fit.plugins.explanation import Explainer, Proposal, Trial
from bayplan.fit.plugins.hints import Hints, is_newly_suitable
from bayplan.fit.plugins.plugin import Cause, SchedulerPlugin
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.tolerations import tolerates

NAME = "NodeUnschedulable"
REASON = "node(s) were unschedulable"
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def compile_filter(request: EvaluationRequest) -> Filter | None:
    """Compile the filter, unless the pod tolerates a cordon."""
    if any(tolerates(toleration, CORDON) for toleration in request.signature.tolerations):
        return None
    nodes = request.cluster.node_sets.where(NAME, lambda node: not node.spec.unschedulable)
    return NodeSetFilter(NAME, nodes, REASON)


_HINTS: Hints = {
    Node: lambda _, event: is_newly_suitable(event, lambda node: not node.spec.unschedulable),
}
"""A node that takes pods again."""


def uncordon(trial: Trial) -> Iterable[Step]:
    """Propose to uncordon the node."""
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


PLUGIN = SchedulerPlugin(
    name=NAME,
    points=("filter",),
    node_fields=("spec.unschedulable",),
    cause=Cause.TAINTS,
    filters=(compile_filter,),
    hints=_HINTS,
    explainer=Explainer(proposals=(Proposal(uncordon),), least_cost=1.0),
)
