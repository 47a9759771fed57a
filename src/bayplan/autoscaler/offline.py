"""One loop's decisions over a cluster that stands still: shown, and never done.

The functions are those of the loop. What a cluster that stands still cannot say is taken as it is
meant: pods that no scheduler has looked at count as well, a node that says nothing of being ready
is ready, and nodes that are not needed now are not needed for good.

Without declared groups, every kind of node that the cluster has is taken for a group that may grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from msgspec.structs import replace as changed

from bayplan.autoscaler.cloudstate.reader import CloudState, NodeGroupInfo
from bayplan.autoscaler.clusterview import ClusterView, ClusterViewBuilder, KnownObjects
from bayplan.autoscaler.estimate.options import Expander
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.plan import Plan, Removal, Stays
from bayplan.autoscaler.scaledown import Planner, Removable, ScaleDownContext, Unremovable
from bayplan.autoscaler.scaledown.drain import Controllers
from bayplan.autoscaler.scaleup.orchestrator import ScaleUpDecision, decide, scale_ups_of
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit import Profile, Snapshot
from bayplan.fit.batches import Template
from bayplan.fit.events import Event
from bayplan.fit.explanation.growth import node_kinds
from bayplan.kube.labels import INSTANCE_TYPE, ZONE
from bayplan.kube.meta import Condition, KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.resources import is_attach_limit
from bayplan.kube.storage import CSINode
from bayplan.kube.workloads import DaemonSet, Job
from bayplan.nodegroups import GroupOptions, Instance, InstanceState, NodeGroup

MOST_NODES = 1000
"""How many nodes a kind may have that is no declared group."""
LONG_AGO = "1970-01-01T00:00:00Z"
AT_ONCE = 1 << 30
UNHEALTHY = "too many nodes are unready: the autoscaler would neither buy nor give back"


@dataclass(frozen=True, slots=True, eq=False)
class StaticCluster:
    """A cluster that stands still."""

    snapshot: Snapshot
    daemon_sets: Mapping[str, DaemonSet] = field(default_factory=dict)
    jobs: Mapping[str, Job] = field(default_factory=dict)

    @classmethod
    def of(cls, objects: Iterable[KubeObject], profile: Profile | None = None) -> StaticCluster:
        """The cluster that these objects are."""
        found = [_settled(obj) if isinstance(obj, Node) else obj for obj in objects]
        return cls(
            Snapshot(found, profile=profile),
            {obj.key: obj for obj in found if isinstance(obj, DaemonSet)},
            {obj.key: obj for obj in found if isinstance(obj, Job)},
        )

    def nodes(self) -> list[Node]:
        """Its nodes."""
        return [obj for obj in self.snapshot.objects() if isinstance(obj, Node)]

    def pods(self) -> list[Pod]:
        """Its pods."""
        return [obj for obj in self.snapshot.objects() if isinstance(obj, Pod)]


@dataclass(frozen=True, slots=True, eq=False)
class OfflinePlan:
    """What a loop would do."""

    plan: Plan
    blind: int | None
    """How many nodes would be bought if new ones took any number of volumes; None if no pod has
    any.
    """
    problems: Mapping[str, tuple[str, ...]]
    """By group, what it says of itself that cannot be used."""


def plan_offline(
    still: StaticCluster,
    cloud: CloudState,
    expander: Expander,
    options: AutoscalerOptions,
    now: datetime,
) -> OfflinePlan:
    """What a loop would do."""
    names = {pod.spec.scheduler_name for pod in still.pods()}
    options = replace(options, bypassed_scheduler_names=tuple(sorted(names)))
    builder = _builder(still, cloud, options, now)
    counted = builder.unschedulable_pods(now)
    cluster_view = builder.build(cloud, counted, now)
    found = decide(cluster_view, expander)
    removals, stays = _given_back(cluster_view, found, still)
    plan = Plan(
        time=now,
        message="" if builder.registry.is_healthy(builder.node_states) else UNHEALTHY,
        fits=found.fits,
        scale_ups=tuple(scale_ups_of(found.purchases, cluster_view.groups)),
        considered=found.considered,
        mixed=found.mixed,
        notes=found.notes,
        pending=found.left,
        removals=removals,
        stays=stays,
        set_aside=counted.aside,
    )
    problems = {name: view.problems for name, view in cluster_view.groups.items() if view.problems}
    return OfflinePlan(plan, _blind(cluster_view, expander), problems)


def groups_by_node_kind(still: StaticCluster, defaults: GroupOptions) -> CloudState:
    """Every kind of node that the cluster has, as a group that may grow."""
    groups: dict[str, NodeGroupInfo] = {}
    for nodes in node_kinds(still.snapshot.cluster):
        name = _kind_name(nodes[0], groups)
        there = [Instance(node.spec.provider_id, InstanceState.RUNNING) for node in nodes]
        group = NodeGroup(name, 0, max(MOST_NODES, len(nodes)), "a kind of node that is there")
        groups[name] = NodeGroupInfo(group, len(nodes), tuple(there), defaults)
    return CloudState(groups)


def _kind_name(node: Node, taken: Mapping[str, object]) -> str:
    """By instance type and zone if it has them; else after the node."""
    labels = node.metadata.labels
    said = "/".join(labels[key] for key in (INSTANCE_TYPE, ZONE) if labels.get(key))
    name = said if INSTANCE_TYPE in labels else f"like {node.name}"
    return name if name not in taken else f"{name} (like {node.name})"


def _settled(node: Node) -> Node:
    """A node as it is meant: known to the cloud, and ready unless it says otherwise."""
    spec = changed(node.spec, provider_id=node.spec.provider_id or node.name)
    said = [one for one in node.status.conditions if one.type == "Ready"]
    others = [one for one in node.status.conditions if one.type != "Ready"]
    ready = said[0] if said else Condition(type="Ready", status="True")
    since = changed(ready, last_transition_time=ready.last_transition_time or LONG_AGO)
    return changed(node, spec=spec, status=changed(node.status, conditions=[*others, since]))


def _builder(
    still: StaticCluster, cloud: CloudState, options: AutoscalerOptions, now: datetime
) -> ClusterViewBuilder:
    """The cluster as the loop sees it."""
    storage = still.snapshot.cluster.storage
    known = KnownObjects(still.daemon_sets, storage.drivers, storage.classes)
    builder = ClusterViewBuilder(still.snapshot, known, options)
    for obj in still.snapshot.objects():
        if isinstance(obj, Node | CSINode | Pod):
            builder.hear(Event.of(None, obj))
    builder.take(cloud, now)
    return builder


# -- without volumes ---------------------------------------------------------------------------


def _blind(cluster_view: ClusterView, expander: Expander) -> int | None:
    """How many nodes would be bought if new ones took any number of volumes."""
    if not any(pod.spec.volumes for pod in cluster_view.waiting):
        return None
    groups = {name: _unlimited(view) for name, view in cluster_view.groups.items()}
    found = decide(replace(cluster_view, groups=groups), expander)
    return sum(one.nodes for one in found.purchases)


def _unlimited(view: NodeGroupView) -> NodeGroupView:
    template = view.template
    if template is None:
        return view
    status = template.node.status
    allocatable = {k: one for k, one in status.allocatable.items() if not is_attach_limit(k)}
    node = changed(template.node, status=changed(status, allocatable=allocatable))
    return replace(view, template=replace(template, node=node, csinode=_any_number(template)))


def _any_number(template: Template) -> CSINode | None:
    csinode = template.csinode
    if csinode is None:
        return None
    drivers = [changed(one, allocatable=None) for one in csinode.spec.drivers]
    return changed(csinode, spec=changed(csinode.spec, drivers=drivers))


# -- what is not needed ------------------------------------------------------------------------


def _given_back(
    cluster_view: ClusterView, found: ScaleUpDecision, still: StaticCluster
) -> tuple[tuple[Removal, ...], tuple[Stays, ...]]:
    """The nodes that are not needed, as if they had long been so, and why the others stay."""
    groups = {name: _at_once(view) for name, view in cluster_view.groups.items()}
    options = replace(
        cluster_view.options, max_scale_down_parallelism=AT_ONCE, max_drain_parallelism=AT_ONCE
    )
    settled = replace(cluster_view, groups=groups, options=options)
    controllers = Controllers(still.snapshot, still.jobs, still.daemon_sets)
    plan = Planner().plan(settled, ScaleDownContext(controllers, fits=found.fits))
    going = tuple(_removal(one, cluster_view) for one in plan.go)
    return going, tuple(_stays(one) for one in plan.stays)


def _at_once(view: NodeGroupView) -> NodeGroupView:
    """A group whose nodes need not be unneeded for long."""
    soon = replace(view.options, scale_down_unneeded_time=0.0, scale_down_unready_time=0.0)
    return replace(view, options=soon)


def _removal(one: Removable, cluster_view: ClusterView) -> Removal:
    group = cluster_view.group_of[one.node]
    moved = tuple((pod.key, node) for pod, node in one.moved)
    reason = "nothing runs there" if one.is_empty else "its pods fit other nodes"
    return Removal(one.node, group, reason, moved, cluster_view.groups[group].price)


def _stays(one: Unremovable) -> Stays:
    blocking = one.blocking
    reason = one.reason.value if blocking is None else blocking.reason.value
    return Stays(one.node, reason, "" if blocking is None else blocking.pod, one.detail)
