"""What a group's next node will be: like one that runs, or as the cloud says.

The first of these that there is: a node of the group that has been ready for a minute; what such a
node was like when there last was one; what the cloud says; a node that is not ready. Of a node its
CSINode is copied, and its daemons; to all of them the daemons are added that the cluster's
DaemonSets would put there.

Drivers whose nodes report fewer volumes than was promised are believed at once. Where no template
names the drivers, those that the cluster knows are expected, with an unknown limit; that is told
among the group's problems.
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
from bayplan.fit.batches import Template, daemons_for
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSINode, CSINodeDriver, VolumeNodeResources
from bayplan.kube.tolerations import tells_state
from bayplan.kube.workloads import DaemonSet
from bayplan.nodegroups import GroupOptions, Instance, NodeGroup
from bayplan.nodegroups.templates import csi_node_of

Limits = Mapping[str, int | None]
"""By driver; None is a driver without a limit."""


def limits_of(csinode: CSINode | None) -> dict[str, int | None]:
    """What a CSINode says."""
    drivers = csinode.spec.drivers if csinode is not None else ()
    return {one.name: one.allocatable.count if one.allocatable else None for one in drivers}


def promised(declared: CSINode | None, common: Limits) -> dict[str, bool]:
    """The drivers that a new node must report, and whether with a count: those that were declared,
    and those that every node of the group has which has long been ready.
    """
    said = {**common, **limits_of(declared)}
    return {name: limit is not None for name, limit in said.items()}


def common(reports: Iterable[CSINode | None]) -> dict[str, int | None]:
    """The drivers that all of these report; none if there are no reports."""
    found: dict[str, int | None] | None = None
    for report in reports:
        if found is None:
            found = limits_of(report)
            continue
        there = {one.name for one in report.spec.drivers} if report is not None else set()
        if not found.keys() <= there:
            found = {name: limit for name, limit in found.items() if name in there}
    return found or {}


def least(reports: Iterable[CSINode | None]) -> dict[str, int]:
    """By driver the lowest limit that one of these reports."""
    found: dict[str, int] = {}
    for report in reports:
        for name, limit in limits_of(report).items():
            if limit is not None:
                found[name] = min(limit, found.get(name, limit))
    return found


def believed(promised: CSINode | None, reported: Mapping[str, int]) -> CSINode | None:
    """What was promised, but for drivers whose nodes report less."""
    if promised is None:
        return None
    drivers = [_lowered(one, reported.get(one.name)) for one in promised.spec.drivers]
    return changed(promised, spec=changed(promised.spec, drivers=drivers))


def _lowered(driver: CSINodeDriver, reported: int | None) -> CSINodeDriver:
    limit = driver.allocatable.count if driver.allocatable else None
    if reported is None or (limit is not None and limit <= reported):
        return driver
    return changed(driver, allocatable=VolumeNodeResources(count=reported))


TEMPLATE_NODE = "cluster-autoscaler.kubernetes.io/template-node"
STATUS_TAINTS = "status-taint.cluster-autoscaler.kubernetes.io/"
STABLE = timedelta(minutes=1)
UNKNOWN = "nobody says how many volumes its nodes can attach: none are counted until one is there"
Members = Sequence[tuple[str, NodeState]]


@dataclass(frozen=True, slots=True, eq=False)
class NodeGroupView:
    """A node group as one loop sees it: what the cloud says, and what the cluster has of it."""

    group: NodeGroup
    target: int
    """How many instances it is meant to have."""
    instances: tuple[Instance, ...] = ()
    options: GroupOptions = field(default_factory=GroupOptions)
    template: Template | None = None
    """What its next node will be, with daemons; None if nobody can say."""
    nodes: tuple[str, ...] = ()
    """The names of its nodes that are registered."""
    price: float | None = None
    """What a node costs an hour; None if nobody can say."""
    problems: tuple[str, ...] = ()
    """What it says of itself that cannot be used."""

    @property
    def id(self) -> str:
        """The group's name."""
        return self.group.id

    @property
    def room(self) -> int:
        """How many more nodes it may have."""
        return max(0, self.group.max_size - self.target)


@dataclass(frozen=True, slots=True, eq=False)
class TemplateContext:
    """What templates are made from."""

    snapshot: Snapshot
    now: datetime
    daemon_sets: Collection[DaemonSet] = ()
    drivers: Collection[str] = ()
    """The CSI drivers that the cluster knows."""
    asks_drivers: bool = True
    """Whether new nodes have to report their drivers; not without the gate."""


