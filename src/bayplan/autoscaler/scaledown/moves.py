"""Which pods of a node would have to move, which go with it, and which keep it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.autoscaler.scaledown.drain import Outcome, Scene, verdict
from bayplan.autoscaler.scaledown.reasons import BlockingPod
from bayplan.kube.pods import Pod


@dataclass(frozen=True, slots=True)
class Moves:
    """The pods of a node that may be drained."""

    moved: tuple[Pod, ...] = ()
    """They need a place elsewhere."""
    daemons: tuple[Pod, ...] = ()
    """They go with the node."""
    on_completion: tuple[Pod, ...] = ()
    """The node is kept until they have ended."""


def moves_of(pods: Iterable[Pod], scene: Scene) -> Moves | BlockingPod:
    """What becomes of a node's pods, or the first that keeps it."""
    sorted_out: dict[Outcome, list[Pod]] = {outcome: [] for outcome in Outcome}
    for pod in pods:
        said = verdict(pod, scene)
        if said.reason is not None:
            return BlockingPod(pod.key, said.reason)
        sorted_out[said.outcome].append(pod)
    return Moves(
        tuple(sorted_out[Outcome.MOVE]),
        tuple(sorted_out[Outcome.DAEMONSET]),
        tuple(sorted_out[Outcome.WAIT]),
    )
