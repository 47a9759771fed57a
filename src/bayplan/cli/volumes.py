"""`bayplan volumes`: each node and driver with its limit, what is used, and by whom."""

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
    promised_volumes,
    summary_data,
    useless_limits,
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
            show(blocks(reports, wide=output is Format.wide))
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
