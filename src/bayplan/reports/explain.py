"""The report of `bayplan explain`: the pods to explain, and the explanations as data.

`*_data` is the JSON and YAML output, whose stable format docs/commands/explain.md describes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bayplan.base.errors import InputError
from bayplan.fit import Snapshot
from bayplan.fit.decision import Refusal
from bayplan.fit.explanation import Fix, NodeVerdict, Step
from bayplan.fit.explanation.cause import list_pending_pods
from bayplan.fit.explanation.result import FixSearchResult
from bayplan.fit.fixes import Risk
from bayplan.fit.preemption import Preemption
from bayplan.kube.codec import DEFAULT_NAMESPACE, ObjectError, identify
from bayplan.kube.devices import ResourceClaim
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.reports.judgement import JudgedBy
from bayplan.reports.manifests import read_manifest
from bayplan.reports.pending import EquivalentPods, outcome_of
from bayplan.reports.queues import waiting_data
from bayplan.reports.what_if import replicas, with_generated_claims

if TYPE_CHECKING:
    from bayplan.base.values import JsonObject, JsonValue
    from bayplan.queues.queue_snapshot import WaitingGroup
    from bayplan.reports.pending import HeldPods


MOST_MEANT = 3
KUBECTL_PREFIXES = frozenset({"pod", "pods", "po"})
"""Prefixes that kubectl accepts before the name of a pod, as in `pod/NAME`."""


def pending_pods(snapshot: Snapshot, where: str) -> list[Pod]:
    """Return all pending pods; InputError if there are neither pods nor nodes."""
    if not any(isinstance(obj, Node | Pod) for obj in snapshot.objects()):
        raise InputError(f"the {where} contains neither pods nor nodes")
    return list_pending_pods(snapshot)


def pods_of_manifest(snapshot: Snapshot, path: str, copies: int) -> list[Pod]:
    """Add the objects of a manifest to the snapshot; return its pods, each `copies` times."""
    manifest = read_manifest(path)
    try:
        for obj in manifest.others:
            snapshot.put(obj)
    except ObjectError as error:
        raise InputError(f"--pod: {error}") from None
    asked: dict[str, Pod] = {}
    for pod in manifest.pods:
        for one in replicas(snapshot, with_generated_claims(snapshot, pod), copies):
            if one.key in asked or snapshot.get(Pod, one.key) is not None:
                problem = f"pod {one.key} exists in the cluster, or twice in the manifest"
                raise InputError(f"--pod: {problem}")
            asked[one.key] = one
    return list(asked.values())


def lacks_device_claims(snapshot: Snapshot, pods: Sequence[Pod]) -> bool:
    """Return whether pods claim devices but no ResourceClaim was read, as in incomplete dumps."""
    return any(pod.spec.resource_claims for pod in pods) and not any(
        isinstance(obj, ResourceClaim) for obj in snapshot.objects()
    )


def find_pod(
    snapshot: Snapshot, name: str, namespace: str = DEFAULT_NAMESPACE, where: str = "dump"
) -> Pod:
    """Return the pod of that name; InputError if it does not exist or is invalid."""
    prefix, slash, bare = name.rpartition("/")
    if not slash or (prefix in KUBECTL_PREFIXES and snapshot.get(Pod, name) is None):
        prefix = namespace
    key = f"{prefix}/{bare}"
    _refuse_bad_pod(snapshot, prefix, bare)
    found = snapshot.get(Pod, key)
    if not isinstance(found, Pod):
        hint = _elsewhere(snapshot, bare)
        raise InputError(f"pod {key[:200]} not found in the {where}{hint}")
    return found


def _elsewhere(snapshot: Snapshot, name: str) -> str:
    """Return a hint with pods of that name in other namespaces."""
    keys = [
        obj.key for obj in snapshot.objects() if isinstance(obj, Pod) and obj.metadata.name == name
    ]
    return f"; did you mean {', '.join(sorted(keys)[:MOST_MEANT])}?" if keys else ""


def _refuse_bad_pod(snapshot: Snapshot, namespace: str, name: str) -> None:
    """Raise InputError if the pod was ignored because it is invalid."""
    names = {identify("Pod", namespace, name)}
    if namespace == DEFAULT_NAMESPACE:
        names.add(identify("Pod", "", name))
    for problem in snapshot.problems:
        if problem.identity in names:
            raise InputError(f"the pod is invalid: {problem}")


_OLD_RISKS = {Risk.NEEDS_MANUAL_STEPS: "needs-hands"}
"""The deprecated names of risks."""


def explanation_data(
    one: EquivalentPods, held: WaitingGroup | None = None, *, with_old_names: bool = False
) -> JsonObject:
    """Return the explanation of equivalent pods, with the group that waits for its queue.

    `with_old_names` adds the deprecated names of risks.
    """
    explanation = one.explanation
    before, preemption = explanation.refused_before, explanation.preemption
    return {
        "pod": explanation.pod,
        "pods": list(one.pods),
        "standing": explanation.state.value,
        "fits": explanation.fits and held is None,
        "unjudged": explanation.unjudged,
        "judged": _judged(one.judged),
        **({"queue": waiting_data(held)} if held is not None else {}),
        "node": explanation.node,
        "placed": dict(one.nodes),
        "message": explanation.message,
        "why": explanation.choice_reason,
        "refusedBefore": _refusal(before) if before else None,
        "nodes": [_node(node) for node in explanation.nodes],
        "preemption": _preemption(preemption) if preemption else None,
        "fixes": [_fix(fix, _OLD_RISKS if with_old_names else {}) for fix in explanation.fixes],
        "sought": _sought(explanation.search) if explanation.search else None,
    }


def summary_data(found: Sequence[EquivalentPods], held: HeldPods) -> JsonValue:
    """Return the number of pods by outcome and cause, the most first."""
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


def _node(answer: NodeVerdict) -> JsonValue:
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


def _fix(fix: Fix, old_risks: Mapping[Risk, str]) -> JsonValue:
    return {
        "summary": fix.summary,
        "node": fix.node,
        "cost": round(fix.cost, 3),
        "steps": [_step(step, old_risks) for step in fix.steps],
    }


def _sought(sought: FixSearchResult) -> JsonValue:
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


def _step(step: Step, old_risks: Mapping[Risk, str]) -> JsonValue:
    target = step.target
    return {
        "kind": step.kind.value,
        "text": step.text,
        "target": {"kind": target.kind, "namespace": target.namespace, "name": target.name},
        "patch": step.patch,
        "command": step.command,
        "risks": [
            *(risk.value for risk in step.risks),
            *(old_risks[risk] for risk in step.risks if risk in old_risks),
        ],
    }
