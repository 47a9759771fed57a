"""Queues for people: the tree, who waits for what, and what the next cycle would decide."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import RenderableType
from rich.text import Text

from bayplan.cli.text.output import printable, table
from bayplan.kube.resources import PODS
from bayplan.queues import Resources
from bayplan.queues.session import Plan
from bayplan.queues.survey import QueueView, Survey, WaitingGroup
from bayplan.reports.queues import amounts

MOST_SHOWN = 10
"""With more groups in a queue, a table shows the first; `-o wide` shows all."""


def survey_blocks(found: Survey, *, wide: bool) -> Iterator[RenderableType]:
    """Queues, who waits in them, and what is wrong with them."""
    headings = ["QUEUE", "STATE", "SHARE", "ALLOCATED", "RESERVED", "QUOTA", "GROUPS WAITING"]
    if wide:
        headings += ["DESERVED", "GUARANTEED", "ASKED FOR", "PROMISED"]
    yield table(headings, [_row(view, wide=wide) for view in found.queues])
    rows = list(_waiting_rows(found, wide=wide))
    if rows:
        yield ""
        yield table(["QUEUE", "POSITION", "GROUP", "PODS", "ASKS FOR", "WAITS FOR"], rows)
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


def _waiting_rows(found: Survey, *, wide: bool) -> Iterator[list[str | Text]]:
    """Everybody who waits; of a long queue only the first, unless there is room."""
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
        _cell(one.asks, wide=wide),
        Text(printable(one.text), style="yellow" if one.is_for_queue else ""),
    ]


def _pods(one: WaitingGroup) -> str:
    """The first pod by name, and how many more there are, since groups' names say little."""
    names = [key.partition("/")[2] for key in one.pods]
    shown = names[0] + (f" +{len(names) - 1}" if names[1:] else "") if names else "none"
    return f"{shown}, {one.gated} gated" if one.gated else shown


def _cell(resources: Resources, *, wide: bool) -> str:
    """Amounts in a few words; the count of pods is left out unless there is room."""
    said = amounts(resources)
    return ", ".join(f"{name} {said[name]}" for name in said if wide or name != PODS) or "-"


def cycle_blocks(plan: Plan) -> Iterator[RenderableType]:
    """What a cycle would decide."""
    rows = list(_next_rows(plan))
    if rows:
        yield table(["WHAT", "WHO", "WHERE", "WHY"], rows)
    else:
        yield "nothing would be decided"


def _next_rows(plan: Plan) -> Iterator[list[str | Text]]:
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
