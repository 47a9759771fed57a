"""`bayplan queues --next`: what one cycle would decide about a cluster, and nothing is done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from bayplan.cli.output import printable, table
from bayplan.fit import Snapshot
from bayplan.queues import Ledger
from bayplan.queues.actions import act
from bayplan.queues.placement import SnapshotPlacement
from bayplan.queues.plan import Plan
from bayplan.queues.session import Session

if TYPE_CHECKING:
    from bayplan.base.values import JsonObject


def next_plan(ledger: Ledger, snapshot: Snapshot) -> Plan:
    """What a cycle decides about the books and the nodes of a cluster."""
    session = Session(ledger, SnapshotPlacement(snapshot, ledger.leaving()))
    act(session)
    return session.plan


def as_data(plan: Plan) -> JsonObject:
    """A plan as JSON and YAML have it."""
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


def blocks(plan: Plan) -> Iterator[RenderableType]:
    """A plan for people."""
    rows = list(_rows(plan))
    if rows:
        yield table(["WHAT", "WHO", "WHERE", "WHY"], rows)
    else:
        yield "nothing would be decided"


def _rows(plan: Plan) -> Iterator[list[str | Text]]:
    for key in plan.admitted:
        yield ["admit", key, "", ""]
    for key in plan.ungated:
        yield ["remove the gate", key, "", ""]
    for placed in plan.placed:
        yield ["bind", placed.pod, placed.node, ""]
    for placed in plan.pipelined:
        yield ["keep a node", placed.pod, placed.node, "others have to leave it first"]
    for one in plan.evicted:
        yield ["evict", one.pod, one.node, f"{one.action} for {one.preemptor}"]
    for key in plan.unplaced:
        yield ["buy a node", key, "", "quota lets it run, and no node takes it"]
    for key, why in plan.waiting.items():
        yield ["wait", key, why.queue, Text(printable(why.text), style="yellow")]
