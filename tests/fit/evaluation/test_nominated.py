"""Nominated pods: others of no higher priority leave room for them, and fit without them too."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.fit import Snapshot
from bayplan.fit.explanation import explain
from bayplan.fit.preemption import preempt
from bayplan.kube.pods import Pod
from tests.builders import (
    PodBuilder,
    make_csinode,
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    selector,
)
from tests.fit.random_clusters import NODES, random_object, random_pod

HOST = "kubernetes.io/hostname"


def cluster(*pods: Pod, nodes: int = 1) -> Snapshot:
    """Nodes of two CPUs, and pods."""
    made = [
        make_node(f"n{index}").capacity(cpu="2", memory="4Gi", pods=9).label(HOST, f"n{index}")
        for index in range(nodes)
    ]
    return Snapshot([*(node.obj() for node in made), *pods])


def waiting(name: str, priority: int = 5) -> PodBuilder:
    """A pod that takes more than half a node."""
    return make_pod(name).cpu("1500m").priority(priority)


def test_a_place_that_is_promised_is_taken_by_nobody_of_equal_or_lower_priority() -> None:
    snapshot = cluster(waiting("first").nominated("n0").obj())
    assert snapshot.decide(waiting("equal").obj()).node is None
    assert snapshot.decide(waiting("lower", 4).obj()).node is None
    assert snapshot.decide(waiting("higher", 6).obj()).node == "n0"


def test_what_nominated_pods_leave_no_room_for_is_explained_with_them() -> None:
    node = make_node("n1").capacity(cpu="4", memory="8Gi", pods=9).obj()
    snapshot = Snapshot([node, make_pod("n").cpu("3").nominated("n1").obj()])
    explanation = explain(snapshot, make_pod("p").cpu("2").obj())
    assert explanation.nodes[0].details == ("wants 2 CPUs, 1 free",)
    less = "Request 1 CPU less: 1 instead of 2; the pod then fits n1."
    assert less in [fix.summary for fix in explanation.fixes]


def test_a_pod_does_not_stand_in_its_own_way_and_goes_where_it_is_nominated() -> None:
    first = waiting("first").nominated("n1").obj()
    snapshot = cluster(first, make_pod("busy").cpu("100m").node("n1").obj(), nodes=2)
    assert snapshot.decide(first).node == "n1"
    assert snapshot.decide(waiting("other").obj()).node == "n0"


def test_a_pod_that_no_longer_fits_its_nominated_node_goes_elsewhere() -> None:
    first = waiting("first").nominated("n1").obj()
    snapshot = cluster(first, make_pod("busy").cpu("1").node("n1").obj(), nodes=2)
    assert snapshot.decide(first).node == "n0"


def test_a_pod_must_fit_without_the_nominated_pods_too() -> None:
    near = make_pod("near").affinity(HOST, selector(app="friend")).obj()
    friend = make_pod("friend").labels(app="friend").priority(9).nominated("n0").obj()
    assert cluster(friend).decide(near).node is None


def test_a_nomination_that_is_told_holds_until_the_status_speaks() -> None:
    first = waiting("first").obj()
    snapshot = cluster(first)
    other = waiting("other").obj()
    snapshot.nominate(first, "n0")
    assert snapshot.decide(other).node is None
    snapshot.put(msgspec.structs.replace(first, api_version="v1"))
    assert snapshot.decide(other).node is None
    elsewhere = msgspec.structs.replace(
        first, status=msgspec.structs.replace(first.status, nominated_node_name="gone")
    )
    snapshot.put(elsewhere)
    assert snapshot.decide(other).node == "n0"


def test_a_cleared_nomination_no_longer_counts_whatever_the_status_still_says() -> None:
    first = waiting("first").nominated("n0").obj()
    snapshot = cluster(first)
    snapshot.clear_nomination(first)
    assert snapshot.decide(waiting("other").obj()).node == "n0"
    assert snapshot.nominated_for("n0") == []


def test_a_deleted_pod_is_nominated_no_longer_nor_is_another_of_its_name() -> None:
    first = waiting("first").obj()
    snapshot = cluster(first)
    snapshot.nominate(first, "n0")
    snapshot.delete(Pod, first.key)
    snapshot.put(waiting("first").obj())
    assert snapshot.nominated_for("n0") == []


def test_nominations_in_a_fork_are_undone_with_it() -> None:
    first, second = waiting("first").nominated("n0").obj(), waiting("second").obj()
    snapshot = cluster(first, nodes=2)
    snapshot.nominate(second, "n1")
    with snapshot.fork():
        snapshot.clear_nomination(first)
        snapshot.nominate(second, "n0")
        with snapshot.fork():
            snapshot.delete(Pod, second.key)
        assert [pod.name for pod in snapshot.nominated_for("n0")] == ["second"]
    assert [pod.name for pod in snapshot.nominated_for("n0")] == ["first"]
    assert [pod.name for pod in snapshot.nominated_for("n1")] == ["second"]


def test_preemption_makes_room_beside_pods_that_are_nominated() -> None:
    victim = make_pod("victim").cpu("1").priority(0).node("n0").obj()
    spared = make_pod("spared").cpu("500m").priority(1).node("n0").obj()
    promised = make_pod("promised").cpu("500m").priority(9).nominated("n0").obj()
    pod = make_pod("urgent").cpu("1").priority(5).obj()
    found = preempt(cluster(victim, spared), pod)
    assert [one.name for one in found.victims] == ["victim"]
    found = preempt(cluster(victim, spared, promised), pod)
    assert [one.name for one in found.victims] == ["victim"]
    large = make_pod("promised").cpu("1").priority(9).nominated("n0").obj()
    found = preempt(cluster(victim, spared, large), pod)
    assert [one.name for one in found.victims] == ["spared", "victim"]


def test_preemption_names_those_whose_nomination_it_ends() -> None:
    victim = make_pod("victim").cpu("2").node("n0").obj()
    below = make_pod("below").cpu("2").priority(1).nominated("n0").obj()
    above = make_pod("above").priority(9).nominated("n0").obj()
    found = preempt(cluster(victim, below, above), make_pod("p").cpu("2").priority(5).obj())
    assert [pod.name for pod in found.lower_nominated] == ["below"]


def test_a_claim_for_one_pod_alone_is_not_kept_for_a_nominated_pod() -> None:
    """kube-scheduler looks at such claims only if a running pod uses one."""
    claim = make_pvc("c").access("ReadWriteOncePod").volume("v").obj()
    volume = make_pv("v").csi("d", "h").bound_to("c").obj()
    nominated = make_pod("n").claim("c").priority(9).nominated("n0").obj()
    snapshot = cluster(nominated)
    snapshot.put_all([claim, volume, make_csinode("n0").driver("d", 9).obj()])
    assert snapshot.decide(make_pod("p").claim("c").obj()).node == "n0"


def test_no_sum_of_what_nominated_pods_ask_for_wraps_around() -> None:
    snapshot = cluster()
    for index in range(4100):
        snapshot.nominate(make_pod(f"huge-{index}").memory("4Pi").priority(9).obj(), "n0")
    assert snapshot.decide(make_pod("p").memory("1Mi").obj()).node is None


def fits_naively(snapshot: Snapshot, pod: Pod, node: str) -> bool:
    """Whether a pod fits with the nominated pods of a node placed there, and without any."""
    rivals = [
        one
        for one in snapshot.nominated_for(node)
        if one.key != pod.key and snapshot.priority(one) >= snapshot.priority(pod)
    ]
    with snapshot.fork():
        for obj in list(snapshot.objects()):
            if isinstance(obj, Pod) and snapshot.nominated_node(obj) and not obj.spec.node_name:
                snapshot.clear_nomination(obj)
        if snapshot.refusal(pod, node) is not None:
            return False
        for rival in rivals:
            spec = msgspec.structs.replace(rival.spec, node_name=node)
            snapshot.put(msgspec.structs.replace(rival, spec=spec))
        return snapshot.refusal(pod, node) is None


def rules_of_others_are_new(snapshot: Snapshot, node: str) -> bool:
    """Whether a nominated pod has what kube-scheduler heeds only where others have it too:
    anti-affinity, or a claim for itself alone.
    """
    pods = snapshot.nominated_for(node)
    return any(pod.spec.affinity is not None or pod.spec.volumes for pod in pods)


@settings(max_examples=100)
@given(seeds=st.lists(st.integers(0, 2**32), min_size=20, max_size=60), asked=st.integers(0, 2**32))
def test_a_node_takes_a_pod_that_fits_with_and_without_those_nominated(
    seeds: list[int], asked: int
) -> None:
    snapshot = Snapshot(random_object(random.Random(seed)) for seed in seeds)
    rng = random.Random(asked)
    for _ in range(4):
        nominated = random_pod(rng)
        nominated.spec.node_name = ""
        snapshot.put(nominated)
        snapshot.nominate(nominated, rng.choice(NODES))
    pod = random_pod(rng)
    pod.metadata.name, pod.spec.node_name, pod.status.nominated_node_name = "probe", "", ""
    fitting = set()
    for node in NODES:
        if node not in snapshot.cluster.slots.by_name:
            continue
        fits = snapshot.refusal(pod, node) is None
        if fits:
            fitting.add(node)
        if not rules_of_others_are_new(snapshot, node):
            assert fits == fits_naively(snapshot, pod, node)
    chosen = snapshot.decide(pod).node
    assert chosen in fitting if fitting else chosen is None
