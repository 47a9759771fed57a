"""Options of commands that can be asked about another cluster than the one there is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayplan.cli.errors import BadInput
from bayplan.fit import Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.kube.workloads import DaemonSet
from bayplan.reports.what_if import MOST_REPLICAS, add_nodes, remove_nodes


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class WhatIf:
    """Options of commands that can be asked about another cluster than the one there is."""

    replicas: Annotated[int, Parameter(help="Ask for so many of the pod, one after another.")] = 1
    with_nodes: Annotated[
        tuple[str, ...],
        Parameter(
            show_default=False,
            help="As if there were so many more nodes, as 3xGROUP (of --groups), or 3xNODE for some"
            " like a node that is there; may be repeated.",
        ),
    ] = ()
    without_node: Annotated[
        tuple[str, ...],
        Parameter(
            show_default=False,
            help="As if this node were gone, and its pods waited; may be repeated.",
        ),
    ] = ()
    groups: Annotated[
        Path | None, Parameter(help="Node groups with their templates, as `bayplan plan` has them.")
    ] = None

    def check(self, *, of_one: bool) -> None:
        """BadInput if so many replicas cannot be asked for."""
        if not 1 <= self.replicas <= MOST_REPLICAS:
            raise BadInput(f"--replicas {self.replicas}: not 1 to {MOST_REPLICAS:,}")
        if self.replicas > 1 and not of_one:
            raise BadInput("--replicas: of which pod? --all-pending takes all as they are")

    def apply(self, snapshot: Snapshot, objects: Iterable[KubeObject]) -> None:
        """Make the cluster what is asked about; BadInput if there is no such node or group."""
        daemons = [obj for obj in objects if isinstance(obj, DaemonSet)]
        add_nodes(snapshot, self.with_nodes, self.groups, daemons)
        remove_nodes(snapshot, self.without_node)


AS_IT_IS = WhatIf()
