"""Template node infos: what the next node of each group will be.

The first of these that exists: a node of the group that has been ready for a minute; the template
made from the last such node; the provider's template; a node that is not ready. Of several ready
nodes it is the newest of those that most are like, by instance type, taints and resources. Its
DaemonSet pods are copied; those that would run on a new node are added to all templates.

The drivers and attach limits are the expected ones of the group (`expected_drivers`), whichever
node is copied. If they are unknown, the cluster's drivers are expected, without a limit; that is
one of the group's problems. What a group's last node reported is forgotten after an hour.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
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
from bayplan.autoscaler.expected_drivers import (
    DriverOutlier,
    DriverReport,
    ExpectedDrivers,
    common_drivers,
    drivers_of_most,
    expected_drivers,
    same_type,
)
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.fit import Snapshot
from bayplan.fit.batches import NodeTemplate, daemons_for
from bayplan.kube.labels import INSTANCE_TYPE
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSINode
from bayplan.kube.tolerations import is_status_taint
from bayplan.kube.workloads import DaemonSet
from bayplan.nodegroups import CloudNodeGroup, GroupOptions, Instance
from bayplan.nodegroups.templates import Limits, build_csi_node, csi_limits

TEMPLATE_NODE = "cluster-autoscaler.kubernetes.io/template-node"
STATUS_TAINTS = "status-taint.cluster-autoscaler.kubernetes.io/"
STABLE = timedelta(minutes=1)
REMEMBERED = timedelta(hours=1)
"""How long the drivers of a group's last node are remembered."""
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
    outliers: tuple[DriverOutlier, ...] = ()
    """Its nodes whose drivers or limits differ from those of the template."""

    @property
    def id(self) -> str:
        """The group's name."""
        return self.group.id

    @property
    def drivers(self) -> tuple[str, ...]:
        """The CSI drivers of its template."""
        return tuple(csi_limits(self.template.csinode)) if self.template is not None else ()

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
    pending_drivers: frozenset[str] = frozenset()
    """The CSI drivers of volumes of pending pods."""
    waits_for_drivers: bool = True
    """Whether drivers must register on new nodes; False without the feature gate."""


@dataclass(frozen=True, slots=True, eq=False)
class _RememberedTemplate:
    """A template that was made from a node, and when."""

    template: NodeTemplate
    at: datetime


