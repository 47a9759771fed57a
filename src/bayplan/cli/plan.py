"""`bayplan plan`: what the autoscaler would buy and give back, shown instead of done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from bayplan.autoscaler.expanders import ExpanderError, parse_expanders
from bayplan.autoscaler.expanders.chain import PRIORITY
from bayplan.autoscaler.offline import OfflinePlan, StaticCluster
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.base.clock import WallClock
from bayplan.base.configfiles import ConfigFileError, read_text
from bayplan.cli.errors import EXIT_BAD_INPUT, EXIT_OK, BadInput
from bayplan.cli.options.cluster import (
    Gates,
    Missing,
    Output,
    judged_as,
    misses_pods,
    profile_from,
)
from bayplan.cli.options.source import HERE, ClusterSource, incomplete_data
from bayplan.cli.text.output import Format, emit
from bayplan.cli.text.output import show as show_blocks
from bayplan.cli.text.plan import blocks
from bayplan.fit.rules import KUBERNETES_VERSION
from bayplan.kube.loading import Loaded
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.reports.declared import declared_groups
from bayplan.reports.plan import PlanRequest, plan_data, plan_next

EXIT_NODES_TO_ADD = 3
EXIT_STAYS_PENDING = 4


def plan(  # noqa: PLR0913 - one for each option
    *,
    source: ClusterSource = HERE,
    groups: Annotated[
        Path | None, Parameter(help="Node groups with their templates, bounds and prices, as YAML.")
    ] = None,
    expander: Annotated[
        str, Parameter(help="How the best group is chosen; several with commas.")
    ] = "least-waste",
    priorities: Annotated[
        Path | None,
        Parameter(help="What the ConfigMap of the priority expander says under `priorities`."),
    ] = None,
    max_nodes_total: Annotated[
        int, Parameter(help="No more nodes than this in the whole cluster; 0 is no limit.")
    ] = 0,
    judge: Annotated[
        Literal["kube-scheduler", "bayplan"],
        Parameter(
            name="--as",
            help="Judge pods by the rules of Bayplan, as its autoscaler does, or of kube-scheduler"
            f" {KUBERNETES_VERSION}.",
        ),
    ] = "bayplan",
    output: Output = Format.table,
    feature_gates: Gates = "",
    missing_driver: Missing = "hold-back",
) -> int:
    """Show what the autoscaler would buy and give back, and why; nothing is changed.

    For each node that would be bought: the pods that it is for and what it costs. For each pod that
    would stay pending: why, group by group. For each node that is not needed: where its pods would
    go. And how many nodes a planner would buy that knows nothing of how many volumes nodes attach.

    The cluster is a dump (-f), or the one that kubectl would talk to. Pods count that wait for a
    node and are not gated, whether or not a scheduler has tried them. Without --groups, every kind
    of node that the cluster has may grow. With -n, it is as if only pods of that namespace waited.

    Exit codes: 0 nothing to add, 3 nodes to add, 4 some pods stay pending whatever is added, 2 bad
    input, or pods of the dump that cannot be used.
    """
    profile = judged_as(profile_from(feature_gates, missing_driver), judge)
    loaded = _loaded(source)
    still = StaticCluster.of(_asked_about(loaded.objects, source), profile)
    options = replace(AutoscalerOptions(), max_nodes_total=max_nodes_total)
    names = _expanders(expander, priorities)
    written = _text(priorities) if priorities else None
    declared = None if groups is None else declared_groups(groups)
    request = PlanRequest(declared, names, written, options)
    shown = asyncio.run(plan_next(still, request, WallClock().now()))
    if output.is_for_people:
        show_blocks(blocks(shown, source.notes(loaded, "plan"), wide=output is Format.wide))
    else:
        emit(plan_data(shown, len(loaded.problems), incomplete_data(loaded, "plan")), output)
    return EXIT_BAD_INPUT if misses_pods(loaded) else _exit_code(shown)


def _loaded(source: ClusterSource) -> Loaded:
    found = source.load("plan")
    if source.filename and not any(isinstance(obj, Node | Pod) for obj in found.objects):
        raise BadInput("there is neither a pod nor a node in the dump")
    return found


def _asked_about(objects: Iterable[KubeObject], source: ClusterSource) -> Iterator[KubeObject]:
    """The cluster without pods that wait and that nobody asked about."""
    for obj in objects:
        if not isinstance(obj, Pod) or obj.spec.node_name or source.shows(obj.namespace):
            yield obj


def _expanders(text: str, priorities: Path | None) -> tuple[str, ...]:
    try:
        names = parse_expanders(text)
    except ExpanderError as error:
        raise BadInput(f"--expander: {error}") from None
    if PRIORITY in names and priorities is None:
        raise BadInput(
            "--expander: priority needs --priorities, which says which groups come first"
        )
    return names


def _text(path: Path) -> str:
    try:
        return read_text(path).decode(errors="replace")
    except ConfigFileError as error:
        raise BadInput(str(error)) from None


def _exit_code(shown: OfflinePlan) -> int:
    if shown.plan.pending:
        return EXIT_STAYS_PENDING
    return EXIT_NODES_TO_ADD if shown.plan.scale_ups else EXIT_OK
