"""The explanation itself: ask every filter and score of every node, and say it in words."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from bayplan.fit.evaluation.verdicts import Verdicts
from bayplan.fit.explanation.answer import Explanation, NodeAnswer, Standing
from bayplan.fit.explanation.details import details_of
from bayplan.fit.explanation.message import message_before_nodes, message_of
from bayplan.fit.explanation.search import nearest_fixes
from bayplan.fit.explanation.trial import SnapshotTrial
from bayplan.fit.preemption import preempt
from bayplan.fit.refusal import UNJUDGED, Refusal
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.pods import Pod


def explain(snapshot: Snapshot, pod: Pod, *, with_fixes: bool = True) -> Explanation:
    """Why a pod goes where it goes; nothing is changed."""
    standing = standing_of(snapshot, pod)
    if standing in {Standing.PLACED, Standing.ENDED, Standing.TERMINATING}:
        return _settled(snapshot, pod, standing)
    found = snapshot.verdicts(pod)
    if isinstance(found, Refusal):
        return _refused_before(snapshot, pod, standing, found, with_fixes=with_fixes)
    chosen = snapshot.decide(pod).node
    if chosen is None and any(one.code == UNJUDGED for one in found.refusals.values()):
        return _unjudged(snapshot, pod, standing, found)
    if chosen is None:
        return _does_not_fit(snapshot, pod, standing, found, with_fixes=with_fixes)
    return Explanation(
        pod=pod.key,
        standing=standing,
        node=chosen,
        message=_gated(pod) or f"fits node {chosen}",
        why=_why(snapshot, pod, chosen, found),
        nodes=_answers(snapshot, pod, found),
    )


def standing_of(snapshot: Snapshot, pod: Pod) -> Standing:
    """What a pod's situation is."""
    if pod.is_terminal:
        return Standing.ENDED
    if _node_of(snapshot, pod):
        return Standing.PLACED
    if pod.is_terminating:
        return Standing.TERMINATING
    return Standing.GATED if pod.spec.scheduling_gates else Standing.WAITING


def _why(snapshot: Snapshot, pod: Pod, chosen: str, found: Verdicts) -> str:
    if snapshot.nominated_node(pod) == chosen:
        return "it is the node that the pod is nominated for"
    return why_chosen(chosen, found.scores)


def why_chosen(chosen: str, scores: Mapping[str, Mapping[str, int]]) -> str:
    """Why a node was chosen of those that fit."""
    if len(scores) == 1:
        return "it is the only node that fits"
    total = scores[chosen]["total"]
    others = {node: points for node, points in scores.items() if node != chosen}
    best = max(points["total"] for points in others.values())
    rivals = sorted(node for node, points in others.items() if points["total"] == best)
    if best == total:
        said = f"{len(rivals)} more" if len(rivals) > 3 else ", ".join(rivals)
        return f"it scores highest: {total}, like {said}; a hash of the nodes' names decides"
    leads = _leads(scores[chosen], others[rivals[0]])
    return (
        f"it scores highest of the {len(scores)} nodes that fit: {total};"
        f" next is {rivals[0]} with {best}{leads}"
    )


def _leads(mine: Mapping[str, int], theirs: Mapping[str, int]) -> str:
    ahead = {
        plugin: points - theirs.get(plugin, 0)
        for plugin, points in mine.items()
        if plugin != "total" and points > theirs.get(plugin, 0)
    }
    said = [f"{plugin} +{ahead[plugin]}" for plugin in sorted(ahead, key=lambda p: -ahead[p])[:2]]
    return f" (ahead by {', '.join(said)})" if said else ""


def _settled(snapshot: Snapshot, pod: Pod, standing: Standing) -> Explanation:
    node = _node_of(snapshot, pod) or None
    if standing is Standing.ENDED:
        message = f"has ended ({pod.status.phase}); it needs no node"
    elif standing is Standing.TERMINATING:
        message = "is being deleted and has no node; it will not be placed"
    elif node in snapshot.cluster.slots.by_name:
        message = f"is on node {node}"
    else:
        message = f"is bound to node {node}, which is not in the snapshot"
    return Explanation(pod=pod.key, standing=standing, node=node, message=message)


def _refused_before(
    snapshot: Snapshot, pod: Pod, standing: Standing, refusal: Refusal, *, with_fixes: bool
) -> Explanation:
    preemption = preempt(snapshot, pod)
    sought = nearest_fixes(snapshot, pod) if with_fixes else None
    return Explanation(
        pod=pod.key,
        standing=standing,
        node=None,
        message=_gated(pod) or message_before_nodes(snapshot, pod, refusal, preemption),
        refused_before=refusal,
        preemption=preemption,
        fixes=sought.fixes if sought else (),
        sought=sought,
    )


def _does_not_fit(
    snapshot: Snapshot, pod: Pod, standing: Standing, found: Verdicts, *, with_fixes: bool
) -> Explanation:
    preemption = preempt(snapshot, pod)
    sought = nearest_fixes(snapshot, pod) if with_fixes else None
    return Explanation(
        pod=pod.key,
        standing=standing,
        node=None,
        message=_gated(pod) or message_of(snapshot, pod, found, preemption),
        nodes=_answers(snapshot, pod, found),
        preemption=preemption,
        fixes=sought.fixes if sought else (),
        sought=sought,
    )


def _unjudged(snapshot: Snapshot, pod: Pod, standing: Standing, found: Verdicts) -> Explanation:
    """Nothing is tried for a pod of which nobody can say whether it fits."""
    claims = snapshot.claims_to_allocate(pod)
    which = f" (to be allocated: {', '.join(claims)})" if claims else ""
    unjudged = (one for one in found.refusals.values() if one.code == UNJUDGED)
    reasons = next((", ".join(one.reasons) for one in unjudged), "")
    return Explanation(
        pod=pod.key,
        standing=standing,
        node=None,
        message=_gated(pod) or f"{reasons}{which}",
        nodes=_answers(snapshot, pod, found),
    )


def _gated(pod: Pod) -> str:
    """kube-scheduler's word on a pod with gates, which it does not look at."""
    gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
    return f"waiting for scheduling gates: [{gates}]" if gates else ""


def _answers(snapshot: Snapshot, pod: Pod, found: Verdicts) -> tuple[NodeAnswer, ...]:
    memo: dict[Hashable, Any] = {}
    answers = [
        NodeAnswer(name, refusal, details_of(SnapshotTrial(snapshot, pod, name, refusal, memo)))
        for name, refusal in found.refusals.items()
    ]
    answers += [NodeAnswer(name, scores=scores) for name, scores in found.scores.items()]
    return tuple(
        sorted(answers, key=lambda one: (not one.fits, -one.scores.get("total", 0), one.name))
    )


def _node_of(snapshot: Snapshot, pod: Pod) -> str:
    record = snapshot.cluster.pods.by_key.get(pod.key)
    return record.node if record is not None and record.node else pod.spec.node_name
