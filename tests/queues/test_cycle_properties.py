"""Whatever the cluster: no quota is passed, no gang is split, and an attempt leaves no trace."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.kube.meta import KubeObject
from bayplan.queues import TaskStatus
from tests.builders import make_pod_group, make_priority_class, make_queue
from tests.queues.clusters import Cluster, gated, member, node

pytestmark = pytest.mark.whole


CLASSES = [make_priority_class(name, value).obj() for name, value in (("low", 1), ("high", 9))]
cores = st.integers(1, 6)
optional = st.none() | cores


@st.composite
def queues(draw: st.DrawFn) -> list[KubeObject]:
    """A tree of queues, some of them limited."""
    built: list[KubeObject] = []
    for name, parent in (("team", ""), ("a", "team"), ("b", "team"), ("c", "")):
        queue = make_queue(name).parent(parent)
        if (limit := draw(optional)) is not None:
            queue.capability(cpu=limit)
        if (deserved := draw(optional)) is not None:
            queue.deserved(cpu=deserved)
        if draw(st.booleans()):
            queue.fifo()
        built.append(queue.obj())
    return built


@st.composite
def groups(draw: st.DrawFn) -> list[KubeObject]:
    """Groups of pods, running and waiting, with gates and without."""
    built: list[KubeObject] = []
    for number in range(draw(st.integers(1, 5))):
        name, pods = f"g{number}", draw(st.integers(0, 4))
        group = make_pod_group(name).queue(draw(st.sampled_from(["a", "b", "c", "team"])))
        group.min_member(draw(st.integers(0, 4))).created(f"2026-01-0{number + 1}T00:00:00Z")
        group.priority_class(draw(st.sampled_from(["low", "high"])))
        if draw(st.booleans()):
            group.min_resources(cpu=draw(cores))
        runs = draw(st.booleans())
        group.phase("Running" if runs else draw(st.sampled_from(["Pending", "Inqueue"])))
        built.append(group.obj())
        for index in range(pods):
            pod = member(name, index, draw(st.sampled_from(["", "1", "2"])))
            if runs:
                built.append(pod.node(draw(st.sampled_from(["n0", "n1"]))).obj())
            else:
                built.append(gated(pod) if draw(st.booleans()) else pod.obj())
    return built


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """A cluster; nodes may be full, or fuller."""
    nodes = [node("n0", "4"), node("n1", "2")]
    return Cluster([*CLASSES, *nodes, *draw(queues()), *draw(groups())])


@given(clusters())
@settings(max_examples=150, deadline=None)
def test_a_cycle_passes_no_limit_splits_no_gang_and_tells_all_that_it_does(
    cluster: Cluster,
) -> None:
    ledger = cluster.ledger
    before = {name: ledger.usage(name).held for name in ledger.tree.nodes}
    running = {key for key, m in ledger.members.items() if m.status is TaskStatus.RUNNING}
    plan = cluster.act()
    for name, tree_node in ledger.tree.nodes.items():
        held, limit = ledger.usage(name).held, tree_node.quota.real_capability
        assert not held.over(limit.most(before[name]), held.nonzero)
    placed = {one.pod for one in plan.placed}
    for group in ledger.groups.values():
        new = placed.intersection(group.members)
        assert not new or group.is_ready
        ungated = set(plan.ungated).intersection(group.members)
        assert not ungated or group.has_quota_to_start
    binding = {key for key, m in ledger.members.items() if m.status is TaskStatus.BINDING}
    assert binding == placed
    evicted = {one.pod for one in plan.evicted}
    assert {key for key in running if ledger.members[key].status is TaskStatus.RELEASING} == evicted
    on_nodes = {pod.key for name in ("n0", "n1") for pod in cluster.snapshot.pods_on(name)}
    chosen = {key for key, m in ledger.members.items() if m.status is TaskStatus.ALLOCATED}
    assert on_nodes == running | placed | chosen


@given(clusters())
@settings(max_examples=60, deadline=None)
def test_whoever_waits_says_what_for(cluster: Cluster) -> None:
    plan = cluster.act()
    for group in cluster.ledger.waiting():
        if group.is_pending or not group.is_pipelined:
            assert group.key in plan.waiting
