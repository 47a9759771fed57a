"""Why a pod is pending, in a word: what would have to change for it to be scheduled.

A pod may wait for its queue, for a scheduling gate, or only for its scheduler; else nodes refuse
it, each for a reason of its own. What counts then is what those nodes lack that the pod may use at
all: nodes of other zones or with other taints do not count, unless they are all there is.

`group_pending_pods` takes pending pods in the order in which a scheduler would, equivalent ones
together: each pod that fits is assumed before the next is evaluated, unless it waits for its queue
or a gate. Equivalent pods with the same outcome have one cause.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from bayplan.fit.decision import UNJUDGED, Decision, Refusal
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.explanation.explain import pod_state
from bayplan.fit.explanation.result import PodState
from bayplan.fit.plugins.base import Filter
from bayplan.fit.plugins.plugin import Cause
from bayplan.fit.plugins.registry import cause_of_plugin
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.columns import ALL_ROWS, BoolArray, SlotArray
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import QUEUE_SCHEDULING_GATE

NO_NODES = "there are no nodes"
NO_SLOTS: SlotArray = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, slots=True)
class WaitReason:
    """Why a pod is pending."""

    cause: Cause
    text: str
    """One line; where nodes refuse the pod, in kube-scheduler's words."""
    drivers: tuple[str, ...] = ()
    """Where volumes are the cause, the CSI drivers (or in-tree plugins) that they are of."""


def wait_reason(snapshot: Snapshot, pod: Pod, queue: str | None = None) -> WaitReason:
    """Return why a pod without a node is pending; `queue` is the reason if it waits for its
    queue.
    """
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    if queue is not None or gates == [QUEUE_SCHEDULING_GATE]:
        return WaitReason(Cause.QUEUE, queue or "its queue has not admitted it")
    if gates:
        return WaitReason(Cause.GATE, f"waiting for scheduling gates: [{' '.join(gates)}]")
    return refusal_reason(snapshot, pod) or _waits_for_scheduler(snapshot, pod)


def _waits_for_scheduler(snapshot: Snapshot, pod: Pod) -> WaitReason:
    place = "" if (node := snapshot.decide(pod).node) is None else f" node {node}"
    return WaitReason(Cause.SCHEDULER, f"fits{place}, and waits for {pod.spec.scheduler_name}")


def refusal_reason(snapshot: Snapshot, pod: Pod) -> WaitReason | None:
    """Return why no existing node fits a pod, whatever its gates; None if one does."""
    evaluation = snapshot.evaluation(pod)
    if isinstance(evaluation, Refusal):
        return _of_refusal(snapshot, pod, evaluation, "")
    refusals = _FirstRefusals(snapshot, pod, evaluation)
    return _refused_by_nodes(snapshot, pod, refusals) if refusals.by_all else None


