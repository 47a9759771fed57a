"""The report of `bayplan plan`: what the autoscaler would do next in a static cluster.

`plan_data` is the JSON and YAML output, whose stable format docs/commands/plan.md describes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING

from bayplan.autoscaler.cloudstate.reader import CloudReader
from bayplan.autoscaler.expanders import Chain, ExpanderContext, PodPrices, parse_expanders
from bayplan.autoscaler.expanders.chain import PRICE, open_remote
from bayplan.autoscaler.expanders.price import pod_prices
from bayplan.autoscaler.offline import OfflinePlan, StaticCluster, groups_by_node_kind, plan_offline
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.plan import (
    ConsideredGroup,
    MixResult,
    NoScaleUpInfo,
    Removal,
    ScaleUp,
    UnremovableNodeInfo,
)
from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.autoscaler.providers.declared.provider import DeclaredProvider
from bayplan.base.clock import WallClock
from bayplan.base.errors import InputError

if TYPE_CHECKING:
    from bayplan.base.values import JsonValue


SEED = 1
"""The random seed for ties, fixed so that the same cluster gives the same plan."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The inputs of the autoscaler's decision."""

    declared: tuple[Declaration, ...] | None = None
    """The node groups; None for one group of each kind of existing node."""
    priorities: str | None = None
    """The content of the priority expander's ConfigMap."""
    options: AutoscalerOptions = field(default_factory=AutoscalerOptions)


async def plan_next(still: StaticCluster, request: PlanRequest, now: datetime) -> OfflinePlan:
    """Return what one loop would do; InputError if there are no node groups."""
    options, prices = request.options, PodPrices()
    names = parse_expanders(options.expander)
    defaults = options.group_defaults()
    if request.declared is None:
        cloud = groups_by_node_kind(still, defaults)
        if not cloud.groups:
            raise InputError("the cluster contains no nodes: declare node groups with --groups")
    else:
        provider = DeclaredProvider(request.declared, still.nodes())
        cloud = await CloudReader(provider, defaults, WallClock()).read()
        if PRICE in names:
            waiting = [one for one in still.pods() if not one.spec.node_name]
            prices = await pod_prices(provider, still.snapshot, waiting, now)
    chance = Random(SEED)  # noqa: S311 - not for secrets
    async with open_remote(options) as remote:
        chain = Chain(names, ExpanderContext(chance, prices, request.priorities, remote))
        return await chain.settle(lambda: plan_offline(still, cloud, chain, options, now))


def plan_data(shown: OfflinePlan, left_out: int, incomplete: JsonValue) -> JsonValue:
    """Return what one loop would do, and which inputs were incomplete."""
    plan = shown.plan
    return {
        "leftOut": left_out,
        "incomplete": incomplete,
        "nodesToAdd": plan.new_nodes,
        "cost": total_cost(shown),
        "nodesToAddBlindToVolumes": shown.nodes_without_attach_limits,
        "message": plan.message,
        "scaleUps": [_scale_up(one) for one in plan.scale_ups],
        "mixed": _mixed(plan.mixed) if plan.mixed else None,
        "considered": [_considered(one) for one in plan.considered],
        "fits": dict(plan.fits),
        "pending": [_pending(one) for one in plan.pending],
        "notCounted": dict(plan.ignored_pods),
        "removals": [_removal(one) for one in plan.removals],
        "stays": [_stays(one) for one in plan.unremovable],
        "notes": [{"reason": one.reason, "message": one.message} for one in plan.notes],
        "problems": {name: list(texts) for name, texts in shown.problems.items()},
    }


def total_cost(shown: OfflinePlan) -> float | None:
    """Return the price per hour of all new nodes; None if that of one is unknown."""
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


def _mixed(one: MixResult) -> JsonValue:
    return {
        "cost": one.cost,
        "lowerBound": one.bound,
        "gap": one.gap,
        "unit": "price" if one.priced else "nodes",
    }


def _considered(one: ConsideredGroup) -> JsonValue:
    return {
        "group": one.group,
        "nodes": one.nodes,
        "pods": one.pods,
        "cost": one.cost,
        "refused": one.refused,
    }


def _pending(one: NoScaleUpInfo) -> JsonValue:
    return {
        "pod": one.pod,
        "cause": one.cause.value,
        "driver": one.driver,
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


def _stays(one: UnremovableNodeInfo) -> JsonValue:
    return {"node": one.node, "reason": one.reason, "pod": one.pod, "detail": one.detail}
