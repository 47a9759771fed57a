"""A plan as JSON and YAML have it; docs/commands/plan.md describes the shape, which is stable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.autoscaler.offline import Shown
from bayplan.autoscaler.plan import Considered, LeftPending, Mixed, Removal, ScaleUp, Stays

if TYPE_CHECKING:
    from bayplan.base.values import JsonValue


def as_data(shown: Shown, left_out: int, incomplete: JsonValue) -> JsonValue:
    """What a loop would do, and what that rests on less than it should."""
    plan = shown.plan
    return {
        "leftOut": left_out,
        "incomplete": incomplete,
        "nodesToAdd": plan.bought,
        "cost": total_cost(shown),
        "nodesToAddBlindToVolumes": shown.blind,
        "message": plan.message,
        "scaleUps": [_scale_up(one) for one in plan.scale_ups],
        "mixed": _mixed(plan.mixed) if plan.mixed else None,
        "considered": [_considered(one) for one in plan.considered],
        "fits": dict(plan.fits),
        "pending": [_pending(one) for one in plan.pending],
        "notCounted": dict(plan.set_aside),
        "removals": [_removal(one) for one in plan.removals],
        "stays": [_stays(one) for one in plan.stays],
        "notes": [{"reason": one.reason, "message": one.message} for one in plan.notes],
        "problems": {name: list(texts) for name, texts in shown.problems.items()},
    }


def total_cost(shown: Shown) -> float | None:
    """What all new nodes cost an hour; None if nobody can say it of one of them."""
    costs = [one.cost for one in shown.plan.scale_ups]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if costs and len(known) == len(costs) else None


def _scale_up(one: ScaleUp) -> JsonValue:
    return {
        "group": one.group,
        "from": one.from_size,
        "to": one.to_size,
        "max": one.max_size,
        "cost": one.cost,
        "nodes": [{"pods": list(pods)} for pods in one.nodes],
    }


def _mixed(one: Mixed) -> JsonValue:
    return {
        "cost": one.cost,
        "lowerBound": one.bound,
        "gap": one.gap,
        "unit": "price" if one.priced else "nodes",
    }


def _considered(one: Considered) -> JsonValue:
    return {
        "group": one.group,
        "nodes": one.nodes,
        "pods": one.pods,
        "cost": one.cost,
        "refused": one.refused,
    }


def _pending(one: LeftPending) -> JsonValue:
    return {
        "pod": one.pod,
        "cause": one.cause.kind,
        "driver": one.cause.driver,
        "never": one.never,
        "byGroup": {
            name: {"reasons": list(reasons), "details": list(one.details.get(name, ()))}
            for name, reasons in one.by_group.items()
        },
    }


def _removal(one: Removal) -> JsonValue:
    return {
        "node": one.node,
        "group": one.group,
        "reason": one.reason,
        "moved": dict(one.moved),
        "saves": one.saves,
    }


def _stays(one: Stays) -> JsonValue:
    return {"node": one.node, "reason": one.reason, "pod": one.pod, "detail": one.detail}