class _FirstRefusals:
    """The first refusal of each node: by filter, and by slot because of nominated pods."""

    def __init__(self, snapshot: Snapshot, pod: Pod, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self.cluster = cluster = evaluation.request.cluster
        self.with_nominated: Mapping[int, Refusal] = {}
        if cluster.nominations.by_node:
            every = set(np.flatnonzero(cluster.alive).tolist())
            self.with_nominated = snapshot.nominated_pods_check(pod).refusals_with_nominated(every)
        left = cluster.alive.copy()
        left[list(self.with_nominated)] = False
        self.by_filter: list[tuple[Filter, SlotArray]] = []
        for one in evaluation.filters:
            slots = np.flatnonzero(left & ~one.passes(ALL_ROWS)) if one.is_active else NO_SLOTS
            if len(slots):
                left[slots] = False
                self.by_filter.append((one, slots))
        self.by_all = not left.any()

    def counts(self, among: BoolArray | None = None) -> Counter[Refusal]:
        """Count nodes by refusal, of all or of some."""
        found: Counter[Refusal] = Counter()
        for one, slots in self.by_filter:
            found.update(one.refusal_counts(slots if among is None else slots[among[slots]]))
        found.update(
            refusal for slot, refusal in self.with_nominated.items() if among is None or among[slot]
        )
        return found

    def at(self, node: str) -> Refusal | None:
        """Return the first refusal of one node."""
        slot = self.cluster.slots.by_name.get(node, -1)
        if slot in self.with_nominated:
            return self.with_nominated[slot]
        return next((one.refusal(slot) for one, slots in self.by_filter if slot in slots), None)

    def first_node_with(self, refusal: Refusal) -> str:
        """Return the first node by name with this refusal."""
        names = self.cluster.slots.names
        refusing = {names[slot] for slot, found in self.with_nominated.items() if found == refusal}
        for one, slots in self.by_filter:
            if one.name == refusal.plugin:
                by_slot = zip(slots.tolist(), one.refusals(slots), strict=True)
                refusing |= {names[slot] for slot, found in by_slot if found == refusal}
        return min(refusing, default="")


def _main_refusal(refusals: _FirstRefusals) -> Refusal | None:
    """Return the refusal that stands for all: what most nodes lack of those that a pod may use; if
    it may use none, what alone would keep it from all of them, or else the most frequent one. None
    if there are no nodes.
    """
    open_to_it, closed_by = _choices(refusals)
    asked = refusals.counts(open_to_it)
    choices = Counter({one: n for one, n in refusals.counts().items() if one.out_of_reach})
    return _most_usual(asked or closed_by or choices)


def _choices(refusals: _FirstRefusals) -> tuple[BoolArray, Counter[Refusal]]:
    """Return the slots that a pod may use at all, and the refusals of filters that leave it
    none.
    """
    alive = refusals.cluster.alive
    left, closed, nodes = alive.copy(), Counter[Refusal](), int(np.count_nonzero(alive))
    for one in refusals.evaluation.filters:
        if not one.is_active or not one.restricts_nodes:
            continue
        refused = np.flatnonzero(alive & ~one.passes(ALL_ROWS))
        chosen = refused[one.out_of_reach(refused)]
        left[chosen] = False
        if len(chosen) == nodes:
            closed.update(one.refusal_counts(chosen))
    return left, closed


def _most_usual(counted: Counter[Refusal]) -> Refusal | None:
    return min(counted, key=lambda one: (-counted[one], one.plugin, one.reasons), default=None)


def _refused_by_nodes(snapshot: Snapshot, pod: Pod, refusals: _FirstRefusals) -> WaitReason:
    """Return the reason; of a nominated pod, that of the node it is nominated for."""
    nominated = pod.status.nominated_node_name
    if nominated and (there := refusals.at(nominated)) is not None:
        there_reason = _of_refusal(snapshot, pod, there, nominated)
        text = (
            f"nominated for node {nominated}, which victims have yet to leave: {there_reason.text}"
        )
        return WaitReason(there_reason.cause, text, there_reason.drivers)
    unjudged = (one for one in refusals.counts() if one.code == UNJUDGED)
    main = next(unjudged, None) or _main_refusal(refusals)
    if main is None:
        return WaitReason(Cause.NODES, NO_NODES)
    of_volumes = cause_of_plugin(main.plugin) is Cause.VOLUMES
    return _of_refusal(snapshot, pod, main, refusals.first_node_with(main) if of_volumes else "")


def _of_refusal(snapshot: Snapshot, pod: Pod, refusal: Refusal, node: str) -> WaitReason:
    cause = cause_of_plugin(refusal.plugin)
    drivers = _drivers(snapshot, pod, refusal, node) if cause is Cause.VOLUMES else ()
    return WaitReason(cause, ", ".join(refusal.reasons), drivers)


def _drivers(snapshot: Snapshot, pod: Pod, refusal: Refusal, node: str) -> tuple[str, ...]:
    """Return the drivers that are missing or full there; for other reasons, all of the pod."""
    evaluation, slot = snapshot.evaluation(pod), snapshot.cluster.slots.by_name.get(node)
    if slot is not None and isinstance(evaluation, Evaluation):
        refusing = (one for one in evaluation.filters if one.name == refusal.plugin)
        found = {driver for one in refusing for driver in one.refusing_drivers_at(slot)}
        if found:
            return tuple(sorted(found))
    return tuple(sorted({need.driver for need in snapshot.requirements_of(pod).attach}))


# -- all pods that wait ----------------------------------------------------------------------------


PENDING = frozenset({PodState.WAITING, PodState.GATED})
"""States in which a pod is evaluated on nodes."""
QUOTED = re.compile(r'"[^"]*"')
NO_QUEUES: Mapping[str, str] = {}
_NOT_ASKED = Decision(None)


@dataclass(frozen=True, slots=True)
class PendingGroup:
    """Equivalent pods that are pending for the same reason."""

    reason: WaitReason
    """The reason of the first of them."""
    pods: list[str] = field(default_factory=list)


def group_pending_pods(
    snapshot: Snapshot, pods: Iterable[Pod], queues: Mapping[str, str] = NO_QUEUES
) -> list[PendingGroup]:
    """Group pending pods by reason, one after another; `queues` has the reasons of those that wait
    for their queue.
    """
    known: dict[Hashable, PendingGroup] = {}
    with snapshot.fork():
        for pod in pods:
            queue = queues.get(pod.key)
            is_held = queue is not None or bool(pod.spec.scheduling_gates)
            decision = _NOT_ASKED if is_held else snapshot.decide(pod)
            end = (equivalence_key(snapshot, pod), decision.node is not None, queue)
            if end not in known:
                known[end] = PendingGroup(wait_reason(snapshot, pod, queue))
            known[end].pods.append(pod.key)
            if decision.node is not None:
                snapshot.assume(pod, decision)
    return list(known.values())


def list_pending_pods(snapshot: Snapshot) -> list[Pod]:
    """Return the pods without a node: the highest priority first, then the oldest."""
    pending = [
        pod
        for pod in (obj for obj in snapshot.objects() if isinstance(obj, Pod))
        if pod_state(snapshot, pod) in PENDING
    ]
    pending.sort(key=lambda p: (-snapshot.priority(p), p.metadata.creation_timestamp or "", p.key))
    return pending


def equivalence_key(snapshot: Snapshot, pod: Pod) -> Hashable:
    """Return a key that pods share which have one explanation."""
    evaluation = snapshot.evaluation(pod)
    own = (
        snapshot.priority(pod),
        pod.spec.preemption_policy,
        pod.spec.scheduler_name,
        pod.spec.node_name,
        pod.status.nominated_node_name,
        tuple(gate.name for gate in pod.spec.scheduling_gates),
    )
    if isinstance(evaluation, Refusal):  # whose claims have names of their own
        reasons = tuple(QUOTED.sub("", reason) for reason in evaluation.reasons)
        return (snapshot.cluster.signatures.of(pod), evaluation.plugin, reasons, *own)
    request = evaluation.request
    return (request.signature, request.requirements, request.default_spread, *own)
