"""TaintToleration: a node's NoSchedule and NoExecute taints must all be tolerated; of nodes with
PreferNoSchedule taints, those are better that have fewer which the pod does not tolerate.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from msgspec.structs import replace

from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import (
    MAX_SCORE,
    CountedScore,
    EvaluationRequest,
    Filter,
    NodeSetFilter,
    Score,
)
from bayplan.fit.plugins.explanation import (
    Explainer,
    NodeRepair,
    Proposal,
    RepairEstimate,
    Trial,
    repair_by_node,
)
from bayplan.fit.plugins.hints import Hints, is_newly_suitable
from bayplan.fit.plugins.plugin import SCORING, Cause, SchedulerPlugin
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import NodeSet, SlotArray
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.pods import Pod, Toleration
from bayplan.kube.tolerations import find_untolerated, is_status_taint, tolerates

NAME = "TaintToleration"
REASON = "node(s) had untolerated taint(s)"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
REFUSING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def compile_filter(request: EvaluationRequest) -> Filter | None:
    """Compile the filter."""
    return NodeSetFilter(NAME, tolerated_nodes(request.signature, request.cluster), REASON)


def tolerated_nodes(signature: PodSignature, cluster: ClusterState) -> NodeSet:
    """The nodes whose taints a signature tolerates."""
    return cluster.node_sets.where(
        (NAME, signature.tolerations_key),
        lambda node: is_tolerated(signature, node),
    )


def is_tolerated(signature: PodSignature, node: Node) -> bool:
    """Whether a signature tolerates all taints of a node that repel."""
    taints = node.spec.taints
    return not taints or find_untolerated(taints, signature.tolerations, REFUSING_EFFECTS) is None


class TaintTolerationScore(CountedScore):
    """Taints that the pod would rather not meet."""

    name = NAME
    flat_points = MAX_SCORE
    more_is_better = False


def compile_score(request: EvaluationRequest) -> Score | None:
    """Compile the score."""
    tolerations = [t for t in request.signature.tolerations if t.effect in ("", PREFER_NO_SCHEDULE)]

    def intolerable(node: Node) -> int:
        if not node.spec.taints:
            return 0
        return sum(
            taint.effect == PREFER_NO_SCHEDULE and not any(tolerates(t, taint) for t in tolerations)
            for taint in node.spec.taints
        )

    key = (NAME, "score", request.signature.tolerations_key)
    return TaintTolerationScore(request.cluster.node_sets.tally(key, intolerable))


_HINTS: Hints = {
    Node: lambda pending, event: is_newly_suitable(
        event, lambda node: is_tolerated(pending.signature, node)
    ),
}
"""A node that lost its taints."""


# -- what is told and proposed -------------------------------------------------------------------


def tolerate(trial: Trial) -> Iterable[Step]:
    """Propose the tolerations that the pod lacks, unless a taint is a status taint."""
    taints = untolerated(trial.node, trial.pod)
    if any(is_status_taint(taint) for taint in taints):
        return
    tolerations = [*trial.pod.spec.tolerations, *map(_toleration, taints)]
    pod = replace(trial.pod, spec=replace(trial.pod.spec, tolerations=tolerations))
    text = f"tolerate {_describe(taints)}"
    yield Step(FixKind.TOLERATION, text, 2.0 * len(taints), pod)


def clear_taints(trial: Trial) -> Iterable[Step]:
    """Propose to repair a node that has status taints."""
    taints = [taint for taint in untolerated(trial.node, trial.pod) if is_status_taint(taint)]
    if not taints:
        return
    node = trial.node
    rest = [taint for taint in node.spec.taints if taint not in taints]
    yield Step(
        FixKind.CLEAR_TAINT,
        f"repair node {trial.name}, which has {_describe(taints)}",
        3.0 * len(taints),
        trial.pod,
        (replace(node, spec=replace(node.spec, taints=rest)),),
    )


def untolerated(node: Node, pod: Pod) -> list[Taint]:
    """The taints of a node that keep a pod away."""
    held = pod.spec.tolerations
    return [taint for taint in node.spec.taints if find_untolerated((taint,), held) is not None]


def written_taint(taint: Taint) -> str:
    """A taint as kubectl writes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _toleration(taint: Taint) -> Toleration:
    if not taint.value:
        return Toleration(key=taint.key, operator="Exists", effect=taint.effect)
    return Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)


def _describe(taints: Sequence[Taint]) -> str:
    noun = "taint" if len(taints) == 1 else "taints"
    return f"{noun} {', '.join(map(written_taint, taints))}"


def _details(trial: Trial) -> list[str]:
    return [f"taint {written_taint(taint)}" for taint in untolerated(trial.node, trial.pod)]


def _estimate_repair(
    _: Filter, pod: Pod, cluster: ClusterState, slots: SlotArray
) -> RepairEstimate:
    """Group nodes by the taints that the pod does not tolerate."""
    known: dict[Hashable, NodeRepair] = {}

    def of_node(node: Node, _: int) -> NodeRepair:
        key = tuple((taint.key, taint.value, taint.effect) for taint in node.spec.taints)
        if key not in known:
            taints = untolerated(node, pod)
            cost = sum(3.0 if is_status_taint(taint) else 2.0 for taint in taints)
            known[key] = (tuple((t.key, t.value, t.effect) for t in taints), cost)
        return known[key]

    return repair_by_node(of_node, cluster, slots)


PLUGIN = SchedulerPlugin(
    name=NAME,
    points=("filter", *SCORING),
    node_fields=("spec.taints",),
    cause=Cause.TAINTS,
    refuses_for_good=True,
    filters=(compile_filter,),
    score=compile_score,
    weight=3,
    hints=_HINTS,
    explainer=Explainer(
        details=_details,
        proposals=(Proposal(tolerate), Proposal(clear_taints)),
        estimate_repair=_estimate_repair,
    ),
)
