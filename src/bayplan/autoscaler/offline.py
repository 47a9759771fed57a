"""The decisions of one loop over a static cluster, as in `bayplan plan`; nothing is executed.

The functions are those of the loop, with three assumptions: pods that no scheduler has tried count
as unschedulable, a node without a Ready condition is ready, and unneeded nodes have been unneeded
long enough.

Without declared groups, the nodes of each kind are a group that can be scaled up.
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
from bayplan.autoscaler.plan import AutoscalerPlan, Removal, UnremovableNodeInfo
from bayplan.autoscaler.scaledown import NodeToBeRemoved, Planner, ScaleDownContext, UnremovableNode
from bayplan.autoscaler.scaledown.drain import Controllers
from bayplan.autoscaler.scaleup.orchestrator import ScaleUpDecision, decide, scale_ups_of
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit import Profile, Snapshot
from bayplan.fit.batches import NodeTemplate
from bayplan.fit.explanation.new_nodes import node_kinds
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.labels import INSTANCE_TYPE, ZONE
from bayplan.kube.meta import Condition, KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.resources import is_attach_limit
from bayplan.kube.storage import CSINode
from bayplan.kube.workloads import DaemonSet, Job
from bayplan.nodegroups import CloudNodeGroup, GroupOptions, Instance, InstanceState

MAX_NODES = 1000
"""The maximum size of a group that is not declared."""
EPOCH = "1970-01-01T00:00:00Z"
NO_PARALLELISM_LIMIT = 1 << 30
UNHEALTHY = "too many nodes are unready: the autoscaler would not scale up or down"


@dataclass(frozen=True, slots=True, eq=False)
class StaticCluster:
    """A cluster that does not change, as from a dump."""

    snapshot: Snapshot
    daemon_sets: Mapping[str, DaemonSet] = field(default_factory=dict)
    jobs: Mapping[str, Job] = field(default_factory=dict)

    @classmethod
    def of(cls, objects: Iterable[KubeObject], profile: Profile | None = None) -> StaticCluster:
        """Build the cluster of these objects."""
        found = [_with_defaults(obj) if isinstance(obj, Node) else obj for obj in objects]
        return cls(
            Snapshot(found, profile=profile),
            {obj.key: obj for obj in found if isinstance(obj, DaemonSet)},
            {obj.key: obj for obj in found if isinstance(obj, Job)},
        )

    def nodes(self) -> list[Node]:
        """The nodes of the cluster."""
        return [obj for obj in self.snapshot.objects() if isinstance(obj, Node)]

    def pods(self) -> list[Pod]:
        """The pods of the cluster."""
        return [obj for obj in self.snapshot.objects() if isinstance(obj, Pod)]


@dataclass(frozen=True, slots=True, eq=False)
class OfflinePlan:
    """The plan of a loop, and what it is compared with."""

    plan: AutoscalerPlan
    nodes_without_attach_limits: int | None
    """How many nodes would be added without attach limits; None if no pod has volumes."""
    problems: Mapping[str, tuple[str, ...]]
    """By group, settings that cannot be used."""


def plan_offline(
    cluster: StaticCluster,
    cloud: CloudState,
    expander: Expander,
    options: AutoscalerOptions,
    now: datetime,
) -> OfflinePlan:
    """Plan as a loop would."""
    names = {pod.spec.scheduler_name for pod in cluster.pods()}
    options = replace(options, bypassed_scheduler_names=tuple(sorted(names)))
    builder = _builder(cluster, cloud, options, now)
    counted = builder.unschedulable_pods(now)
    cluster_view = builder.build(cloud, counted, now)
    found = decide(cluster_view, expander)
    removals, unremovable = _scale_down(cluster_view, found, cluster)
    plan = AutoscalerPlan(
        time=now,
        message="" if builder.registry.is_healthy(builder.node_states) else UNHEALTHY,
        fits=found.fits,
        scale_ups=tuple(scale_ups_of(found.new_nodes, cluster_view.groups)),
        considered=found.considered,
        mixed=found.mixed,
        notes=found.notes,
        pending=found.unschedulable,
        removals=removals,
        unremovable=unremovable,
        ignored_pods=counted.ignored,
    )
    problems = {name: view.problems for name, view in cluster_view.groups.items() if view.problems}
    return OfflinePlan(plan, _nodes_without_attach_limits(cluster_view, expander), problems)


def groups_by_node_kind(cluster: StaticCluster, defaults: GroupOptions) -> CloudState:
    """Return a group for every kind of node in the cluster."""
    groups: dict[str, NodeGroupInfo] = {}
    for nodes in node_kinds(cluster.snapshot.cluster):
        name = _kind_name(nodes[0], groups)
        instances = [Instance(node.spec.provider_id, InstanceState.RUNNING) for node in nodes]
        group = CloudNodeGroup(name, 0, max(MAX_NODES, len(nodes)), "existing nodes of one kind")
        groups[name] = NodeGroupInfo(group, len(nodes), tuple(instances), defaults)
    return CloudState(groups)


def _kind_name(node: Node, taken: Mapping[str, object]) -> str:
    """Name a kind by instance type and zone, or else after a node."""
    labels = node.metadata.labels
    type_and_zone = "/".join(labels[key] for key in (INSTANCE_TYPE, ZONE) if labels.get(key))
    name = type_and_zone if INSTANCE_TYPE in labels else f"like {node.name}"
    return name if name not in taken else f"{name} (like {node.name})"


def _with_defaults(node: Node) -> Node:
    """Return the node with a provider ID, and ready unless its condition is False."""
    spec = changed(node.spec, provider_id=node.spec.provider_id or node.name)
    conditions = [one for one in node.status.conditions if one.type == "Ready"]
    others = [one for one in node.status.conditions if one.type != "Ready"]
    ready = conditions[0] if conditions else Condition(type="Ready", status="True")
    since = changed(ready, last_transition_time=ready.last_transition_time or EPOCH)
    return changed(node, spec=spec, status=changed(node.status, conditions=[*others, since]))


def _builder(
    cluster: StaticCluster, cloud: CloudState, options: AutoscalerOptions, now: datetime
) -> ClusterViewBuilder:
    """Build the loop's state of the cluster."""
    storage = cluster.snapshot.cluster.storage
    known = KnownObjects(cluster.daemon_sets, storage.drivers, storage.classes)
    builder = ClusterViewBuilder(cluster.snapshot, known, options)
    for obj in cluster.snapshot.objects():
        if isinstance(obj, Node | CSINode | Pod):
            builder.on_event(ClusterEvent.of(None, obj))
    builder.update(cloud, now)
    return builder