class Templates:
    """The templates of all groups."""

    def __init__(self, options: AutoscalerOptions) -> None:
        self._options = options
        self._lived: dict[str, Template] = {}
        """Of groups that have had a stable node, what it was like."""
        self.gpu_label = ""
        """The label by which the cloud's nodes say which GPU they have; empty if none does."""

    def view(self, asked: NodeGroupInfo, members: Members, scene: TemplateContext) -> NodeGroupView:
        """A group with its nodes, its template, and what is wrong with that."""
        template, problems = self._template(asked, members, scene)
        return NodeGroupView(
            group=asked.group,
            target=asked.target,
            instances=asked.instances,
            options=asked.options,
            template=template,
            nodes=tuple(name for name, _ in members),
            price=asked.price,
            problems=problems,
        )

    def _template(
        self, asked: NodeGroupInfo, members: Members, scene: TemplateContext
    ) -> tuple[Template | None, tuple[str, ...]]:
        name, said, snapshot = asked.group.id, asked.template, scene.snapshot
        template = self._like_one_that_lives(name, members, scene)
        problems = said.problems if said is not None else ()
        if template is None and said is not None:
            template = Template(_fresh(said.node, self._drops), said.csi_node)
            if said.csi_node is None:
                drivers = csi_node_of(said.node.name, dict.fromkeys(scene.drivers))
                template = replace(template, csinode=drivers)
                problems = (*problems, UNKNOWN)
        if template is None and members:
            template = Template.like(snapshot, members[0][0], drops=self._drops)
        if template is None:
            return None, (*problems, *filter(None, [asked.template_error]))
        reported = least(snapshot.cluster.csinodes.get(n) for n, _ in members)
        return self._finished(template, name, scene, reported), problems

    def promise(
        self, asked: NodeGroupInfo, members: Members, scene: TemplateContext
    ) -> ReadinessCriteria:
        """What a new node of a group must report before it counts as ready."""
        startup = asked.options.max_node_startup_time
        if not scene.asks_drivers:
            return ReadinessCriteria(startup, asks_drivers=False, gpu_label=self.gpu_label)
        said = asked.template
        declared = said.csi_node if said is not None else None
        patience = timedelta(seconds=self._options.csi_driver_startup_time)
        csinodes = scene.snapshot.cluster.csinodes
        long_ago = scene.now - patience
        old = (n for n, one in members if (t := one.says_ready_since()) and t <= long_ago)
        found = promised(declared, common(csinodes.get(n) for n in old))
        hoped = frozenset(scene.drivers) if declared is None and not found else frozenset()
        return ReadinessCriteria(startup, found, hoped, gpu_label=self.gpu_label)

    def forget_others(self, groups: Collection[str]) -> None:
        """Forget all groups but these."""
        self._lived = {name: kept for name, kept in self._lived.items() if name in groups}

    def _like_one_that_lives(
        self, group: str, members: Members, scene: TemplateContext
    ) -> Template | None:
        """A template after a node that has been ready for a while, now or earlier."""
        stable = [
            (one.ready_since, name)
            for name, one in members
            if one.standing is NodeReadiness.READY
            and one.ready_since is not None
            and one.ready_since + STABLE <= scene.now
        ]
        if stable:
            # The youngest is most like what comes next.
            self._lived[group] = Template.like(scene.snapshot, max(stable)[1], drops=self._drops)
        return self._lived.get(group)

    def _finished(
        self, template: Template, group: str, scene: TemplateContext, reported: dict[str, int]
    ) -> Template:
        labels = {**template.node.metadata.labels, TEMPLATE_NODE: "true"}
        meta = changed(template.node.metadata, labels=labels)
        node = changed(template.node, metadata=meta)
        daemons = _with_missing(template.daemons, daemons_for(node, scene.daemon_sets))
        return Template(node, believed(template.csinode, reported), daemons, group)

    def _drops(self, taint: Taint) -> bool:
        """Whether a new node would not have a taint."""
        options = self._options
        prefixes = (*STARTUP_TAINTS, STATUS_TAINTS, *options.startup_taint_prefix)
        named = {TO_BE_DELETED, DELETION_CANDIDATE, *options.startup_taint, *options.status_taint}
        return tells_state(taint) or taint.key in named or taint.key.startswith(prefixes)


def _fresh(node: Node, drops: Callable[[Taint], bool]) -> Node:
    keeps = [taint for taint in node.spec.taints if not drops(taint)]
    return changed(node, spec=changed(node.spec, taints=keeps, unschedulable=False))


def _with_missing(there: Sequence[Pod], expected: Iterable[Pod]) -> tuple[Pod, ...]:
    """The daemons of a node with those that it lacks still."""
    owners = {_owner(pod) for pod in there}
    return (*there, *(pod for pod in expected if _owner(pod) not in owners))


def _owner(pod: Pod) -> tuple[str, str]:
    owner = pod.metadata.controller
    return pod.namespace, owner.name if owner is not None else pod.name
