"""`bayplan volumes`: each node and driver with its limit, what is used, and by whom."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from bayplan.cli.errors import EXIT_OK, BadInput
from bayplan.cli.options.cluster import (
    Gates,
    Missing,
    Output,
    profile_from,
)
from bayplan.cli.options.source import HERE, ClusterSource, incomplete_data
from bayplan.cli.text.output import Format, emit, is_read_by_people, notices, printable, show, table
from bayplan.fit import Snapshot
from bayplan.fit.state.volume_report import VolumeReport, VolumeUse
from bayplan.fit.volumes.limits import LimitSource
from bayplan.reports.declared import declared_groups
from bayplan.reports.volumes import (
    DriverSummary,
    VolumeSelection,
    by_driver,
    fullest_first,
    promised_volumes,
    summary_data,
    useless_limits,
    volume_data,
)

if TYPE_CHECKING:
    from bayplan.base.values import JsonObject

_SHORT = {
    LimitSource.ALLOCATABLE: "allocatable",
    LimitSource.MISSING: "unregistered",
    LimitSource.UNREADABLE: "unreadable",
}


def volumes(  # noqa: PLR0913 - one for each option
    *,
    source: ClusterSource = HERE,
    node: Annotated[
        tuple[str, ...],
        Parameter(show_default=False, help="Only this node; may be repeated."),
    ] = (),
    driver: Annotated[
        tuple[str, ...],
        Parameter(show_default=False, help="Only this driver; may be repeated."),
    ] = (),
    over: Annotated[
        str,
        Parameter(help="Only where at least so much of the limit is used, such as 80%."),
    ] = "",
    groups: Annotated[
        Path | None, Parameter(help="Node groups with their templates, as `bayplan plan` has them.")
    ] = None,
    output: Output = Format.table,
    feature_gates: Gates = "",
    missing_driver: Missing = "hold-back",
) -> int:
    """Show how many volumes each node has attached, how many it can, and who says so.

    First by driver: on how many nodes it is, how many of its places are taken, how many nodes are
    full, and which is the fullest. Then, the fullest first, one row for each node and CSI driver
    (or in-tree plugin): places used, the limit, what is free, where the limit comes from (the
    node's CSINode, its allocatable, KUBE_MAX_PD_VOLS, or the table of fallbacks), and who uses
    them. A volume that is attached though no pod on the node uses it is idle. With --groups, also
    what the next node of each group promises. With -n, only where pods of that namespace have a
    volume. `-o wide` shows every volume, and by which key and
    which row of a table the limit was said.

    Exit codes: 0 it was shown, 2 bad input.
    """
    profile = profile_from(feature_gates, missing_driver)
    selected = VolumeSelection.of(node, driver, over, source.chosen)
    loaded = source.load("volumes")
    snapshot = Snapshot.of(loaded, profile=profile)
    if not len(snapshot.cluster.slots):
        raise BadInput(f"there is no node in the {source.where}")
    for line in useless_limits(snapshot):
        notices().print(printable(line), style="yellow")
    promised = promised_volumes(declared_groups(groups))
    reports = selected.among([*snapshot.volumes(), *promised])
    if output.is_for_people:
        if reports:
            _show(reports, wide=output is Format.wide)
        else:
            show([Text(selected.nothing)])
        show(map(Text, source.notes(loaded, "volumes")))
    else:
        found: JsonObject = {
            "incomplete": incomplete_data(loaded, "volumes"),
            "summary": summary_data(by_driver(reports)),
            "volumes": [volume_data(one) for one in reports],
        }
        emit(found, output)
    return EXIT_OK


def _show(reports: Sequence[VolumeReport], *, wide: bool) -> None:
    headings = ["NODE", "DRIVER", "USED", "LIMIT", "FREE", "LIMIT FROM", "USED BY"]
    rows = [
        [*_row(report), _source(report, wide=wide), _users(report, wide=wide)]
        for report in fullest_first(reports)
    ]
    show([_summary_table(by_driver(reports)), "", table(headings, rows)])


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
    """What is free; what is too much where that is the case."""
    if report.over:
        return f"{report.over} over"
    return "-" if report.free is None else str(report.free)


def _source(report: VolumeReport, *, wide: bool) -> str:
    limit = report.limit
    # Short, so that drivers' names fit into 80 columns.
    said = _SHORT.get(limit.source, limit.source.value)
    if not wide:
        return said
    key = f"{said} {limit.detail}" if limit.detail else said
    return f"{key} ({report.row})" if report.row else key


def _users(report: VolumeReport, *, wide: bool) -> str | Text:
    if wide:
        lines = (printable(f"{use.handle}: {_held_by(use)}") for use in report.uses)
        return Text(("\n" if is_read_by_people() else "; ").join(lines))
    names = list(dict.fromkeys(name for use in report.uses for name in use.pods))
    said = [names[0] + (f" +{len(names) - 1}" if names[1:] else "")] if names else []
    idle = sum(not use.pods for use in report.uses)
    return ", ".join([*said, f"{idle} idle"] if idle else said)


def _held_by(use: VolumeUse) -> str:
    return ", ".join(use.pods) or f"no pod (VolumeAttachment {', '.join(use.attachments)})"


def _summary_table(summaries: Sequence[DriverSummary]) -> Table:
    """Drivers, a row each."""
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
    limit = "any number" if one.limit.count is None else str(one.limit.count)
    return f"{one.node}, {one.used} of {limit}"
