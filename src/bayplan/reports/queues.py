"""Queues: what each has and who waits for what, and what the next cycle would decide.

`*_data` is what JSON and YAML have; docs/commands/queues.md has the stable shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from math import inf
from typing import TYPE_CHECKING

from bayplan.fit import Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.queues import NOTHING, UNLIMITED, VOLCANO, Ledger, QueuePolicyName, Resources, Rules
from bayplan.queues.actions import act
from bayplan.queues.placement import SnapshotPlacement
from bayplan.queues.resources import node_amounts, write_amount, write_amounts
from bayplan.queues.session import Plan, Session
from bayplan.queues.survey import QueueView, Survey, WaitingGroup, fill, priorities_in, survey

if TYPE_CHECKING:
    from bayplan.base.values import JsonObject, JsonValue


def survey_queues(
    objects: Sequence[KubeObject],
    policy: QueuePolicyName = "capacity",
    names: frozenset[str] = frozenset(),
) -> Survey:
    """The queues of a cluster, with the pods of those schedulers, or of all."""
    return survey(
        objects,
        priority_of=priorities_in(objects),
        is_ours=lambda pod: not names or pod.spec.scheduler_name in names,
        policy=policy,
        shared=_all_nodes(objects),
    )


def plan_cycle(
    objects: Sequence[KubeObject], policy: QueuePolicyName, names: frozenset[str], rules: Rules
) -> Plan:
    """What one cycle would decide about a cluster; nothing is done."""
    nodes = _all_nodes(objects)
    ledger = Ledger(
        policy=policy,
        total=nodes if rules is VOLCANO else UNLIMITED,
        rules=rules,
        priority_of=priorities_in(objects),
    )
    ledger.set_shared(nodes)
    fill(ledger, objects, lambda pod: not names or pod.spec.scheduler_name in names)
    session = Session(ledger, SnapshotPlacement(Snapshot(objects), ledger.leaving()))
    act(session)
    return session.plan


def _all_nodes(objects: Iterable[KubeObject]) -> Resources:
    """What all nodes have together."""
    return sum((node_amounts(one) for one in objects if isinstance(one, Node)), NOTHING)


def of_namespaces(found: Survey, shows: Callable[[str], bool]) -> Survey:
    """The queues, with only those groups waiting whose namespace was asked for."""

    def asked(groups: Iterable[WaitingGroup]) -> tuple[WaitingGroup, ...]:
        return tuple(one for one in groups if shows(one.group.partition("/")[0]))

    queues = (replace(view, waiting=asked(view.waiting)) for view in found.queues)
    return Survey(tuple(queues), asked(found.astray))


def queues_data(found: Survey) -> JsonObject:
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


def cycle_data(plan: Plan) -> JsonObject:
    """What a cycle decides, as JSON and YAML have it."""
    return {
        "admitted": [*plan.admitted],
        "ungated": [*plan.ungated],
        "placed": [asdict(one) for one in plan.placed],
        "pipelined": [asdict(one) for one in plan.pipelined],
        "evicted": [asdict(one) for one in plan.evicted],
        "unplaced": [*plan.unplaced],
        "waiting": [
            {"group": key, "queue": one.queue, "reason": one.why.value, "waitsFor": one.text}
            for key, one in plan.waiting.items()
        ],
    }
