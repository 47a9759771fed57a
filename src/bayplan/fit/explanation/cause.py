"""The true cause of a pod's waiting, in a word: what would have to change for it to go on.

A pod may wait for its queue, for a gate, or for nobody but its scheduler; else nodes refuse it, and
each node may do so for a reason of its own. What counts then is what those nodes lack that the pod
may go to at all: nodes of other zones or with others' taints say nothing of its cause, unless they
are all there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.plugins.plugin import Cause
from bayplan.fit.plugins.registry import cause_of_plugin
from bayplan.fit.refusal import UNJUDGED, Refusal
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.columns import ALL_ROWS, BoolArray
from bayplan.kube.pods import Pod
from bayplan.kube.queueing import QUEUE_ALLOCATION_GATE

NO_NODES = "there are no nodes"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a pod waits."""

    cause: Cause
    text: str
    """The one thing to say of it; where nodes refuse it, in kube-scheduler's words."""
    drivers: tuple[str, ...] = ()
    """Where volumes are the cause, the CSI drivers (or in-tree plugins) that they are of."""


def why_it_waits(snapshot: Snapshot, pod: Pod, queue: str | None = None) -> Waiting:
    """Why a pod without a node waits; `queue` says so if it waits for its queue, in a line."""
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    if queue is not None or gates == [QUEUE_ALLOCATION_GATE]:
        return Waiting(Cause.QUEUE, queue or "its queue has not let it in")
    if gates:
        return Waiting(Cause.GATE, f"waiting for scheduling gates: [{' '.join(gates)}]")
    found, evaluation = snapshot.verdicts(pod), snapshot.evaluation(pod)
    if isinstance(found, Refusal):
        return _of_refusal(snapshot, pod, found, "")
    if found.scores:
        place = "" if (node := snapshot.decide(pod).node) is None else f" node {node}"
        return Waiting(Cause.SCHEDULER, f"fits{place}, and waits for {pod.spec.scheduler_name}")
    return _refused_by_nodes(snapshot, pod, evaluation, found.refusals)


def _main_refusal(evaluation: Evaluation, refusals: Mapping[str, Refusal]) -> Refusal | None:
    """The refusal to tell of many: what most nodes lack of those that a pod may go to; if it may go
    to none, what alone would keep it from all of them, or else what most say. None if there are no
    nodes.
    """
    open_to_it, closed_by = _choices(evaluation)
    names = evaluation.question.cluster.slots.names
    slots = np.flatnonzero(open_to_it).tolist()
    asked = [one for slot in slots if (one := refusals.get(names[slot])) is not None]
    choices = [one for one in refusals.values() if one.out_of_reach]
    return _most_usual(asked or closed_by or choices)


def _choices(evaluation: Evaluation) -> tuple[BoolArray, list[Refusal]]:
    """The slots that a pod may go to at all, and what is said by filters that leave it none."""
    alive = evaluation.question.cluster.alive
    left, closed = alive.copy(), list[Refusal]()
    for one in evaluation.filters:
        if not one.has_say or not one.chooses:
            continue
        refused = np.flatnonzero(alive & ~one.passes(ALL_ROWS))
        said = zip(refused.tolist(), one.refusals(refused), strict=True)
        chosen = [(slot, refusal) for slot, refusal in said if refusal.out_of_reach]
        left[[slot for slot, _ in chosen]] = False
        if len(chosen) == np.count_nonzero(alive):
            closed += [refusal for _, refusal in chosen]
    return left, closed


def _most_usual(refusals: Iterable[Refusal]) -> Refusal | None:
    counted = Counter(refusals)
    return min(counted, key=lambda one: (-counted[one], one.plugin, one.reasons), default=None)


def _refused_by_nodes(
    snapshot: Snapshot, pod: Pod, evaluation: Evaluation | Refusal, refusals: Mapping[str, Refusal]
) -> Waiting:
    """Of a pod that others make room for, what counts is the node where they do."""
    nominated = pod.status.nominated_node_name
    if (there := refusals.get(nominated)) is not None:
        told = _of_refusal(snapshot, pod, there, nominated)
        text = f"nominated for node {nominated}, which others have yet to leave: {told.text}"
        return Waiting(told.cause, text, told.drivers)
    unjudged = (one for one in refusals.values() if one.code == UNJUDGED)
    main = next(unjudged, None)
    if main is None and isinstance(evaluation, Evaluation):
        main = _main_refusal(evaluation, refusals)
    if main is None:
        return Waiting(Cause.RESOURCES, NO_NODES)
    same = (name for name, refusal in refusals.items() if refusal is main or refusal == main)
    node = min(same, default="")
    return _of_refusal(snapshot, pod, main, node)


def _of_refusal(snapshot: Snapshot, pod: Pod, refusal: Refusal, node: str) -> Waiting:
    cause = cause_of_plugin(refusal.plugin)
    drivers = _drivers(snapshot, pod, refusal, node) if cause is Cause.VOLUMES else ()
    return Waiting(cause, ", ".join(refusal.reasons), drivers)


def _drivers(snapshot: Snapshot, pod: Pod, refusal: Refusal, node: str) -> tuple[str, ...]:
    """The drivers that are missing or full there; of other trouble, all that the pod needs."""
    evaluation, slot = snapshot.evaluation(pod), snapshot.cluster.slots.by_name.get(node)
    if slot is not None and isinstance(evaluation, Evaluation):
        refusing = (one for one in evaluation.filters if one.name == refusal.plugin)
        found = {driver for one in refusing for driver in one.drivers_at(slot)}
        if found:
            return tuple(sorted(found))
    return tuple(sorted({need.driver for need in snapshot.needs_of(pod).attach}))
