"""Explanations as JSON and YAML have them; docs/commands/explain.md has the stable shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bayplan.cli.pending import Alike, end_of
from bayplan.cli.queues_data import waiting_data
from bayplan.cli.whose import Judged
from bayplan.fit.explanation import Fix, NodeAnswer, Step
from bayplan.fit.explanation.sought import Sought
from bayplan.fit.preemption import Preemption
from bayplan.fit.refusal import Refusal

if TYPE_CHECKING:
    from bayplan.base.values import JsonObject, JsonValue
    from bayplan.cli.held import Held
    from bayplan.scheduler.batch.inquiry import WaitingGroup


def as_data(one: Alike, held: WaitingGroup | None = None) -> JsonObject:
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


def summary_data(found: Sequence[Alike], held: Held) -> JsonValue:
    """How many pods there are by how it ends for them and why, the most first."""
    counts: Counter[tuple[str, str]] = Counter()
    for one in found:
        counts[end_of(one, held)] += len(one.pods)
    return [{"end": end, "cause": why, "pods": n} for (end, why), n in counts.most_common()]


def _judged(judged: Judged) -> JsonValue:
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
