"""The report of `bayplan queues`: quotas, waiting groups, and the decisions of the next cycle.

`*_data` is the JSON and YAML output, whose stable format docs/commands/queues.md describes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from math import inf
from typing import TYPE_CHECKING

from bayplan.fit import Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.queues import NOTHING, UNLIMITED, QueuePolicyName, Resources
from bayplan.queues.placement import SnapshotPlacement
from bayplan.queues.queue_snapshot import (
    QueueSnapshot,
    QueueView,
    WaitingGroup,
    fill,
    priorities_in,
    queue_snapshot,
)
from bayplan.queues.resources import node_amounts, write_amount, write_amounts
from bayplan.queues.rules import VOLCANO, Rules
from bayplan.queues.session import CyclePlan

if TYPE_CHECKING:
    from bayplan.base.values import JsonObject, JsonValue


def survey_queues(
    objects: Sequence[KubeObject],
    policy: QueuePolicyName = "capacity",
    names: frozenset[str] = frozenset(),
) -> QueueSnapshot:
    """Return the queues of a cluster, with the pods of these schedulers, or of all."""
    return queue_snapshot(
        objects,
        priority_of=priorities_in(objects),
        is_ours=lambda pod: not names or pod.spec.scheduler_name in names,
        policy=policy,
        shared=_all_nodes(objects),
    )


def plan_cycle(
    objects: Sequence[KubeObject], policy: QueuePolicyName, names: frozenset[str], rules: Rules
) -> CyclePlan:
    """Return what one cycle would decide; nothing is changed."""
    nodes = _all_nodes(objects)
    ledger = rules.ledger(
        policy=policy,
        total=nodes if rules is VOLCANO else UNLIMITED,
        priority_of=priorities_in(objects),
    )
    ledger.set_shared(nodes)
    fill(ledger, objects, lambda pod: not names or pod.spec.scheduler_name in names)
    session = rules.session(ledger, SnapshotPlacement(Snapshot(objects), ledger.leaving()))
    rules.act(session)
    return session.plan


def _all_nodes(objects: Iterable[KubeObject]) -> Resources:
    """Return the total capacity of all nodes."""
    return sum((node_amounts(one) for one in objects if isinstance(one, Node)), NOTHING)


def in_namespaces(found: QueueSnapshot, shows: Callable[[str], bool]) -> QueueSnapshot:
    """Return the queues with only the waiting groups of the selected namespaces."""

    def selected(groups: Iterable[WaitingGroup]) -> tuple[WaitingGroup, ...]:
        return tuple(one for one in groups if shows(one.group.partition("/")[0]))

    queues = (replace(view, waiting=selected(view.waiting)) for view in found.queues)
    return QueueSnapshot(tuple(queues), selected(found.astray))


def queues_data(found: QueueSnapshot) -> JsonObject:
    """Return all queues, and the groups whose queue does not exist."""
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
    """Return a waiting group."""
    return {
        "group": one.group,
        "queue": one.queue,
        "position": one.position,
        "pods": list(one.pods),
        "gated": one.gated,
        "asksFor": amounts(one.request),
        "reason": one.code.value if one.code is not None else None,
        "waitsFor": one.text,
    }


def amounts(resources: Resources) -> JsonObject:
    """Return amounts as quantities; a missing resource is zero, or unlimited in a limit."""
    if not resources.rest:
        return {**write_amounts(resources)}
    listed = sorted(resources.amounts.items())
    return {name: write_amount(name, amount) for name, amount in listed if amount < inf}


def cycle_data(plan: CyclePlan) -> JsonObject:
    """Return the decisions of a cycle."""
    return {
        "admitted": [*plan.admitted],
        "ungated": [*plan.ungated],
        "placed": [asdict(one) for one in plan.placed],
        "pipelined": [asdict(one) for one in plan.pipelined],
        "evicted": [asdict(one) for one in plan.evicted],
        "unplaced": [*plan.unplaced],
        "waiting": [
            {"group": key, "queue": one.queue, "reason": one.code.value, "waitsFor": one.text}
            for key, one in plan.waiting.items()
        ],
    }
