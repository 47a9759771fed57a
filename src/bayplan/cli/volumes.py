"""`bayplan volumes`: attachments in use and attach limits, by node and driver."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.text import Text

from bayplan.cli.errors import EXIT_OK, BadInput
from bayplan.cli.options.cluster import (
    Gates,
    Missing,
    Output,
    profile_from,
)
from bayplan.cli.options.source import HERE, ClusterSource, incomplete_data
from bayplan.cli.text.output import Format, emit, notices, printable, show
from bayplan.cli.text.volumes import blocks
from bayplan.fit import Snapshot
from bayplan.reports.declared import declared_groups
from bayplan.reports.volumes import (
    VolumeSelection,
    by_driver,
    invalid_limits,
    summary_data,
    template_volumes,
    volume_data,
)

if TYPE_CHECKING:
    from bayplan.base.values import JsonObject


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
        Parameter(help="Only where at least this share of the limit is used, such as 80%."),
    ] = "",
    groups: Annotated[
        Path | None,
        Parameter(help="A file of node groups with their templates, as for `bayplan plan`."),
    ] = None,
    output: Output = Format.table,
    feature_gates: Gates = "",
    missing_driver: Missing = "hold-back",
) -> int:
    """Show attached volumes and attach limits by node and driver.

    First by driver: its nodes, attachments in use, limits, full nodes, and the fullest node. Then,
    the fullest first, a row for each node and CSI driver (or in-tree plugin): attachments in use,
    the limit, free slots, the source of the limit (CSINode, node.status.allocatable,
    KUBE_MAX_PD_VOLS, or the table of fallbacks), and the pods that use them. A volume that is
    attached but not used by a pod of the node is idle. With --groups, also the limits of the next
    node of each group. With -n, only rows with volumes of pods of that namespace. `-o wide` shows
    every volume, and the key or table row of the limit.

    Exit codes: 0 it was shown, 2 bad input.
    """
    profile = profile_from(feature_gates, missing_driver)
    selected = VolumeSelection.of(node, driver, over, source.chosen)
    loaded = source.load("volumes")
    snapshot = Snapshot.of(loaded, profile=profile)
    if not len(snapshot.cluster.slots):
        raise BadInput(f"the {source.where} contains no nodes")
    for line in invalid_limits(snapshot):
        notices().print(printable(line), style="yellow")
    declared = template_volumes(declared_groups(groups))
    reports = selected.among([*snapshot.volumes(), *declared])
    if output.is_for_people:
        if reports:
            show(blocks(reports, wide=output is Format.wide))
        else:
            show([Text(selected.empty_message)])
        show(map(Text, source.notes(loaded, "volumes")))
    else:
        found: JsonObject = {
            "incomplete": incomplete_data(loaded, "volumes"),
            "summary": summary_data(by_driver(reports)),
            "volumes": [volume_data(one) for one in reports],
        }
        emit(found, output)
    return EXIT_OK
