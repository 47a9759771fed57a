"""Every pod that waits, in the order in which a scheduler would take them, those alike together.

Each pod that fits is taken as placed before the next is looked at, unless it waits for its queue or
a gate. Pods of one likeness that meet the same end have one cause.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from bayplan.fit.decision import Decision
from bayplan.fit.explanation.answer import Standing
from bayplan.fit.explanation.cause import Waiting, why_it_waits
from bayplan.fit.explanation.explain import standing_of
from bayplan.fit.refusal import Refusal
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.pods import Pod

ASKING = frozenset({Standing.WAITING, Standing.GATED})
"""Pods of which nodes are asked."""
QUOTED = re.compile(r'"[^"]*"')
NOBODY: Mapping[str, str] = {}
_NOT_ASKED = Decision(None)


@dataclass(frozen=True, slots=True)
class WaitingAlike:
    """Pods of one likeness that wait for the same."""

    waiting: Waiting
    """Why the first of them does."""
    pods: list[str] = field(default_factory=list)


def waiting_alike(
    snapshot: Snapshot, pods: Iterable[Pod], queues: Mapping[str, str] = NOBODY
) -> list[WaitingAlike]:
    """What these pods wait for, taken one after another; `queues` has those that wait for their
    queue, with what is to be said of it.
    """
    known: dict[Hashable, WaitingAlike] = {}
    with snapshot.fork():
        for pod in pods:
            queue = queues.get(pod.key)
            is_held = queue is not None or bool(pod.spec.scheduling_gates)
            decision = _NOT_ASKED if is_held else snapshot.decide(pod)
            end = (likeness(snapshot, pod), decision.node is not None, queue)
            if end not in known:
                known[end] = WaitingAlike(why_it_waits(snapshot, pod, queue))
            known[end].pods.append(pod.key)
            if decision.node is not None:
                snapshot.assume(pod, decision)
    return list(known.values())


def waiting_pods(snapshot: Snapshot) -> list[Pod]:
    """Pods without a node: the most important first, then the oldest."""
    waiting = [
        pod
        for pod in (obj for obj in snapshot.objects() if isinstance(obj, Pod))
        if standing_of(snapshot, pod) in ASKING
    ]
    waiting.sort(key=lambda p: (-snapshot.priority(p), p.metadata.creation_timestamp or "", p.key))
    return waiting


def likeness(snapshot: Snapshot, pod: Pod) -> Hashable:
    """Pods of one likeness have one explanation."""
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
        said = tuple(QUOTED.sub("", reason) for reason in evaluation.reasons)
        return (snapshot.cluster.signatures.of(pod), evaluation.plugin, said, *own)
    question = evaluation.question
    return (question.signature, question.requirements, question.default_spread, *own)