# -- without volumes ---------------------------------------------------------------------------


def _nodes_without_attach_limits(cluster_view: ClusterView, expander: Expander) -> int | None:
    """Count the nodes that would be added without attach limits."""
    if not any(pod.spec.volumes for pod in cluster_view.unschedulable_pods):
        return None
    groups = {name: _without_attach_limits(view) for name, view in cluster_view.groups.items()}
    found = decide(replace(cluster_view, groups=groups), expander)
    return sum(one.nodes for one in found.new_nodes)


def _without_attach_limits(view: NodeGroupView) -> NodeGroupView:
    template = view.template
    if template is None:
        return view
    status = template.node.status
    allocatable = {k: one for k, one in status.allocatable.items() if not is_attach_limit(k)}
    node = changed(template.node, status=changed(status, allocatable=allocatable))
    return replace(view, template=replace(template, node=node, csinode=_without_limits(template)))


def _without_limits(template: NodeTemplate) -> CSINode | None:
    csinode = template.csinode
    if csinode is None:
        return None
    drivers = [changed(one, allocatable=None) for one in csinode.spec.drivers]
    return changed(csinode, spec=changed(csinode.spec, drivers=drivers))


# -- what is not needed ------------------------------------------------------------------------


def _scale_down(
    cluster_view: ClusterView, found: ScaleUpDecision, cluster: StaticCluster
) -> tuple[tuple[Removal, ...], tuple[UnremovableNodeInfo, ...]]:
    """Return the unneeded nodes, as if they had been so long enough, and the unremovable ones."""
    groups = {name: _without_unneeded_time(view) for name, view in cluster_view.groups.items()}
    options = replace(
        cluster_view.options,
        max_scale_down_parallelism=NO_PARALLELISM_LIMIT,
        max_drain_parallelism=NO_PARALLELISM_LIMIT,
    )
    view = replace(cluster_view, groups=groups, options=options)
    controllers = Controllers(cluster.snapshot, cluster.jobs, cluster.daemon_sets)
    plan = Planner().plan(view, ScaleDownContext(controllers, fits=found.fits))
    removals = tuple(_removal(one, cluster_view) for one in plan.to_remove)
    return removals, tuple(_unremovable_info(one) for one in plan.unremovable)


def _without_unneeded_time(view: NodeGroupView) -> NodeGroupView:
    """Return the group with no unneeded time."""
    options = replace(view.options, scale_down_unneeded_time=0.0, scale_down_unready_time=0.0)
    return replace(view, options=options)


def _removal(one: NodeToBeRemoved, cluster_view: ClusterView) -> Removal:
    group = cluster_view.group_of[one.node]
    moved = tuple((pod.key, node) for pod, node in one.moved)
    reason = "the node is empty" if one.is_empty else "its pods fit other nodes"
    return Removal(one.node, group, reason, moved, cluster_view.groups[group].price)


def _unremovable_info(one: UnremovableNode) -> UnremovableNodeInfo:
    blocking = one.blocking
    reason = one.reason.value if blocking is None else blocking.reason.value
    return UnremovableNodeInfo(
        one.node, reason, "" if blocking is None else blocking.pod, one.detail
    )
