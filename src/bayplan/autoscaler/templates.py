"""Template node infos: what the next node of each group will be.

The first of these that exists: a node of the group that has been ready for a minute; the template
made from the last such node; the provider's template; a node that is not ready. From a node its
CSINode and DaemonSet pods are copied; DaemonSet pods that would run on a new node are added to all
templates.

If a node reports a lower attach limit than the template, the lower one is used at once. If no
template has the drivers, those that the cluster has are expected, with an unknown limit; that is
one of the group's problems.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from msgspec.structs import replace as changed

from bayplan.autoscaler.cloudstate.reader import NodeGroupInfo
from bayplan.autoscaler.clusterstate.readiness import (
    STARTUP_TAINTS,
    NodeReadiness,
    NodeState,
    ReadinessCriteria,
)
from bayplan.autoscaler.clusterstate.taints import DELETION_CANDIDATE, TO_BE_DELETED
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.fit import Snapshot
from bayplan.fit.batches import NodeTemplate, daemons_for
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSINode, CSINodeDriver, VolumeNodeResources
from bayplan.kube.tolerations import is_status_taint
from bayplan.kube.workloads import DaemonSet
from bayplan.nodegroups import CloudNodeGroup, GroupOptions, Instance
from bayplan.nodegroups.templates import build_csi_node, csi_limits

Limits = Mapping[str, int | None]
"""By driver; None is a driver without a limit."""


def required_drivers(declared: CSINode | None, common_limits: Limits) -> dict[str, bool]:
    """Return the drivers that must register on a new node, and whether with a limit: the declared
    ones, and those of every node of the group that has been ready for long.
    """
    limits = {**common_limits, **csi_limits(declared)}
    return {name: limit is not None for name, limit in limits.items()}


def common_limits(reports: Iterable[CSINode | None]) -> dict[str, int | None]:
    """Return the limits of the drivers that are in all CSINodes."""
    found: dict[str, int | None] | None = None
    for report in reports:
        if found is None:
            found = csi_limits(report)
            continue
        there = {one.name for one in report.spec.drivers} if report is not None else set()
        if not found.keys() <= there:
            found = {name: limit for name, limit in found.items() if name in there}
    return found or {}


def lowest_limits(reports: Iterable[CSINode | None]) -> dict[str, int]:
    """Return the lowest reported limit by driver."""
    found: dict[str, int] = {}
    for report in reports:
        for name, limit in csi_limits(report).items():
            if limit is not None:
                found[name] = min(limit, found.get(name, limit))
    return found


def with_reported_limits(csinode: CSINode | None, reported: Mapping[str, int]) -> CSINode | None:
    """Return the CSINode with the reported limits where they are lower."""
    if csinode is None:
        return None
    drivers = [_lowered(one, reported.get(one.name)) for one in csinode.spec.drivers]
    return changed(csinode, spec=changed(csinode.spec, drivers=drivers))


def _lowered(driver: CSINodeDriver, reported: int | None) -> CSINodeDriver:
    limit = driver.allocatable.count if driver.allocatable else None
    if reported is None or (limit is not None and limit <= reported):
        return driver
    return changed(driver, allocatable=VolumeNodeResources(count=reported))


TEMPLATE_NODE = "cluster-autoscaler.kubernetes.io/template-node"
STATUS_TAINTS = "status-taint.cluster-autoscaler.kubernetes.io/"
STABLE = timedelta(minutes=1)
UNKNOWN = "the attach limits of its nodes are unknown: volumes are not counted until it has a node"
Members = Sequence[tuple[str, NodeState]]


@dataclass(frozen=True, slots=True, eq=False)
class NodeGroupView:
    """A node group in one loop: its state in the cloud, and its nodes."""

    group: CloudNodeGroup
    target: int
    """Its target size."""
    instances: tuple[Instance, ...] = ()
    options: GroupOptions = field(default_factory=GroupOptions)
    template: NodeTemplate | None = None
    """Its template node info, with DaemonSet pods; None if unknown."""
    nodes: tuple[str, ...] = ()
    """The names of its registered nodes."""
    price: float | None = None
    """The hourly price of a node; None if unknown."""
    problems: tuple[str, ...] = ()
    """Its settings that cannot be used."""

    @property
    def id(self) -> str:
        """The group's name."""
        return self.group.id

    @property
    def max_increase(self) -> int:
        """How many nodes may be added up to its maximum size."""
        return max(0, self.group.max_size - self.target)


@dataclass(frozen=True, slots=True, eq=False)
class TemplateContext:
    """The cluster that templates are made for."""

    snapshot: Snapshot
    now: datetime
    daemon_sets: Collection[DaemonSet] = ()
    drivers: Collection[str] = ()
    """The CSI drivers of the cluster."""
    waits_for_drivers: bool = True
    """Whether drivers must register on new nodes; False without the feature gate."""


