"""The true cause of a pod's waiting, in a word: what would have to change for it to go on.

A pod may wait for its queue, for a gate, or for nobody but its scheduler; else nodes refuse it, and
each node may do so for a reason of its own. What counts then is what those nodes lack that the pod
may go to at all: nodes of other zones or with others' taints say nothing of its cause, unless they
are all there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.plugins.base import Filter
from bayplan.fit.plugins.plugin import Cause
from bayplan.fit.plugins.registry import cause_of_plugin
from bayplan.fit.refusal import UNJUDGED, Refusal
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.columns import ALL_ROWS, BoolArray, SlotArray
from bayplan.kube.pods import Pod
from bayplan.kube.queueing import QUEUE_ALLOCATION_GATE

NO_NODES = "there are no nodes"
NO_SLOTS: SlotArray = np.zeros(0, dtype=np.intp)


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
    return why_no_node(snapshot, pod) or _waits_for_scheduler(snapshot, pod)


def _waits_for_scheduler(snapshot: Snapshot, pod: Pod) -> Waiting:
    place = "" if (node := snapshot.decide(pod).node) is None else f" node {node}"
    return Waiting(Cause.SCHEDULER, f"fits{place}, and waits for {pod.spec.scheduler_name}")


def why_no_node(snapshot: Snapshot, pod: Pod) -> Waiting | None:
    """Why no node that is there takes a pod, whatever its gates; None if one does."""
    evaluation = snapshot.evaluation(pod)
    if isinstance(evaluation, Refusal):
        return _of_refusal(snapshot, pod, evaluation, "")
    said = _FirstRefusals(snapshot, pod, evaluation)
    return _refused_by_nodes(snapshot, pod, said) if said.by_all else None


class _FirstRefusals:
    """What each node says first of a pod: by filter, and beside nominated pods by slot."""

    def __init__(self, snapshot: Snapshot, pod: Pod, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self.cluster = cluster = evaluation.question.cluster
        self.beside: Mapping[int, Refusal] = {}
        if cluster.nominations.by_node:
            every = set(np.flatnonzero(cluster.alive).tolist())
            self.beside = snapshot.nominated_pods_check(pod).refusals_beside(every)
        left = cluster.alive.copy()
        left[list(self.beside)] = False
        self.by_filter: list[tuple[Filter, SlotArray]] = []
        for one in evaluation.filters:
            slots = np.flatnonzero(left & ~one.passes(ALL_ROWS)) if one.has_say else NO_SLOTS
            if len(slots):
                left[slots] = False
                self.by_filter.append((one, slots))
        self.by_all = not left.any()

    def counts(self, among: BoolArray | None = None) -> Counter[Refusal]:
        """How many nodes say what, of all or of some."""
        found: Counter[Refusal] = Counter()
        for one, slots in self.by_filter:
            found.update(one.refusal_counts(slots if among is None else slots[among[slots]]))
        found.update(said for slot, said in self.beside.items() if among is None or among[slot])
        return found

    def at(self, node: str) -> Refusal | None:
        """What one node says."""
        slot = self.cluster.slots.by_name.get(node, -1)
        if slot in self.beside:
            return self.beside[slot]
        return next((one.refusal(slot) for one, slots in self.by_filter if slot in slots), None)

    def first_to_say(self, refusal: Refusal) -> str:
        """The first node by name that says so."""
        names = self.cluster.slots.names
        saying = {names[slot] for slot, said in self.beside.items() if said == refusal}
        for one, slots in self.by_filter:
            if one.name == refusal.plugin:
                said = zip(slots.tolist(), one.refusals(slots), strict=True)
                saying |= {names[slot] for slot, its in said if its == refusal}
        return min(saying, default="")


def _main_refusal(said: _FirstRefusals) -> Refusal | None:
    """The refusal to tell of many: what most nodes lack of those that a pod may go to; if it may go
    to none, what alone would keep it from all of them, or else what most say. None if there are no
    nodes.
    """
    open_to_it, closed_by = _choices(said)
    asked = said.counts(open_to_it)
    choices = Counter({one: n for one, n in said.counts().items() if one.out_of_reach})
    return _most_usual(asked or closed_by or choices)


def _choices(said: _FirstRefusals) -> tuple[BoolArray, Counter[Refusal]]:
    """The slots that a pod may go to at all, and what is said by filters that leave it none."""
    alive = said.cluster.alive
    left, closed, nodes = alive.copy(), Counter[Refusal](), int(np.count_nonzero(alive))
    for one in said.evaluation.filters:
        if not one.has_say or not one.chooses:
            continue
        refused = np.flatnonzero(alive & ~one.passes(ALL_ROWS))
        chosen = refused[one.out_of_reach(refused)]
        left[chosen] = False
        if len(chosen) == nodes:
            closed.update(one.refusal_counts(chosen))
    return left, closed


def _most_usual(counted: Counter[Refusal]) -> Refusal | None:
    return min(counted, key=lambda one: (-counted[one], one.plugin, one.reasons), default=None)


def _refused_by_nodes(snapshot: Snapshot, pod: Pod, said: _FirstRefusals) -> Waiting:
    """Of a pod that others make room for, what counts is the node where they do."""
    nominated = pod.status.nominated_node_name
    if nominated and (there := said.at(nominated)) is not None:
        told = _of_refusal(snapshot, pod, there, nominated)
        text = f"nominated for node {nominated}, which others have yet to leave: {told.text}"
        return Waiting(told.cause, text, told.drivers)
    unjudged = (one for one in said.counts() if one.code == UNJUDGED)
    main = next(unjudged, None) or _main_refusal(said)
    if main is None:
        return Waiting(Cause.NODES, NO_NODES)
    of_volumes = cause_of_plugin(main.plugin) is Cause.VOLUMES
    return _of_refusal(snapshot, pod, main, said.first_to_say(main) if of_volumes else "")


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
    return tuple(sorted({need.driver for need in snapshot.requirements_of(pod).attach}))
