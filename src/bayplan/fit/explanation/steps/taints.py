"""Cordons and taints: uncordon the node, tolerate the taint, or see that what set it goes away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from bayplan.fit.explanation.fix import FixKind, Step
from bayplan.fit.explanation.trial import Trial
from bayplan.fit.plugins.node_unschedulable import CORDON
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.pods import Pod, Toleration
from bayplan.kube.tolerations import find_untolerated, tells_state


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
