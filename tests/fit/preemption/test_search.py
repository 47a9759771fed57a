"""Preemption: who has to go, on which of the nodes that are looked at."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.fit import Snapshot
from bayplan.fit.preemption import CandidateBounds, preempt
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import PodDisruptionBudget
from tests.builders import (
    make_node,
    make_pdb,
    make_pod,
    selector,
)
from tests.fit.kubernetes import kubernetes, node
from tests.fit.random_clusters import NODES, random_object, random_pod


def crowded(nodes: int, *, priority: int = 0) -> list[KubeObject]:
    """Nodes of one CPU, each with one pod that takes it."""
    objects: list[KubeObject] = []
    for index in range(nodes):
        objects.append(make_node(f"n{index:03}").capacity(cpu="1", memory="1Gi", pods=9).obj())
        pod = make_pod(f"p{index:03}").cpu("1").priority(priority).labels(app="web")
        objects.append(pod.node(f"n{index:03}").obj())
    return objects


def urgent() -> Pod:
    """A pod that must push another out."""
    return make_pod("urgent").cpu("1").priority(10).obj()


def test_nodes_are_tried_from_the_offset_on_until_there_are_enough_candidates() -> None:
    snapshot = Snapshot(crowded(30))
    bounds = CandidateBounds(percentage=10, absolute=2)
    nodes = [preempt(snapshot, urgent(), bounds=bounds, offset=at).node for at in (0, 7, 29, 37)]
    assert nodes == ["n000", "n007", "n000", "n007"]


def test_the_search_goes_on_while_every_candidate_breaks_a_budget() -> None:
    objects = crowded(30)
    guarded = [obj for obj in objects if isinstance(obj, Pod)]
    for pod in guarded[:20]:
        pod.metadata.labels["guarded"] = "yes"
    snapshot = Snapshot([*objects, make_pdb("b", selector(guarded="yes")).allows(0).obj()])
    found = preempt(snapshot, urgent(), bounds=CandidateBounds(percentage=10, absolute=2))
    assert (found.node, found.budgets_broken) == ("n020", 0)


def test_enough_is_a_share_of_the_nodes_but_at_least_so_many_and_never_more_than_there_are() -> (
    None
):
    assert [CandidateBounds().enough(nodes) for nodes in (3, 100, 900, 5000)] == [3, 100, 100, 500]


def test_a_changed_budget_protects_from_then_on() -> None:
    snapshot = Snapshot(crowded(2))
    assert preempt(snapshot, urgent()).node == "n000"
    only_first = make_pod("p000").cpu("1").priority(0).labels(app="first").node("n000").obj()
    snapshot.put(only_first)
    snapshot.put(make_pdb("b", selector(app="first")).allows(0).obj())
    assert preempt(snapshot, urgent()).node == "n001"
    snapshot.delete(PodDisruptionBudget, "default/b")
    assert preempt(snapshot, urgent()).node == "n000"


def test_a_budget_without_a_selector_protects_nobody() -> None:
    snapshot = Snapshot([*crowded(1), make_pdb("b", selector()).allows(0).obj()])
    assert preempt(snapshot, urgent()).budgets_broken == 0


def naive(snapshot: Snapshot, pod: Pod, node: str) -> tuple[list[str], int] | None:
    """Victims on a node, by taking pods away and putting them back one by one."""
    priority = snapshot.priority(pod)
    lower = [one for one in snapshot.pods_on(node) if snapshot.priority(one) < priority]
    with snapshot.fork():
        for one in lower:
            snapshot.delete(Pod, one.key)
        if not lower or snapshot.refusal(pod, node) is not None:
            return None
        lower.sort(key=lambda one: (-snapshot.priority(one), one.status.start_time or "9", one.key))
        victims = []
        for one in lower:
            snapshot.put(one)
            if snapshot.refusal(pod, node) is not None:
                snapshot.delete(Pod, one.key)
                victims.append(one.key)
        return victims, len(victims)


@settings(max_examples=100)
@given(seeds=st.lists(st.integers(0, 2**32), min_size=20, max_size=60), asked=st.integers(0, 2**32))
def test_the_victims_are_those_that_taking_away_and_putting_back_finds(
    seeds: list[int], asked: int
) -> None:
    objects = [random_object(random.Random(seed)) for seed in seeds]
    snapshot = Snapshot(obj for obj in objects if type(obj).__name__ != "PodDisruptionBudget")
    pod = random_pod(random.Random(asked))
    pod.metadata.name, pod.spec.node_name, pod.spec.priority = "probe", "", 2
    pod.status.nominated_node_name = ""
    found = preempt(snapshot, pod)
    if found.node is not None:
        expected = naive(snapshot, pod, found.node)
        assert expected == ([one.key for one in found.victims], len(found.victims))
    elif snapshot.decide(pod).node is None and pod.spec.preemption_policy != "Never":
        nodes = [node for node in NODES if node in snapshot.cluster.slots.by_name]
        refusals = {node: snapshot.refusal(pod, node) for node in nodes}
        passing = [node for node, no in refusals.items() if no and no.code == "Unschedulable"]
        assert [naive(snapshot, pod, node) for node in passing] == [None] * len(passing)


def test_a_pod_uses_up_every_budget_that_guards_it_even_if_one_is_spent() -> None:
    def victim(name: str, priority: int, labels: dict[str, str]) -> Pod:
        pod = make_pod(name).cpu("1500m").labels(labels).priority(priority)
        return pod.node("n1").started("2026-01-01T00:00:00Z").obj()

    spent = make_pdb("spent", selector(app="web")).allows(0).obj()
    one_left = make_pdb("one-left", selector(tier="front")).allows(1).obj()
    both = victim("both", 2, {"app": "web", "tier": "front"})
    front = victim("front", 1, {"tier": "front"})
    snapshot = kubernetes(node(), spent, one_left, both, front)
    found = preempt(snapshot, make_pod("urgent").cpu("4").priority(9).obj())
    assert found.budgets_broken == 2
