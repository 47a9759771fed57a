"""Every pod that waits, explained in the order in which a scheduler would take them.

Replicas that fit nowhere fit nowhere for the same reason: as long as nothing has been placed in
between, a pod of the same shape and needs gets the explanation of the one before.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator
from dataclasses import replace

from bayplan.fit import Refusal, Snapshot
from bayplan.fit.explanation import Explanation, Standing
from bayplan.fit.explanation.explain import standing_of
from bayplan.kube.pods import Pod


def explain_pending(
    snapshot: Snapshot, held: Container[str] = (), *, with_fixes: bool
) -> Iterator[Explanation]:
    """Explain each pod that waits, and take it as placed if it fits and nobody holds it back."""
    known: dict[Hashable, Explanation] = {}
    with snapshot.fork():
        for pod in waiting_pods(snapshot):
            like = likeness(snapshot, pod)
            alike = known.get(like) if like is not None else None
            explanation = (
                snapshot.explain(pod, with_fixes=with_fixes)
                if alike is None
                else replace(alike, pod=pod.key)
            )
            goes = explanation.fits and pod.key not in held
            if goes and explanation.node is not None:
                snapshot.assume(pod, snapshot.decision_on(pod, explanation.node))
                known.clear()
            elif like is not None:
                known[like] = explanation
            yield explanation


def waiting_pods(snapshot: Snapshot) -> list[Pod]:
    """Pods without a node: the most important first, then the oldest."""
    waiting = [
        pod
        for pod in (obj for obj in snapshot.objects() if isinstance(obj, Pod))
        if standing_of(snapshot, pod) in {Standing.WAITING, Standing.GATED}
    ]
    waiting.sort(key=lambda p: (-snapshot.priority(p), p.metadata.creation_timestamp or "", p.key))
    return waiting


def likeness(snapshot: Snapshot, pod: Pod) -> Hashable | None:
    """Pods of one likeness have one explanation; None for a pod that is like no other."""
    evaluation = snapshot.evaluation(pod)
    if isinstance(evaluation, Refusal):
        return None  # the refusal names its own claims
    question = evaluation.question
    return (
        question.shape,
        question.needs,
        question.default_spread,
        snapshot.priority(pod),
        pod.spec.preemption_policy,
        pod.status.nominated_node_name,
        tuple(gate.name for gate in pod.spec.scheduling_gates),
    )