class TemplateNodeInfoProvider:
    """Provides the template node infos and readiness criteria of all groups."""

    def __init__(self, options: AutoscalerOptions) -> None:
        self._options = options
        self._remembered: dict[str, _RememberedTemplate] = {}
        """Templates of groups, made from their last ready node."""
        self.gpu_label = ""
        """The provider's label of GPU nodes; empty if it has none."""

    def view(
        self, info: NodeGroupInfo, members: Members, context: TemplateContext
    ) -> NodeGroupView:
        """Return the view of a group: its nodes, template and problems."""
        problems = info.template.problems if info.template is not None else ()
        base = self._base(info, members, context)
        if base is None:
            template, expected = None, ExpectedDrivers()
            problems = (*problems, *filter(None, [info.template_error]))
        else:
            expected = self._expected(info, base, members, context)
            template = self._finished(base, info.group.id, expected, members, context)
        return NodeGroupView(
            group=info.group,
            target=info.target,
            instances=info.instances,
            options=info.options,
            template=template,
            nodes=tuple(name for name, _ in members),
            price=info.price,
            problems=(*problems, *expected.problems),
            outliers=expected.outliers,
        )

    def readiness_criteria(
        self, info: NodeGroupInfo, members: Members, context: TemplateContext
    ) -> ReadinessCriteria:
        """Return what a new node of a group needs to count as ready."""
        startup = info.options.max_node_startup_time
        if not context.waits_for_drivers:
            return ReadinessCriteria(startup, waits_for_drivers=False, gpu_label=self.gpu_label)
        cutoff = context.now - timedelta(seconds=self._options.csi_driver_startup_time)
        old = [
            (name, one)
            for name, one in members
            if (since := one.ready_conditions_since()) and since <= cutoff
        ]
        reports = driver_reports(old, context.snapshot)
        declared = csi_limits(info.template.csi_node) if info.template is not None else {}
        required = frozenset(declared) | drivers_of_most(reports)
        optional = common_drivers(reports) if required else context.pending_drivers
        return ReadinessCriteria(startup, required, optional - required, gpu_label=self.gpu_label)

    def forget_others(self, groups: Collection[str]) -> None:
        """Drop the remembered templates of all other groups."""
        kept = {name: one for name, one in self._remembered.items() if name in groups}
        self._remembered = kept

    def _base(
        self, info: NodeGroupInfo, members: Members, context: TemplateContext
    ) -> NodeTemplate | None:
        """Return the template before its drivers and DaemonSet pods are completed."""
        name = self._representative(members, context.now)
        if name is not None:
            made = NodeTemplate.from_node(context.snapshot, name, drops=self._drops)
            self._remembered[info.group.id] = _RememberedTemplate(made, context.now)
        if (known := self._remembered.get(info.group.id)) is not None:
            return known.template
        if info.template is not None:
            return NodeTemplate(_without_startup_taints(info.template.node, self._drops))
        if members:
            return NodeTemplate.from_node(context.snapshot, members[0][0], drops=self._drops)
        return None

    def _representative(self, members: Members, now: datetime) -> str | None:
        """Return the newest of the nodes that most are like, of those ready for a while."""
        alike: dict[Hashable, list[tuple[datetime, str]]] = {}
        for name, one in members:
            since = one.ready_since
            if one.readiness is NodeReadiness.READY and since and since + STABLE <= now:
                alike.setdefault(self._kind(one.node), []).append((since, name))
        if not alike:
            return None
        _, (_, newest) = max((len(some), max(some)) for some in alike.values())
        return newest  # it is most like the next one

    def _kind(self, node: Node) -> Hashable:
        """Return what most nodes of a group have in common."""
        taints = {(t.key, t.value, t.effect) for t in node.spec.taints if not self._drops(t)}
        resources = {name for name, amount in node.status.allocatable.items() if amount != "0"}
        return instance_type(node), frozenset(taints), frozenset(resources)

    def _expected(
        self,
        info: NodeGroupInfo,
        base: NodeTemplate,
        members: Members,
        context: TemplateContext,
    ) -> ExpectedDrivers:
        """Return the expected drivers; those of the cluster without limits if they are unknown."""
        provided = info.template
        limits = csi_limits(provided.csi_node) if provided is not None else {}
        estimated = provided.estimated if provided is not None else frozenset()
        declared = {name: limit for name, limit in limits.items() if name not in estimated}
        computed = {name: limit for name, limit in limits.items() if name in estimated}
        ready = [(name, one) for name, one in members if one.readiness is NodeReadiness.READY]
        reports = same_type(driver_reports(ready, context.snapshot), instance_type(base.node))
        if not reports:
            reports = self._remembered_reports(info.group.id, base, context.now)
        if reports or (provided is not None and provided.csi_node is not None):
            return expected_drivers(declared, computed, reports)
        known = csi_limits(base.csinode) or context.drivers
        return ExpectedDrivers(dict.fromkeys(known), problems=(UNKNOWN,))

    def _remembered_reports(
        self, group: str, base: NodeTemplate, now: datetime
    ) -> list[DriverReport]:
        """Return what the copied node reports or reported, unless that is too long ago."""
        known = self._remembered.get(group)
        if known is not None and now >= known.at + REMEMBERED:
            return []
        copied = known is not None or base.csinode is not None
        return [DriverReport("", csi_limits(base.csinode))] if copied else []

    def _finished(
        self,
        base: NodeTemplate,
        group: str,
        expected: ExpectedDrivers,
        members: Members,
        context: TemplateContext,
    ) -> NodeTemplate:
        labels = {**base.node.metadata.labels, TEMPLATE_NODE: "true"}
        node = changed(base.node, metadata=changed(base.node.metadata, labels=labels))
        daemons = _with_missing(base.daemons, daemons_for(node, context.daemon_sets))
        csinodes = context.snapshot.cluster.csinodes
        others = (csinodes.get(name) for name, _ in members)
        csinode = with_limits(base.csinode, expected.limits, node.name, others)
        return NodeTemplate(node, csinode, daemons, group)

    def _drops(self, taint: Taint) -> bool:
        """Whether a template leaves the taint out."""
        options = self._options
        prefixes = (*STARTUP_TAINTS, STATUS_TAINTS, *options.startup_taint_prefix)
        named = {TO_BE_DELETED, DELETION_CANDIDATE, *options.startup_taint, *options.status_taint}
        return is_status_taint(taint) or taint.key in named or taint.key.startswith(prefixes)


def driver_reports(members: Members, snapshot: Snapshot) -> list[DriverReport]:
    """Return the drivers that nodes report."""
    csinodes = snapshot.cluster.csinodes
    return [
        DriverReport(name, csi_limits(csinodes.get(name)), instance_type(one.node))
        for name, one in members
    ]


def instance_type(node: Node) -> str:
    """Return the instance type in a node's labels; empty if it has none."""
    return node.metadata.labels.get(INSTANCE_TYPE, "")


def with_limits(
    csinode: CSINode | None, limits: Limits, node: str, others: Iterable[CSINode | None]
) -> CSINode | None:
    """Return a CSINode with exactly these drivers and limits; the rest is as it or another has."""
    if csinode is None and not limits:
        return None
    known = {one.name: one for other in others if other is not None for one in other.spec.drivers}
    known |= {one.name: one for one in (csinode.spec.drivers if csinode is not None else ())}
    wanted = build_csi_node(node, limits)
    drivers = [
        changed(known[one.name], allocatable=one.allocatable) if one.name in known else one
        for one in wanted.spec.drivers
    ]
    base = csinode if csinode is not None else wanted
    return changed(base, spec=changed(base.spec, drivers=drivers))


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
