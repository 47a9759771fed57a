"""Explanations as JSON and YAML have them; docs/cli.md describes the shape, which is stable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.cli.queues_data import waiting_data
from bayplan.fit.explanation import Explanation, Fix, NodeAnswer
from bayplan.fit.preemption import Preemption
from bayplan.fit.refusal import Refusal

if TYPE_CHECKING:
    from bayplan.kube.codec import JsonObject, JsonValue
    from bayplan.scheduler.batch.inquiry import WaitingGroup


def as_data(explanation: Explanation, held: WaitingGroup | None = None) -> JsonValue:
    """An explanation, with the group that waits for its queue, if it does."""
    before, preemption = explanation.refused_before, explanation.preemption
    return {
        "pod": explanation.pod,
        "standing": explanation.standing.value,
        "fits": explanation.fits and held is None,
        **({"queue": waiting_data(held)} if held is not None else {}),
        "node": explanation.node,
        "message": explanation.message,
        "why": explanation.why,
        "refusedBefore": _refusal(before) if before else None,
        "nodes": [_node(node) for node in explanation.nodes],
        "preemption": _preemption(preemption) if preemption else None,
        "fixes": [_fix(fix) for fix in explanation.fixes],
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
        "steps": [{"kind": step.kind.value, "text": step.text} for step in fix.steps],
    }
