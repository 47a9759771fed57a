"""`bayplan plan`: what the autoscaler would scale up and down, without doing it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from bayplan.autoscaler.expanders import ExpanderError, check_expanders
from bayplan.autoscaler.expanders.chain import PRIORITY
from bayplan.autoscaler.offline import OfflinePlan, StaticCluster
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.base.clock import WallClock
from bayplan.base.configfiles import ConfigFileError, read_text
from bayplan.checks.cluster import LONG_AGO
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
from bayplan.fit.profile import KUBERNETES_VERSION
from bayplan.kube.manifests import LoadResult
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.reports.checks import moment_of
from bayplan.reports.declared import declared_groups
from bayplan.reports.plan import PlanRequest, plan_data, plan_next

EXIT_NODES_TO_ADD = 3
EXIT_STAYS_PENDING = 4


def plan(  # noqa: PLR0913 - one for each option
    *,
    source: ClusterSource = HERE,
    groups: Annotated[
        Path | None,
        Parameter(help="A YAML file of node groups with their templates, bounds and prices."),
    ] = None,
    expander: Annotated[
        str, Parameter(help="The expanders that choose the node group, separated by commas.")
    ] = "least-waste",
    priorities: Annotated[
        Path | None,
        Parameter(help="A file with `priorities` of the priority expander's ConfigMap."),
    ] = None,
    grpc_expander_url: Annotated[
        str, Parameter(help="The address of the program that the expander grpc calls.")
    ] = "",
    grpc_expander_cert: Annotated[
        str, Parameter(help="A file with the certificate of this program, or of its CA.")
    ] = "",
    max_nodes_total: Annotated[
        int, Parameter(help="The maximum number of nodes in the cluster; 0 for no limit.")
    ] = 0,
    judge: Annotated[
        Literal["kube-scheduler", "bayplan"],
        Parameter(
            name="--as",
            help="Evaluate pods by the rules of Bayplan, as its autoscaler does, or of"
            f" kube-scheduler {KUBERNETES_VERSION}.",
        ),
    ] = "bayplan",
    output: Output = Format.table,
    feature_gates: Gates = "",
    missing_driver: Missing = "hold-back",
) -> int:
    """Show what the autoscaler would scale up and down, and why. Read-only.

    For each new node: its pods and its price. For each pod that would stay pending: the reasons by
    node group. For each unneeded node: where its pods would be moved. And how many nodes a planner
    would add that ignores attach limits.

    The cluster is a dump (-f), or the one that kubectl uses. All pending pods without scheduling
    gates count, whether or not a scheduler has tried them. Without --groups, there is a node group
    for every kind of existing node. With -n, only pending pods of that namespace count.

    Exit codes: 0 nothing to add, 3 nodes to add, 4 some pods stay pending, 2 bad input, or invalid
    pods in the dump.
    """
    profile = judged_as(profile_from(feature_gates, missing_driver), judge)
    loaded = _loaded(source)
    still = StaticCluster.of(_asked_about(loaded.objects, source), profile)
    options = AutoscalerOptions(
        expander=expander,
        grpc_expander_url=grpc_expander_url,
        grpc_expander_cert=grpc_expander_cert,
        max_nodes_total=max_nodes_total,
    )
    _check_expanders(options, priorities)
    written = _text(priorities) if priorities else None
    declared = None if groups is None else declared_groups(groups)
    request = PlanRequest(declared, written, options)
    shown = asyncio.run(plan_next(still, request, _now(loaded, source)))
    if output.is_for_people:
        show_blocks(blocks(shown, source.notes(loaded, "plan"), wide=output is Format.wide))
    else:
        emit(plan_data(shown, len(loaded.problems), incomplete_data(loaded, "plan")), output)
    return EXIT_BAD_INPUT if misses_pods(loaded) else _exit_code(shown)


def _loaded(source: ClusterSource) -> LoadResult:
    found = source.load("plan")
    if source.filename and not any(isinstance(obj, Node | Pod) for obj in found.objects):
        raise BadInput("the dump contains neither pods nor nodes")
    return found


def _now(loaded: LoadResult, source: ClusterSource) -> datetime:
    """Return the time of the plan: when a dump was taken, so that its plan stays the same."""
    taken = moment_of(loaded) if source.filename else LONG_AGO
    return WallClock().now() if taken == LONG_AGO else taken


def _asked_about(objects: Iterable[KubeObject], source: ClusterSource) -> Iterator[KubeObject]:
    """Yield the cluster without pending pods of other namespaces."""
    for obj in objects:
        if not isinstance(obj, Pod) or obj.spec.node_name or source.shows(obj.namespace):
            yield obj


def _check_expanders(options: AutoscalerOptions, priorities: Path | None) -> None:
    try:
        names = check_expanders(options)
    except (ExpanderError, ConfigFileError) as error:
        raise BadInput(f"--expander: {error}") from None
    if PRIORITY in names and priorities is None:
        raise BadInput("--expander: priority needs --priorities, the priorities of node groups")


def _text(path: Path) -> str:
    try:
        return read_text(path).decode(errors="replace")
    except ConfigFileError as error:
        raise BadInput(str(error)) from None


def _exit_code(shown: OfflinePlan) -> int:
    if shown.plan.pending:
        return EXIT_STAYS_PENDING
    return EXIT_NODES_TO_ADD if shown.plan.scale_ups else EXIT_OK
