"""Options for hypothetical changes of the cluster."""

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
    """Hypothetical changes of the cluster."""

    replicas: Annotated[int, Parameter(help="Evaluate this number of copies of the pod.")] = 1
    with_nodes: Annotated[
        tuple[str, ...],
        Parameter(
            show_default=False,
            help="Assume more nodes, as 3xGROUP for a group of --groups, or 3xNODE for copies of an"
            " existing node; may be repeated.",
        ),
    ] = ()
    without_node: Annotated[
        tuple[str, ...],
        Parameter(
            show_default=False,
            help="Assume that this node is removed and its pods are pending; may be repeated.",
        ),
    ] = ()
    groups: Annotated[
        Path | None,
        Parameter(help="A file of node groups with their templates, as for `bayplan plan`."),
    ] = None

    def check(self, *, of_one: bool) -> None:
        """Raise BadInput for an invalid number of replicas."""
        if not 1 <= self.replicas <= MOST_REPLICAS:
            raise BadInput(f"--replicas {self.replicas}: must be from 1 to {MOST_REPLICAS:,}")
        if self.replicas > 1 and not of_one:
            raise BadInput("--replicas: needs one pod, not --all-pending")

    def apply(self, snapshot: Snapshot, objects: Iterable[KubeObject]) -> None:
        """Apply the changes to a snapshot; InputError if there is no such node or group."""
        daemons = [obj for obj in objects if isinstance(obj, DaemonSet)]
        add_nodes(snapshot, self.with_nodes, self.groups, daemons)
        remove_nodes(snapshot, self.without_node)


AS_IT_IS = WhatIf()
