"""Whatever cluster and pod: every fix on offer makes the pod fit when it is applied."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.fit import Snapshot
from bayplan.fit.explanation import Explanation, Fix, FixKind, explain
from bayplan.fit.state.pods import placed_on
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from tests.builders import (
    NodeBuilder,
    PodBuilder,
    make_csinode,
    make_node,
    make_pod,
    make_pvc,
    make_storage_class,
)
from tests.fit.explanation.judge_fixes import Judgement, judge, judge_corpus
from tests.oracle.corpus import CORPORA

pytestmark = pytest.mark.whole


DRIVER = "disk.example.com"
ZONE = "topology.kubernetes.io/zone"
NODES = ("n0", "n1", "n2")
amounts = st.sampled_from(["500m", "1", "2", "3"])


@st.composite
def nodes(draw: st.DrawFn, name: str) -> list[KubeObject]:
    node: NodeBuilder = make_node(name).zone(draw(st.sampled_from("ab")))
    node.capacity(cpu=draw(amounts), memory="8Gi", pods=draw(st.sampled_from(["1", "3"])))
    if draw(st.booleans()):
        node.taint("team", draw(st.sampled_from("xy")))
    if draw(st.booleans()):
        node.label("disk", draw(st.sampled_from(["ssd", "hdd"])))
    if draw(st.integers(0, 4)) == 0:
        node.unschedulable()
    objects: list[KubeObject] = [node.obj()]
    limit = draw(st.sampled_from([None, 0, 1, 2]))
    if limit is not None:
        objects.append(make_csinode(name).driver(DRIVER, limit).obj())
    return objects


@st.composite
def pods(draw: st.DrawFn, name: str) -> PodBuilder:
    pod = make_pod(name).labels(app=draw(st.sampled_from("pq"))).cpu(draw(amounts))
    if draw(st.booleans()):
        pod.claim(draw(st.sampled_from(["c0", "c1", "c2", "none"])))
    if draw(st.booleans()):
        pod.toleration("team", draw(st.sampled_from("xy")))
    match draw(st.integers(0, 6)):
        case 0:
            pod.node_selector(disk="ssd")
        case 1:
            pod.anti_affinity("kubernetes.io/hostname")
        case 2:
            pod.spread(ZONE)
        case 3:
            pod.host_port(80)
        case _:
            pass
    return pod


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[KubeObject], Pod]:
    objects: list[KubeObject] = [make_storage_class("fast", DRIVER).waits().obj()]
    objects += [make_pvc(f"c{index}").storage_class("fast").obj() for index in range(3)]
    for name in NODES:
        objects += draw(nodes(name))
    for index in range(draw(st.integers(0, 4))):
        placed = draw(pods(f"placed{index}")).node(draw(st.sampled_from(NODES)))
        objects.append(placed.obj())
    return objects, draw(pods("waiting")).obj()


def check_fixes(objects: list[KubeObject], pod: Pod) -> Explanation:
    """Apply each fix to a fresh snapshot; the pod must then go where the fix says."""
    snapshot = Snapshot(objects)
    before = snapshot.decide(pod)
    explanation = explain(snapshot, pod)
    assert snapshot.decide(pod) == before, "explaining must not change the snapshot"
    for fix in explanation.fixes:
        fresh = Snapshot(objects)
        changed = fix.apply(fresh)
        assert fresh.decide(changed).node == fix.node, fix.summary
        fresh.assume(changed, fresh.decision_on(changed, fix.node))
        check_moved_pods(fresh, fix)
    return explanation


def check_moved_pods(snapshot: Snapshot, fix: Fix) -> None:
    """Each pod that a fix moves must itself fit where it goes."""
    for step in fix.steps:
        if step.kind is FixKind.MOVE_POD:
            (moved,) = (obj for obj in step.puts if isinstance(obj, Pod))
            target = moved.spec.node_name
            with snapshot.fork():
                snapshot.put(placed_on(moved, ""))
                assert snapshot.refusal(placed_on(moved, ""), target) is None, fix.summary


@settings(deadline=None, max_examples=100)
@given(clusters())
def test_every_fix_on_offer_makes_the_pod_fit(cluster: tuple[list[KubeObject], Pod]) -> None:
    objects, pod = cluster
    explanation = check_fixes(objects, pod)
    assert not (explanation.fits and explanation.fixes)


@pytest.mark.parametrize("corpus", ["scheduler", "preemption"])
def test_fixes_on_recorded_clusters_hold_need_every_step_and_miss_no_single_one(
    corpus: str,
) -> None:
    found = judge_corpus(CORPORA / f"{corpus}.ndjson.gz", Judgement(), every=11)
    assert found.faults == []
    assert found.fixable == found.offered > 0


@settings(deadline=None, max_examples=30)
@given(clusters())
def test_fixes_need_every_step_and_miss_no_single_one(
    cluster: tuple[list[KubeObject], Pod],
) -> None:
    found = Judgement()
    judge(*cluster, found)
    assert found.faults == []
