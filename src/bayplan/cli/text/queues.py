"""Queues as text: the tree, waiting groups, and the decisions of the next cycle."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import RenderableType
from rich.text import Text

from bayplan.cli.text.output import printable, table
from bayplan.kube.resources import PODS
from bayplan.queues import Resources
from bayplan.queues.queue_snapshot import QueueSnapshot, QueueView, WaitingGroup
from bayplan.queues.session import CyclePlan
from bayplan.reports.queues import amounts

MOST_SHOWN = 10
"""The number of waiting groups shown per queue; `-o wide` shows all."""


def queue_blocks(found: QueueSnapshot, *, wide: bool) -> Iterator[RenderableType]:
    """Yield the queues, their waiting groups, and their problems."""
    headings = ["QUEUE", "STATE", "SHARE", "ALLOCATED", "RESERVED", "QUOTA", "GROUPS WAITING"]
    if wide:
        headings += ["DESERVED", "GUARANTEED", "REQUESTED", "INQUEUE"]
    yield table(headings, [_row(view, wide=wide) for view in found.queues])
    rows = list(_waiting_rows(found, wide=wide))
    if rows:
        yield ""
        yield table(["QUEUE", "POSITION", "GROUP", "PODS", "REQUEST", "WAITS FOR"], rows)
    problems = [(view.node.name, text) for view in found.queues for text in view.problems]
    if problems:
        yield ""
    for queue, text in problems:
        yield Text(printable(f"queue {queue}: {text}"), style="yellow")


def _row(view: QueueView, *, wide: bool) -> list[str | Text]:
    node, usage, quota = view.node, view.usage, view.quota
    state = "broken" if node.broken else node.queue.status.state or "Open"
    row: list[str | Text] = [
        "  " * view.depth + node.name,
        Text(state, style="" if state == "Open" else "yellow"),
        f"{view.share:.2f}",
        _cell(usage.allocated, wide=wide),
        _cell(usage.reserved, wide=wide),
        _cell(quota.real_capability, wide=wide),
        str(len(view.waiting)) if node.is_leaf or view.waiting else "",
    ]
    if wide:
        more = (quota.deserved, quota.guarantee, usage.request, usage.inqueue)
        row += [_cell(one, wide=wide) for one in more]
    return row


def _waiting_rows(found: QueueSnapshot, *, wide: bool) -> Iterator[list[str | Text]]:
    """Yield the waiting groups; of a long queue only the first, unless `wide`."""
    for queue, line in groupby(found.waiting(), key=lambda one: one.queue):
        waiting = list(line)
        shown = waiting if wide else waiting[:MOST_SHOWN]
        yield from (_waiting_row(one, wide=wide) for one in shown)
        if more := len(waiting) - len(shown):
            yield [queue, "", f"{more} more", "", "", ""]


def _waiting_row(one: WaitingGroup, *, wide: bool) -> list[str | Text]:
    return [
        one.queue,
        str(one.position),
        one.group,
        _pods(one),
        _cell(one.request, wide=wide),
        Text(printable(one.text), style="yellow" if one.is_for_queue else ""),
    ]


def _pods(one: WaitingGroup) -> str:
    """Return the first pod and the number of others, since group names are often generated."""
    names = [key.partition("/")[2] for key in one.pods]
    shown = names[0] + (f" +{len(names) - 1}" if names[1:] else "") if names else "none"
    return f"{shown}, {one.gated} gated" if one.gated else shown


def _cell(resources: Resources, *, wide: bool) -> str:
    """Return amounts in one line; the number of pods only if `wide`."""
    listed = amounts(resources)
    return ", ".join(f"{name} {listed[name]}" for name in listed if wide or name != PODS) or "-"


def cycle_blocks(plan: CyclePlan) -> Iterator[RenderableType]:
    """Yield the decisions of a cycle."""
    rows = list(_next_rows(plan))
    if rows:
        yield table(["ACTION", "OBJECT", "NODE OR QUEUE", "REASON"], rows)
    else:
        yield "no decisions"


def _next_rows(plan: CyclePlan) -> Iterator[list[str | Text]]:
    for key in plan.admitted:
        yield ["admit", key, "", ""]
    for key in plan.ungated:
        yield ["ungate", key, "", ""]
    for placed in plan.placed:
        yield ["bind", placed.pod, placed.node, ""]
    for placed in plan.pipelined:
        yield ["pipeline", placed.pod, placed.node, "other pods have to end there first"]
    for one in plan.evicted:
        yield ["evict", one.pod, one.node, f"{one.action} for {one.preemptor}"]
    for key in plan.unplaced:
        yield ["scale up", key, "", "within quota, but no node fits"]
    for key, why in plan.waiting.items():
        yield ["wait", key, why.queue, Text(printable(why.text), style="yellow")]
