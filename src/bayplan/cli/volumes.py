"""`bayplan volumes`: each node and driver with its limit, what is used, and by whom."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.text import Text

from bayplan.autoscaler.providers.declared.files import read_groups
from bayplan.base.configfiles import ConfigFileError
from bayplan.cli.cluster import (
    Gates,
    Missing,
    Output,
    profile_from,
)
from bayplan.cli.errors import EXIT_OK, BadInput
from bayplan.cli.output import Format, emit, is_read_by_people, notices, printable, show, table
from bayplan.cli.source import HERE, ClusterSource, incomplete_data
from bayplan.cli.volumes_summary import (
    Selected,
    by_driver,
    fullest_first,
    summary_data,
    summary_table,
)
from bayplan.fit import Snapshot
from bayplan.fit.state.volume_report import VolumeReport, VolumeUse
from bayplan.fit.volumes.limits import Limit, LimitSource
from bayplan.kube.attachlimits import unreadable_limits
from bayplan.kube.gates import ATTACH_VOLUME_LIMIT
from bayplan.kube.nodes import Node

if TYPE_CHECKING:
    from bayplan.base.values import JsonObject, JsonValue

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
    selected = Selected.of(node, driver, over, source.chosen)
    loaded = source.load("volumes")
    snapshot = Snapshot.of(loaded, profile=profile)
    if not len(snapshot.cluster.slots):
        raise BadInput(f"there is no node in the {source.where}")
    report_unreadable_limits(snapshot)
    reports = selected.among([*snapshot.volumes(), *_promised(groups)])
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
            "volumes": [as_data(one) for one in reports],
        }
        emit(found, output)
    return EXIT_OK


def _promised(file: Path | None) -> list[VolumeReport]:
    """What the next node of each group is to attach, as the group's template says."""
    try:
        declared = read_groups(file) if file is not None else ()
    except ConfigFileError as error:
        raise BadInput(str(error)) from None
    return [
        VolumeReport(f"next of {one.group}", driver, Limit(count, LimitSource.TEMPLATE))
        for one in declared
        for driver, count in sorted((one.limits or {}).items())
    ]


def report_unreadable_limits(snapshot: Snapshot) -> None:
    """Say which limits of nodes cannot be any."""
    if not snapshot.profile.gates.enabled(ATTACH_VOLUME_LIMIT):
        return
    for node in (one for one in snapshot.objects() if isinstance(one, Node)):
        for key, written in unreadable_limits(node.status.allocatable).items():
            told = f"node {node.name}: {key}: {written!r} cannot be a limit, and does not count"
            notices().print(printable(told), style="yellow")


def as_data(report: VolumeReport) -> JsonValue:
    """A report as JSON and YAML have it; docs/commands/volumes.md describes it."""
    limit = report.limit
    return {
        "node": report.node,
        "driver": report.driver,
        "used": report.used,
        "limit": limit.count,
        "free": report.free,
        "over": report.over,
        "source": limit.source.value,
        "sourceDetail": limit.detail,
        "sourceRow": report.row,
        "volumes": [_use_as_data(use) for use in report.uses],
    }


def _use_as_data(use: VolumeUse) -> JsonValue:
    return {
        "handle": use.handle,
        "pods": list(use.pods),
        "attachments": list(use.attachments),
    }


def _show(reports: Sequence[VolumeReport], *, wide: bool) -> None:
    headings = ["NODE", "DRIVER", "USED", "LIMIT", "FREE", "LIMIT FROM", "USED BY"]
    rows = [
        [*_row(report), _source(report, wide=wide), _users(report, wide=wide)]
        for report in fullest_first(reports)
    ]
    show([summary_table(by_driver(reports)), "", table(headings, rows)])


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
