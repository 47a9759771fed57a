"""The explanation itself: every filter and score on every node, in words."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from bayplan.fit.decision import UNJUDGED, Refusal
from bayplan.fit.evaluation.verdicts import Verdicts
from bayplan.fit.explanation.message import message_before_nodes, message_of
from bayplan.fit.explanation.result import Explanation, NodeVerdict, PodState
from bayplan.fit.explanation.search import nearest_fixes
from bayplan.fit.explanation.trial import SnapshotTrial, details_of
from bayplan.fit.preemption import preempt
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.pods import Pod


def explain(snapshot: Snapshot, pod: Pod, *, with_fixes: bool = True) -> Explanation:
    """Explain why a pod goes where it goes, or nowhere; nothing is changed."""
    state = pod_state(snapshot, pod)
    if state in {PodState.PLACED, PodState.ENDED, PodState.TERMINATING}:
        return _settled(snapshot, pod, state)
    found = snapshot.verdicts(pod)
    if isinstance(found, Refusal):
        return _refused_before(snapshot, pod, state, found, with_fixes=with_fixes)
    chosen = snapshot.decide(pod).node
    if chosen is None and any(one.code == UNJUDGED for one in found.refusals.values()):
        return _unjudged(snapshot, pod, state, found)
    if chosen is None:
        return _does_not_fit(snapshot, pod, state, found, with_fixes=with_fixes)
    return Explanation(
        pod=pod.key,
        state=state,
        node=chosen,
        message=_gated(pod) or f"fits node {chosen}",
        choice_reason=_choice_reason(snapshot, pod, chosen, found),
        nodes=_node_verdicts(snapshot, pod, found),
    )


def pod_state(snapshot: Snapshot, pod: Pod) -> PodState:
    """Return a pod's state before any node is evaluated."""
    if pod.is_terminal:
        return PodState.ENDED
    if _node_of(snapshot, pod):
        return PodState.PLACED
    if pod.is_terminating:
        return PodState.TERMINATING
    return PodState.GATED if pod.spec.scheduling_gates else PodState.WAITING


def _choice_reason(snapshot: Snapshot, pod: Pod, chosen: str, found: Verdicts) -> str:
    if snapshot.nominated_node(pod) == chosen:
        return "it is the node that the pod is nominated for"
    return choice_reason(chosen, found.scores)


def choice_reason(chosen: str, scores: Mapping[str, Mapping[str, int]]) -> str:
    """Return why a node was chosen of those that fit."""
    if len(scores) == 1:
        return "it is the only node that fits"
    total = scores[chosen]["total"]
    others = {node: points for node, points in scores.items() if node != chosen}
    best = max(points["total"] for points in others.values())
    runners_up = sorted(node for node, points in others.items() if points["total"] == best)
    if best == total:
        described = f"{len(runners_up)} more" if len(runners_up) > 3 else ", ".join(runners_up)
        return f"it scores highest: {total}, like {described}; a hash of the nodes' names decides"
    leads = _leads(scores[chosen], others[runners_up[0]])
    return (
        f"it scores highest of the {len(scores)} nodes that fit: {total};"
        f" next is {runners_up[0]} with {best}{leads}"
    )


def _leads(mine: Mapping[str, int], theirs: Mapping[str, int]) -> str:
    ahead = {
        plugin: points - theirs.get(plugin, 0)
        for plugin, points in mine.items()
        if plugin != "total" and points > theirs.get(plugin, 0)
    }
    described = [
        f"{plugin} +{ahead[plugin]}" for plugin in sorted(ahead, key=lambda p: -ahead[p])[:2]
    ]
    return f" (ahead by {', '.join(described)})" if described else ""


def _settled(snapshot: Snapshot, pod: Pod, state: PodState) -> Explanation:
    node = _node_of(snapshot, pod) or None
    if state is PodState.ENDED:
        message = f"has ended ({pod.status.phase}); it needs no node"
    elif state is PodState.TERMINATING:
        message = "is being deleted and has no node; it will not be scheduled"
    elif node in snapshot.cluster.slots.by_name:
        message = f"is on node {node}"
    else:
        message = f"is bound to node {node}, which is not in the snapshot"
    return Explanation(pod=pod.key, state=state, node=node, message=message)


def _refused_before(
    snapshot: Snapshot, pod: Pod, state: PodState, refusal: Refusal, *, with_fixes: bool
) -> Explanation:
    preemption = preempt(snapshot, pod)
    search = nearest_fixes(snapshot, pod) if with_fixes else None
    return Explanation(
        pod=pod.key,
        state=state,
        node=None,
        message=_gated(pod) or message_before_nodes(snapshot, pod, refusal, preemption),
        refused_before=refusal,
        preemption=preemption,
        fixes=search.fixes if search else (),
        search=search,
    )


def _does_not_fit(
    snapshot: Snapshot, pod: Pod, state: PodState, found: Verdicts, *, with_fixes: bool
) -> Explanation:
    preemption = preempt(snapshot, pod)
    search = nearest_fixes(snapshot, pod) if with_fixes else None
    return Explanation(
        pod=pod.key,
        state=state,
        node=None,
        message=_gated(pod) or message_of(snapshot, pod, found, preemption),
        nodes=_node_verdicts(snapshot, pod, found),
        preemption=preemption,
        fixes=search.fixes if search else (),
        search=search,
    )


def _unjudged(snapshot: Snapshot, pod: Pod, state: PodState, found: Verdicts) -> Explanation:
    """Explain a pod that cannot be judged; no fixes are searched for it."""
    claims = snapshot.claims_to_allocate(pod)
    which = f" (to be allocated: {', '.join(claims)})" if claims else ""
    unjudged = (one for one in found.refusals.values() if one.code == UNJUDGED)
    reasons = next((", ".join(one.reasons) for one in unjudged), "")
    return Explanation(
        pod=pod.key,
        state=state,
        node=None,
        message=_gated(pod) or f"{reasons}{which}",
        nodes=_node_verdicts(snapshot, pod, found),
    )


def _gated(pod: Pod) -> str:
    """Return kube-scheduler's message for a pod with gates; empty if it has none."""
    gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
    return f"waiting for scheduling gates: [{gates}]" if gates else ""


def _node_verdicts(snapshot: Snapshot, pod: Pod, found: Verdicts) -> tuple[NodeVerdict, ...]:
    cache: dict[Hashable, Any] = {}
    answers = [
        NodeVerdict(name, refusal, details_of(SnapshotTrial(snapshot, pod, name, refusal, cache)))
        for name, refusal in found.refusals.items()
    ]
    answers += [NodeVerdict(name, scores=scores) for name, scores in found.scores.items()]
    return tuple(
        sorted(answers, key=lambda one: (not one.fits, -one.scores.get("total", 0), one.name))
    )


def _node_of(snapshot: Snapshot, pod: Pod) -> str:
    record = snapshot.cluster.pods.by_key.get(pod.key)
    return record.node if record is not None and record.node else pod.spec.node_name
