"""Cluster views for the decision: groups with templates, pending pods, and a plain expander."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from bayplan.autoscaler.clusterstate.registry import UpcomingNodes
from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.estimate.options import ExpanderChoice, ExpanderRequest
from bayplan.autoscaler.estimate.upcoming_nodes import PlannedPods
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaleup.orchestrator import ScaleUpDecision
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit import Snapshot
from bayplan.fit.batches import NodeTemplate
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSIDriver
from bayplan.nodegroups import CloudNodeGroup, GroupOptions
from tests.builders import make_csidriver, make_csinode, make_node
from tests.fit.batches.pending_pods import random_cluster, random_template, waiting_pods
from tests.fit.random_clusters import DRIVERS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DISK = "disk.csi.example.com"


class FewestNodes:
    """An expander that helps the most pods with the fewest nodes."""

    def choose(self, request: ExpanderRequest) -> ExpanderChoice:
        best = max(request.options, key=lambda one: (one.option.merit, one.view.id))
        return ExpanderChoice([best.new_nodes()])


def group(
    name: str,
    template: NodeTemplate | None = None,
    *,
    target: int = 0,
    most: int = 10,
    options: GroupOptions | None = None,
) -> NodeGroupView:
    """A group of nodes with 4 cpus and 8 places for volumes, unless said otherwise."""
    template = replace(template or plain_template(), group=name)
    wishes = options or GroupOptions()
    return NodeGroupView(CloudNodeGroup(name, 0, most), target, options=wishes, template=template)


def plain_template(cpu: str = "4", limit: int | None = 8, zone: str = "") -> NodeTemplate:
    node = make_node("template").capacity(cpu=cpu, memory="16Gi", pods=110).ready()
    if zone:
        node.zone(zone)
    return NodeTemplate(node.obj(), make_csinode("template").driver(DISK, limit).obj())


def view(
    snapshot: Snapshot, waiting: Iterable[Pod], *groups: NodeGroupView, **options: object
) -> ClusterView:
    return ClusterView(
        snapshot,
        NOW,
        AutoscalerOptions(**options),  # type: ignore[arg-type]
        groups={one.id: one for one in groups},
        unschedulable_pods=tuple(waiting),
    )


def random_view(rng: random.Random) -> ClusterView:
    """A random cluster with groups; it knows all CSI drivers, since one that registers for the
    first time anywhere changes what is asked of nodes that are there.
    """
    snapshot = random_cluster(rng)
    for driver in DRIVERS:
        if snapshot.get(CSIDriver, driver) is None:
            snapshot.put(make_csidriver(driver).obj())
    waiting = waiting_pods(rng, snapshot)
    groups = [
        group(f"g{n}", random_template(rng), most=rng.choice([1, 3, 50]))
        for n in range(rng.randrange(1, 4))
    ]
    total = rng.choice([0, 0, 5, 8])
    return view(snapshot, waiting, *groups, max_nodes_total=total)


def after(view: ClusterView, decision: ScaleUpDecision) -> ClusterView:
    """The cluster view after the scale-up, before any of its nodes has come."""
    bought: Counter[str] = Counter()
    for one in decision.new_nodes:
        bought[one.view.id] += one.nodes
    groups = {
        name: replace(view, target=view.target + bought[name]) for name, view in view.groups.items()
    }
    upcoming = {name: UpcomingNodes(instances=count) for name, count in bought.items()}
    return replace(view, groups=groups, upcoming=upcoming)


def memory(decision: ScaleUpDecision) -> PlannedPods:
    return PlannedPods().with_new_nodes({}, decision.new_nodes)
