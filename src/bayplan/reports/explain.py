"""Explanations: which pods are asked about, and what is said of them, as data.

`*_data` is what JSON and YAML have; docs/commands/explain.md has the stable shape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bayplan.base.errors import InputError
from bayplan.fit import Snapshot
from bayplan.fit.explanation import Fix, NodeAnswer, Step
from bayplan.fit.explanation.sought import Sought
from bayplan.fit.explanation.waiting import waiting_pods
from bayplan.fit.preemption import Preemption
from bayplan.fit.refusal import Refusal
from bayplan.kube.codec import DEFAULT_NAMESPACE, ObjectError, identify
from bayplan.kube.devices import ResourceClaim
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.reports.judgement import JudgedBy
from bayplan.reports.manifests import read_manifest
from bayplan.reports.pending import EquivalentPods, outcome_of
from bayplan.reports.queues import waiting_data
from bayplan.reports.what_if import newly_made, replicas

if TYPE_CHECKING:
    from bayplan.base.values import JsonObject, JsonValue
    from bayplan.queues.survey import WaitingGroup
    from bayplan.reports.pending import HeldPods


MOST_MEANT = 3
KUBECTLS_WORDS = frozenset({"pod", "pods", "po"})
"""What kubectl lets stand before the name of a pod."""


def pending_pods(snapshot: Snapshot, where: str) -> list[Pod]:
    """All pods that wait; InputError if there is neither a pod nor a node."""
    if not any(isinstance(obj, Node | Pod) for obj in snapshot.objects()):
        raise InputError(f"there is neither a pod nor a node in the {where}")
    return waiting_pods(snapshot)


def pods_of_manifest(snapshot: Snapshot, path: str, copies: int) -> list[Pod]:
    """Pods of a file, put beside the cluster with all that the file holds; each so many times."""
    manifest = read_manifest(path)
    try:
        for obj in manifest.others:
            snapshot.put(obj)
    except ObjectError as error:
        raise InputError(f"--pod: {error}") from None
    asked: dict[str, Pod] = {}
    for pod in manifest.pods:
        for one in replicas(snapshot, newly_made(snapshot, pod), copies):
            if one.key in asked or snapshot.get(Pod, one.key) is not None:
                said = f"there is a pod {one.key} in the dump already, or twice here"
                raise InputError(f"--pod: {said}")
            asked[one.key] = one
    return list(asked.values())


def lacks_device_claims(snapshot: Snapshot, pods: Sequence[Pod]) -> bool:
    """Whether pods claim devices and no claim was read: dumps are easily taken without them."""
    return any(pod.spec.resource_claims for pod in pods) and not any(
        isinstance(obj, ResourceClaim) for obj in snapshot.objects()
    )


def find_pod(
    snapshot: Snapshot, name: str, namespace: str = DEFAULT_NAMESPACE, where: str = "dump"
) -> Pod:
    """The pod of that name; InputError if there is none that can be used."""
    said, slash, bare = name.rpartition("/")
    if not slash or (said in KUBECTLS_WORDS and snapshot.get(Pod, name) is None):
        said = namespace
    key = f"{said}/{bare}"
    _refuse_bad_pod(snapshot, said, bare)
    found = snapshot.get(Pod, key)
    if not isinstance(found, Pod):
        hint = _elsewhere(snapshot, bare)
        raise InputError(f"there is no pod {key[:200]} in the {where}{hint}")
    return found


def _elsewhere(snapshot: Snapshot, name: str) -> str:
    """Where else there is a pod of that name."""
    keys = [
        obj.key for obj in snapshot.objects() if isinstance(obj, Pod) and obj.metadata.name == name
    ]
    return f"; did you mean {', '.join(sorted(keys)[:MOST_MEANT])}?" if keys else ""


def _refuse_bad_pod(snapshot: Snapshot, namespace: str, name: str) -> None:
    """A pod that was left out is bad input, not a pod that is not there."""
    names = {identify("Pod", namespace, name)}
    if namespace == DEFAULT_NAMESPACE:
        names.add(identify("Pod", "", name))
    for problem in snapshot.problems:
        if problem.identity in names:
            raise InputError(f"the pod cannot be used: {problem}")


def explanation_data(one: EquivalentPods, held: WaitingGroup | None = None) -> JsonObject:
    """An explanation of pods alike, with the group that waits for its queue, if it does."""
    explanation = one.explanation
    before, preemption = explanation.refused_before, explanation.preemption
    return {
        "pod": explanation.pod,
        "pods": list(one.pods),
        "standing": explanation.standing.value,
        "fits": explanation.fits and held is None,
        "unjudged": explanation.unjudged,
        "judged": _judged(one.judged),
        **({"queue": waiting_data(held)} if held is not None else {}),
        "node": explanation.node,
        "placed": dict(one.nodes),
        "message": explanation.message,
        "why": explanation.why,
        "refusedBefore": _refusal(before) if before else None,
        "nodes": [_node(node) for node in explanation.nodes],
        "preemption": _preemption(preemption) if preemption else None,
        "fixes": [_fix(fix) for fix in explanation.fixes],
        "sought": _sought(explanation.sought) if explanation.sought else None,
    }


def summary_data(found: Sequence[EquivalentPods], held: HeldPods) -> JsonValue:
    """How many pods there are by how it ends for them and why, the most first."""
    counts: Counter[tuple[str, str]] = Counter()
    for one in found:
        counts[outcome_of(one, held)] += len(one.pods)
    return [{"end": end, "cause": why, "pods": n} for (end, why), n in counts.most_common()]


def _judged(judged: JudgedBy) -> JsonValue:
    return {
        "scheduler": judged.scheduler,
        "as": judged.rules,
        "notes": list(judged.notes),
        "other": {"as": judged.other, "node": judged.other_node} if judged.other else None,
    }


def _node(answer: NodeAnswer) -> JsonValue:
    data: JsonObject = {"name": answer.name, "fits": answer.fits}
    if answer.refusal is not None:
        data.update(_refusal(answer.refusal))
        data["details"] = list(answer.details)
    else:
        data["scores"] = dict(answer.scores)
    return data


def _refusal(refusal: Refusal) -> JsonObject:
    return {
        "code": refusal.code,
        "plugin": refusal.plugin,
        "reasons": list(refusal.reasons),
    }


def _preemption(preemption: Preemption) -> JsonValue:
    return {
        "node": preemption.node,
        "victims": [pod.key for pod in preemption.victims],
        "budgetsBroken": preemption.budgets_broken,
        "message": preemption.message,
    }


def _fix(fix: Fix) -> JsonValue:
    return {
        "summary": fix.summary,
        "node": fix.node,
        "cost": round(fix.cost, 3),
        "steps": [_step(step) for step in fix.steps],
    }


def _sought(sought: Sought) -> JsonValue:
    miss = sought.nearest
    return {
        "nodes": sought.nodes,
        "tried": sought.tried,
        "kinds": sought.kinds,
        "mostSteps": sought.most_steps,
        "nearest": None
        if miss is None
        else {
            "node": miss.node,
            "reasons": [reason for one in miss.refusals for reason in one.reasons],
            "details": list(miss.details),
        },
    }


def _step(step: Step) -> JsonValue:
    target = step.target
    return {
        "kind": step.kind.value,
        "text": step.text,
        "target": {"kind": target.kind, "namespace": target.namespace, "name": target.name},
        "patch": step.patch,
        "command": step.command,
        "risks": [risk.value for risk in step.risks],
    }
