"""Queues as JSON and YAML have them; docs/commands/queues.md has the stable shape."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from bayplan.queues import Resources
from bayplan.queues.resources import write_amount, write_amounts

if TYPE_CHECKING:
    from bayplan.base.values import JsonObject, JsonValue
    from bayplan.scheduler.batch.inquiry import WaitingGroup
    from bayplan.scheduler.batch.survey import QueueView, Survey


def as_data(found: Survey) -> JsonObject:
    """All queues, and the groups whose queue does not exist."""
    return {
        "queues": [_queue(view) for view in found.queues],
        "astray": [waiting_data(one) for one in found.astray],
    }


def _queue(view: QueueView) -> JsonValue:
    node, quota, usage = view.node, view.quota, view.usage
    return {
        "name": node.name,
        "parent": node.path[1] if len(node.path) > 1 else None,
        "state": node.queue.status.state or "Open",
        "share": round(view.share, 6),
        "quota": amounts(quota.real_capability),
        "capability": amounts(quota.capability),
        "deserved": amounts(quota.deserved),
        "guarantee": amounts(quota.guarantee),
        "allocated": amounts(usage.allocated),
        "reserved": amounts(usage.reserved),
        "inqueue": amounts(usage.inqueue),
        "request": amounts(usage.request),
        "waiting": [waiting_data(one) for one in view.waiting],
        "problems": list(view.problems),
    }


def waiting_data(one: WaitingGroup) -> JsonObject:
    """A group that waits."""
    return {
        "group": one.group,
        "queue": one.queue,
        "position": one.position,
        "pods": list(one.pods),
        "gated": one.gated,
        "asksFor": amounts(one.asks),
        "reason": one.why.value if one.why is not None else None,
        "waitsFor": one.text,
    }


def amounts(resources: Resources) -> JsonObject:
    """Amounts as quantities; what is not there is nothing, or of a limit unlimited."""
    if not resources.rest:
        return {**write_amounts(resources)}
    said = sorted(resources.amounts.items())
    return {name: write_amount(name, amount) for name, amount in said if amount < inf}
