"""The live table of a simulated cluster, fitted to the terminal.

Nodes and pods with problems come first; rows that do not fit are counted. The size is computed each
time it is drawn, so that the terminal may be resized.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.text import Text

from bayplan.cli.simulated.activity import IDLE, MOST_EVENTS, DaemonActivity
from bayplan.cli.simulated.tables import (
    Reason,
    Rows,
    headline,
    hint,
    node_rows,
    stuck_rows,
    waiting_rows,
)
from bayplan.embedded.simulation.report import SimulationSummary

SHOWN_NODES = 20
SHOWN_PODS = 8
FEW_NODES, FEW_PODS, FEW_EVENTS = 5, 2, 3
WIDE = 100
"""The number of columns from which drivers are shown with their full names."""
ABOVE = 3
"""Lines that stay free: the server's address, and the cursor."""


class Screen:
    """Nodes, pods, volumes, and the activity of the daemons."""

    def __init__(
        self, summary: SimulationSummary, reason: Reason, activity: DaemonActivity = IDLE
    ) -> None:
        self._summary = summary
        self._activity = activity
        tables = (stuck_rows(summary), waiting_rows(summary, reason))
        self._pods = [rows for rows in tables if rows.rows]

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType | Segment]:
        """Draw as many rows as fit on the terminal."""
        narrow = options.max_width < WIDE
        nodes = node_rows(self._summary, narrow=narrow)
        height = console.height - ABOVE if console.is_terminal else None
        for size in _sizes():
            block = self._drawn(nodes, size, narrow=narrow)
            lines = console.render_lines(block, options.update(height=None))
            if height is None or len(lines) <= height:
                yield block
                return
        for line in lines[:height]:
            yield from line
            yield Segment.line()

    def _drawn(self, nodes: Rows, size: Size, *, narrow: bool) -> RenderableType:
        gap = [] if size.tight else [Text()]
        blocks: list[RenderableType] = [Text(headline(self._summary, narrow=narrow), style="bold")]
        if nodes.rows:
            blocks += [*gap, nodes.shown(size.nodes, cut=size.cut)]
        for rows in (self._activity.queues, *self._pods):
            if rows.rows:
                blocks += [*gap, rows.shown(size.pods, cut=size.cut)]
        if self._activity.autoscaler:
            blocks += [*gap, _line(self._activity.autoscaler, cut=size.cut)]
        events = self._activity.events
        if events.rows and size.events:
            newest = events._replace(rows=events.rows[: size.events])
            blocks += [*gap, newest.shown(size.events, cut=True)]
        text = hint(self._summary)
        if text:
            blocks += [*gap, Text(text, style="yellow")]
        return Group(*blocks)


class Size(NamedTuple):
    """The number of rows of nodes and of each table of pods, and whether rows are cut."""

    nodes: int
    pods: int
    cut: bool = False
    tight: bool = False
    """Whether there is no empty line between tables."""
    events: int = 0


def _sizes() -> Iterator[Size]:
    """Yield sizes in decreasing order; lines are cut before most rows are dropped."""
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


def cluster_table(
    summary: SimulationSummary, reason: Reason, activity: DaemonActivity = IDLE
) -> RenderableType:
    """Return the table of the cluster, which adapts to the terminal."""
    return Screen(summary, reason, activity)
