"""TaintToleration: a node's NoSchedule and NoExecute taints must all be tolerated; of nodes with
PreferNoSchedule taints, those are better that have fewer which the pod does not tolerate.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from msgspec.structs import replace

from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Filter, NodeSetFilter, Question
from bayplan.fit.plugins.hints import Hints, newly
from bayplan.fit.plugins.plugin import SCORING, Cause, Plugin
from bayplan.fit.plugins.scores import MAX_SCORE, CountedScore, Score
from bayplan.fit.plugins.trial import Explaining, Lack, Lacks, Proposal, Trial, lacks_by_node
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import NodeSet, SlotArray
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.pods import Pod, Toleration
from bayplan.kube.tolerations import find_untolerated, tells_state, tolerates

NAME = "TaintToleration"
REASON = "node(s) had untolerated taint(s)"
DISCOURAGING = "PreferNoSchedule"
REPELLING = frozenset({"NoSchedule", "NoExecute"})


def compile_filter(question: Question) -> Filter | None:
    """The filter."""
    return NodeSetFilter(NAME, tolerated_nodes(question.signature, question.cluster), REASON)


def tolerated_nodes(signature: PodSignature, cluster: Cluster) -> NodeSet:
    """The nodes whose taints a signature tolerates."""
    return cluster.node_sets.where(
        (NAME, signature.tolerations_key),
        lambda node: is_tolerated(signature, node),
    )


def is_tolerated(signature: PodSignature, node: Node) -> bool:
    """Whether a signature tolerates all taints of a node that repel."""
    taints = node.spec.taints
    return not taints or find_untolerated(taints, signature.tolerations, REPELLING) is None


class TaintTolerationScore(CountedScore):
    """Taints that the pod would rather not meet."""

    name = NAME
    flat_points = MAX_SCORE
    more_is_better = False


def compile_score(question: Question) -> Score | None:
    """The score."""
    tolerations = [t for t in question.signature.tolerations if t.effect in ("", DISCOURAGING)]

    def intolerable(node: Node) -> int:
        if not node.spec.taints:
            return 0
        return sum(
            taint.effect == DISCOURAGING and not any(tolerates(t, taint) for t in tolerations)
            for taint in node.spec.taints
        )

    key = (NAME, "score", question.signature.tolerations_key)
    return TaintTolerationScore(question.cluster.node_sets.tally(key, intolerable))


_HINTS: Hints = {
    Node: lambda waiting, event: newly(event, lambda node: is_tolerated(waiting.signature, node)),
}
"""A node that lost its taints."""


# -- what is told and proposed -------------------------------------------------------------------


def tolerate(trial: Trial) -> Iterable[Step]:
    """Give the pod the tolerations that it lacks, unless a taint tells of trouble."""
    taints = untolerated(trial.node, trial.pod)
    if any(tells_state(taint) for taint in taints):
        return
    tolerations = [*trial.pod.spec.tolerations, *map(_toleration, taints)]
    pod = replace(trial.pod, spec=replace(trial.pod.spec, tolerations=tolerations))
    text = f"tolerate {_said(taints)}"
    yield Step(FixKind.TOLERATION, text, 2.0 * len(taints), pod)


def clear_taints(trial: Trial) -> Iterable[Step]:
    """See that a node in trouble recovers."""
    taints = [taint for taint in untolerated(trial.node, trial.pod) if tells_state(taint)]
    if not taints:
        return
    node = trial.node
    rest = [taint for taint in node.spec.taints if taint not in taints]
    yield Step(
        FixKind.CLEAR_TAINT,
        f"get node {trial.name} out of the state that {_said(taints)} tells of",
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


def _said(taints: Sequence[Taint]) -> str:
    noun = "taint" if len(taints) == 1 else "taints"
    return f"{noun} {', '.join(map(written_taint, taints))}"


def _details(trial: Trial) -> list[str]:
    return [f"taint {written_taint(taint)}" for taint in untolerated(trial.node, trial.pod)]


def _lacking(_: Filter, pod: Pod, cluster: Cluster, slots: SlotArray) -> Lacks:
    """Nodes lack alike whose taints the pod does not tolerate are the same."""
    known: dict[Hashable, Lack] = {}

    def of_node(node: Node, _: int) -> Lack:
        key = tuple((taint.key, taint.value, taint.effect) for taint in node.spec.taints)
        if key not in known:
            taints = untolerated(node, pod)
            cost = sum(3.0 if tells_state(taint) else 2.0 for taint in taints)
            known[key] = (tuple((t.key, t.value, t.effect) for t in taints), cost)
        return known[key]

    return lacks_by_node(of_node, cluster, slots)


PLUGIN = Plugin(
    name=NAME,
    points=("filter", *SCORING),
    node_fields=("spec.taints",),
    cause=Cause.TAINTS,
    for_good=True,
    filters=(compile_filter,),
    score=compile_score,
    weight=3,
    hints=_HINTS,
    explaining=Explaining(
        details=_details,
        proposals=(Proposal(tolerate), Proposal(clear_taints)),
        lacking=_lacking,
    ),
)
