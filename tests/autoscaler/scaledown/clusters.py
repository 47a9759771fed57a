"""Small clusters of which some nodes are not needed."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaledown import Planner, ScaleDownContext, ScaleDownPlan
from bayplan.autoscaler.scaledown.drain import Controllers
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit import Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.nodegroups import CloudNodeGroup, GroupOptions
from tests.autoscaler.cluster_views import NOW
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod, make_replica_set
from tests.fit.random_clusters import random_object

GROUP = "group"
SET = "web"


def node(name: str, cpu: str = "4") -> NodeBuilder:
    """A node that is ready."""
    return make_node(name).capacity(cpu=cpu, memory="16Gi", pods=110).ready()


def pod(name: str, on: str, cpu: str = "500m") -> PodBuilder:
    """A pod of a set, on a node."""
    made = make_pod(name).cpu(cpu).memory("64Mi").node(on).phase("Running").labels(app=SET)
    return made.owner("ReplicaSet", SET)


def cluster(
    *objects: KubeObject,
    least: int = 0,
    options: AutoscalerOptions | None = None,
    wishes: GroupOptions | None = None,
) -> ClusterView:
    """All nodes in one group, with the set that owns the pods."""
    snapshot = Snapshot([make_replica_set(SET, app=SET).obj(), *objects])
    names = [one.name for one in objects if isinstance(one, Node)]
    given = options or AutoscalerOptions()
    view = NodeGroupView(
        CloudNodeGroup(GROUP, least, 100),
        len(names),
        options=wishes or given.group_defaults(),
        nodes=tuple(names),
    )
    return ClusterView(snapshot, NOW, given, {GROUP: view}, dict.fromkeys(names, GROUP))


def scale_down_context(view: ClusterView) -> ScaleDownContext:
    """Nothing else is going on."""
    return ScaleDownContext(Controllers(view.snapshot))


def planned(planner: Planner, view: ClusterView, after: float = 0) -> ScaleDownPlan:
    """The plan of a planner so many seconds later."""
    later = replace(view, now=NOW + timedelta(seconds=after))
    return planner.plan(later, scale_down_context(later))


def names(removable: Iterable[object]) -> list[str]:
    """The nodes of plans."""
    return [str(getattr(one, "node", "")) for one in removable]


def why(plan: ScaleDownPlan) -> dict[str, str]:
    """By node that stays, the reason."""
    return {one.node: one.reason.value for one in plan.unremovable}


def random_objects(rng: random.Random, count: int = 40) -> list[KubeObject]:
    """A small random cluster; of each name the last object counts."""
    objects = {(type(one), one.key): one for one in (random_object(rng) for _ in range(count))}
    return list(objects.values())
