"""The live table of a simulated cluster: one screen, however small the terminal is.

Nodes that need a look come first, so do pods; what does not fit is counted. How much fits is known
only when it is drawn, so that a terminal may change its size at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.text import Text

from bayplan.cli.simulated.activity import IDLE, MOST_EVENTS, DaemonActivity
from bayplan.cli.simulated.tables import (
    Rows,
    Why,
    headline,
    hint,
    node_rows,
    stuck_rows,
    waiting_rows,
)
from bayplan.embedded.simulation.report import Summary

SHOWN_NODES = 20
SHOWN_PODS = 8
FEW_NODES, FEW_PODS, FEW_EVENTS = 5, 2, 3
WIDE = 100
"""Columns from which on drivers are called by their full names."""
ABOVE = 3
"""Lines of the terminal that stay free: where the server is, and the cursor."""


class Screen:
    """Nodes, pods, volumes, and who waits for what."""

    def __init__(self, summary: Summary, why: Why, doings: DaemonActivity = IDLE) -> None:
        self._summary = summary
        self._doings = doings
        tables = (stuck_rows(summary), waiting_rows(summary, why))
        self._pods = [rows for rows in tables if rows.rows]

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType | Segment]:
        """The most that there is room for."""
        narrow = options.max_width < WIDE
        nodes = node_rows(self._summary, narrow=narrow)
        room = console.height - ABOVE if console.is_terminal else None
        for size in _sizes():
            block = self._drawn(nodes, size, narrow=narrow)
            lines = console.render_lines(block, options.update(height=None))
            if room is None or len(lines) <= room:
                yield block
                return
        for line in lines[:room]:
            yield from line
            yield Segment.line()

    def _drawn(self, nodes: Rows, size: Size, *, narrow: bool) -> RenderableType:
        gap = [] if size.tight else [Text()]
        blocks: list[RenderableType] = [Text(headline(self._summary, narrow=narrow), style="bold")]
        if nodes.rows:
            blocks += [*gap, nodes.shown(size.nodes, cut=size.cut)]
        for rows in (self._doings.queues, *self._pods):
            if rows.rows:
                blocks += [*gap, rows.shown(size.pods, cut=size.cut)]
        if self._doings.autoscaler:
            blocks += [*gap, _line(self._doings.autoscaler, cut=size.cut)]
        events = self._doings.events
        if events.rows and size.events:
            newest = events._replace(rows=events.rows[: size.events])
            blocks += [*gap, newest.shown(size.events, cut=True)]
        told = hint(self._summary)
        if told:
            blocks += [*gap, Text(told, style="yellow")]
        return Group(*blocks)


class Size(NamedTuple):
    """Rows of nodes and of each table of pods, and whether they are cut to a line each."""

    nodes: int
    pods: int
    cut: bool = False
    tight: bool = False
    """Whether the tables stand without a line between them."""
    events: int = 0


def _sizes() -> Iterator[Size]:
    """Smaller and smaller; lines are cut before hardly any rows are left."""
    for events in range(MOST_EVENTS, FEW_EVENTS, -1):
        yield Size(SHOWN_NODES, SHOWN_PODS, events=events)
    nodes, pods = SHOWN_NODES, SHOWN_PODS
    while pods >= FEW_PODS:
        yield Size(nodes, pods, events=FEW_EVENTS)
        nodes, pods = (nodes - 1, pods) if nodes > FEW_NODES else (nodes, pods - 1)
    nodes, pods = SHOWN_NODES, SHOWN_PODS
    while nodes >= 1:
        yield Size(nodes, pods, cut=True, tight=nodes == 1, events=min(nodes - 1, FEW_EVENTS))
        nodes, pods = (nodes, pods - 1) if pods > 1 and nodes <= 3 * pods else (nodes - 1, pods)


def _line(text: str, *, cut: bool) -> Text:
    return Text(text, style="cyan", no_wrap=cut, overflow="ellipsis" if cut else "fold")


def cluster_table(summary: Summary, why: Why, doings: DaemonActivity = IDLE) -> RenderableType:
    """The whole cluster, as large as there is room for."""
    return Screen(summary, why, doings)
