"""In random clusters, what is planned can really be done, and planning changes nothing."""

from __future__ import annotations

import random
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from bayplan.autoscaler.clusterstate.taints import to_be_deleted
from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaledown import BlockingReason, Planner, ScaleDownPlan
from bayplan.fit import Snapshot
from bayplan.kube.meta import KubeObject, OwnerReference
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import PodDisruptionBudget
from tests.autoscaler.cluster_views import NOW
from tests.autoscaler.scaledown.clusters import cluster, random_objects, scale_down_context

pytestmark = pytest.mark.whole


LENIENT = AutoscalerOptions(
    skip_nodes_with_custom_controller_pods=False,
    skip_nodes_with_local_storage=False,
    scale_down_utilization_threshold=1.0,
    scale_down_unneeded_time=0,
    scale_down_unready_time=0,
)


SPENT = BlockingReason.NOT_ENOUGH_PDB
"""What the first loop spends of a budget, the second has again."""


def random_view(seed: int) -> ClusterView:
    objects = random_objects(random.Random(seed))
    for obj in objects:
        if isinstance(obj, Pod):
            _own(obj)
    return cluster(*objects, options=LENIENT)


def _own(pod: Pod) -> None:
    """Most pods of these clusters are bare; here they all have somebody who makes them again."""
    if pod.metadata.controller is None:
        owner = OwnerReference(kind="Custom", name="any", controller=True)
        pod.metadata.owner_references = [owner]


def settled(view: ClusterView) -> Snapshot:
    """The same cluster made anew, with nominated pods where they are going."""
    there = view.snapshot.cluster.slots.by_name
    objects: list[KubeObject] = []
    for obj in view.snapshot.objects():
        nominated = obj.status.nominated_node_name if isinstance(obj, Pod) else ""
        settles = isinstance(obj, Pod) and not obj.spec.node_name and nominated in there
        objects.append(_on(obj, nominated) if isinstance(obj, Pod) and settles else obj)
    return Snapshot(objects)


def _on(pod: Pod, node: str) -> Pod:
    return changed(pod, spec=changed(pod.spec, node_name=node))


def carry_out(plan: ScaleDownPlan, snapshot: Snapshot) -> list[str]:
    """Take the nodes away pod by pod; returns what did not fit where it was to go."""
    problems = []
    for removable in plan.removable:
        node = snapshot.get(Node, removable.node)
        assert node is not None
        for pod in snapshot.pods_on(node.name):
            snapshot.delete(Pod, pod.key)
        taints = [*node.spec.taints, to_be_deleted(NOW)]
        snapshot.put(changed(node, spec=changed(node.spec, taints=taints)))
        for pod, target in removable.moved:
            waiting = _on(pod, "")
            if snapshot.refusal(waiting, target) is not None:
                problems.append(f"{pod.key} does not fit {target}")
            snapshot.put(_on(pod, target))
        snapshot.delete(Node, node.name)
    return problems


@given(st.integers(0, 2**32))
def test_every_moved_pod_fits_where_it_is_to_go_in_turn(seed: int) -> None:
    view = random_view(seed)
    plan = Planner().plan(view, scale_down_context(view))
    assert carry_out(plan, settled(view)) == []


@given(st.integers(0, 2**32))
def test_planning_leaves_the_cluster_as_it_was(seed: int) -> None:
    view = random_view(seed)
    before = contents(view.snapshot)
    first = Planner().plan(view, scale_down_context(view))
    assert contents(view.snapshot) == before
    assert Planner().plan(view, scale_down_context(view)) == first


@given(st.integers(0, 2**32))
def test_budgets_are_never_asked_for_more_than_one_below_nothing(seed: int) -> None:
    """A pod goes only while its budget has one left when its node's turn comes."""
    view = random_view(seed)
    plan = Planner().plan(view, scale_down_context(view))
    left = {
        one.key: (one, one.status.disruptions_allowed)
        for one in view.snapshot.objects()
        if isinstance(one, PodDisruptionBudget)
    }
    for removable in plan.removable:
        for key, (budget, allowed) in list(left.items()):
            asked = sum(_protects(budget, pod) for pod, _ in removable.moved)
            assert not asked or allowed >= 1, f"{removable.node} breaks {key}"
            left[key] = (budget, allowed - asked)


@given(st.integers(0, 2**32))
def test_a_second_loop_takes_no_node_that_a_pod_keeps(seed: int) -> None:
    view = random_view(seed)
    plan = Planner().plan(view, scale_down_context(view))
    blocked = {
        one.node for one in plan.unremovable if one.blocking and one.blocking.reason != SPENT
    }
    after = settled(view)
    carry_out(plan, after)
    gone = set(plan.unneeded)
    group_of = {name: one for name, one in view.group_of.items() if name not in gone}
    second = replace(view, snapshot=after, group_of=group_of)
    again = Planner().plan(second, scale_down_context(second))
    assert blocked.isdisjoint(again.unneeded)


def contents(snapshot: Snapshot) -> list[bytes]:
    """All objects, and what of every node is free."""
    objects = [msgspec.json.encode((type(one).__name__, one)) for one in snapshot.objects()]
    free = [
        f"{name} {snapshot.cluster.resources.free[slot].tolist()}".encode()
        for name, slot in snapshot.cluster.slots.by_name.items()
    ]
    order = [
        f"{name} {list(pods)}".encode() for name, pods in snapshot.cluster.pods.by_node.items()
    ]
    return sorted(objects) + sorted(free) + sorted(order)


def _protects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    wanted = budget.spec.selector.match_labels if budget.spec.selector else {}
    labels = pod.metadata.labels
    same = all(labels.get(key) == value for key, value in wanted.items())
    return same and budget.namespace == pod.namespace