class TemplateNodeInfoProvider:
    """Provides the template node infos and readiness criteria of all groups."""

    def __init__(self, options: AutoscalerOptions) -> None:
        self._options = options
        self._cache: dict[str, NodeTemplate] = {}
        """Templates of groups, made from their last ready node."""
        self.gpu_label = ""
        """The provider's label of GPU nodes; empty if it has none."""

    def view(
        self, info: NodeGroupInfo, members: Members, context: TemplateContext
    ) -> NodeGroupView:
        """Return the view of a group: its nodes, template and problems."""
        template, problems = self._template(info, members, context)
        return NodeGroupView(
            group=info.group,
            target=info.target,
            instances=info.instances,
            options=info.options,
            template=template,
            nodes=tuple(name for name, _ in members),
            price=info.price,
            problems=problems,
        )

    def _template(
        self, info: NodeGroupInfo, members: Members, context: TemplateContext
    ) -> tuple[NodeTemplate | None, tuple[str, ...]]:
        name, provided, snapshot = info.group.id, info.template, context.snapshot
        template = self._from_ready_node(name, members, context)
        problems = provided.problems if provided is not None else ()
        if template is None and provided is not None:
            template = NodeTemplate(
                _without_startup_taints(provided.node, self._drops), provided.csi_node
            )
            if provided.csi_node is None:
                drivers = build_csi_node(provided.node.name, dict.fromkeys(context.drivers))
                template = replace(template, csinode=drivers)
                problems = (*problems, UNKNOWN)
        if template is None and members:
            template = NodeTemplate.from_node(snapshot, members[0][0], drops=self._drops)
        if template is None:
            return None, (*problems, *filter(None, [info.template_error]))
        reported = lowest_limits(snapshot.cluster.csinodes.get(n) for n, _ in members)
        return self._finished(template, name, context, reported), problems

    def readiness_criteria(
        self, info: NodeGroupInfo, members: Members, context: TemplateContext
    ) -> ReadinessCriteria:
        """Return what a new node of a group needs to count as ready."""
        startup = info.options.max_node_startup_time
        if not context.waits_for_drivers:
            return ReadinessCriteria(startup, waits_for_drivers=False, gpu_label=self.gpu_label)
        provided = info.template
        declared = provided.csi_node if provided is not None else None
        timeout = timedelta(seconds=self._options.csi_driver_startup_time)
        csinodes = context.snapshot.cluster.csinodes
        cutoff = context.now - timeout
        old = (n for n, one in members if (t := one.ready_conditions_since()) and t <= cutoff)
        found = required_drivers(declared, common_limits(csinodes.get(n) for n in old))
        optional_drivers = (
            frozenset(context.drivers) if declared is None and not found else frozenset()
        )
        return ReadinessCriteria(startup, found, optional_drivers, gpu_label=self.gpu_label)

    def forget_others(self, groups: Collection[str]) -> None:
        """Drop the cached templates of all other groups."""
        self._cache = {name: kept for name, kept in self._cache.items() if name in groups}

    def _from_ready_node(
        self, group: str, members: Members, context: TemplateContext
    ) -> NodeTemplate | None:
        """Return a template made from a node that is, or was, ready for a while."""
        stable = [
            (one.ready_since, name)
            for name, one in members
            if one.readiness is NodeReadiness.READY
            and one.ready_since is not None
            and one.ready_since + STABLE <= context.now
        ]
        if stable:
            # The newest node is most like the next one.
            self._cache[group] = NodeTemplate.from_node(
                context.snapshot, max(stable)[1], drops=self._drops
            )
        return self._cache.get(group)

    def _finished(
        self, template: NodeTemplate, group: str, context: TemplateContext, reported: dict[str, int]
    ) -> NodeTemplate:
        labels = {**template.node.metadata.labels, TEMPLATE_NODE: "true"}
        meta = changed(template.node.metadata, labels=labels)
        node = changed(template.node, metadata=meta)
        daemons = _with_missing(template.daemons, daemons_for(node, context.daemon_sets))
        return NodeTemplate(node, with_reported_limits(template.csinode, reported), daemons, group)

    def _drops(self, taint: Taint) -> bool:
        """Whether a template leaves the taint out."""
        options = self._options
        prefixes = (*STARTUP_TAINTS, STATUS_TAINTS, *options.startup_taint_prefix)
        named = {TO_BE_DELETED, DELETION_CANDIDATE, *options.startup_taint, *options.status_taint}
        return is_status_taint(taint) or taint.key in named or taint.key.startswith(prefixes)


def _without_startup_taints(node: Node, drops: Callable[[Taint], bool]) -> Node:
    keeps = [taint for taint in node.spec.taints if not drops(taint)]
    return changed(node, spec=changed(node.spec, taints=keeps, unschedulable=False))


def _with_missing(there: Sequence[Pod], expected: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return the DaemonSet pods of a node, with those that it lacks."""
    owners = {_owner(pod) for pod in there}
    return (*there, *(pod for pod in expected if _owner(pod) not in owners))


def _owner(pod: Pod) -> tuple[str, str]:
    owner = pod.metadata.controller
    return pod.namespace, owner.name if owner is not None else pod.name
