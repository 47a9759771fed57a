"""Attachments in use and limits as text: by driver, then by node, the fullest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bayplan.cli.text.output import is_read_by_people, printable, table
from bayplan.fit.state.volume_report import VolumeReport, VolumeUse
from bayplan.fit.volumes.limits import LimitSource
from bayplan.reports.volumes import (
    DriverSummary,
    by_driver,
    fullest_first,
)

_SHORT = {
    LimitSource.ALLOCATABLE: "allocatable",
    LimitSource.MISSING: "unregistered",
    LimitSource.UNREADABLE: "unreadable",
}


def blocks(reports: Sequence[VolumeReport], *, wide: bool) -> Iterator[RenderableType]:
    """Yield the table by driver, then the one by node and driver, the fullest first."""
    headings = ["NODE", "DRIVER", "USED", "LIMIT", "FREE", "LIMIT FROM", "USED BY"]
    rows = [
        [*_row(report), _source(report, wide=wide), _users(report, wide=wide)]
        for report in fullest_first(reports)
    ]
    yield from (_summary_table(by_driver(reports)), "", table(headings, rows))


def _row(report: VolumeReport) -> list[str | Text]:
    limit = report.limit
    style = "red" if report.is_full else ""
    return [
        report.node,
        report.driver,
        str(report.used),
        "-" if limit.count is None else str(limit.count),
        Text(_left(report), style=style),
    ]


def _left(report: VolumeReport) -> str:
    """Return the free slots, or the number over the limit."""
    if report.over:
        return f"{report.over} over"
    return "-" if report.free is None else str(report.free)


def _source(report: VolumeReport, *, wide: bool) -> str:
    limit = report.limit
    # Short, so that driver names fit in 80 columns.
    source = _SHORT.get(limit.source, limit.source.value)
    if not wide:
        return source
    key = f"{source} {limit.detail}" if limit.detail else source
    return f"{key} ({report.row})" if report.row else key


def _users(report: VolumeReport, *, wide: bool) -> str | Text:
    if wide:
        lines = (printable(f"{use.handle}: {_held_by(use)}") for use in report.uses)
        return Text(("\n" if is_read_by_people() else "; ").join(lines))
    names = list(dict.fromkeys(name for use in report.uses for name in use.pods))
    listed = [names[0] + (f" +{len(names) - 1}" if names[1:] else "")] if names else []
    idle = sum(not use.pods for use in report.uses)
    return ", ".join([*listed, f"{idle} idle"] if idle else listed)


def _held_by(use: VolumeUse) -> str:
    return ", ".join(use.pods) or f"no pod (VolumeAttachment {', '.join(use.attachments)})"


def _summary_table(summaries: Sequence[DriverSummary]) -> Table:
    """Return the table by driver."""
    rows: list[list[str | Text]] = [
        [
            one.driver,
            str(one.nodes),
            str(one.used),
            "-" if one.limit is None else str(one.limit),
            Text(str(one.full), style="red" if one.full else ""),
            str(one.nearly),
            _fullest(one.fullest),
        ]
        for one in summaries
    ]
    return table(["DRIVER", "NODES", "USED", "LIMIT", "FULL", "OVER 80%", "FULLEST"], rows)


def _fullest(one: VolumeReport) -> str:
    limit = "unlimited" if one.limit.count is None else str(one.limit.count)
    return f"{one.node}, {one.used} of {limit}"
