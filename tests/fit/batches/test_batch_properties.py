"""What is worked out for many pods at once is what comes of placing them one by one."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.fit.batches import Estimate, PodEquivalenceGroup, add_node, estimate, fill, group_pods
from bayplan.fit.batches.estimate import estimate_in_order, orders, prepare_estimate
from bayplan.fit.batches.fill import place_on
from tests.fit.batches.pending_pods import random_cluster, random_template, waiting_pods
from tests.samples import examples

pytestmark = pytest.mark.whole


SEEDS = st.integers(0, 2**32)


def by_node(found: Estimate, groups: list[PodEquivalenceGroup]) -> list[Counter[int]]:
    """For each new node how many pods of which group it is for."""
    number = {pod.key: at for at, group in enumerate(groups) for pod in group.pods}
    return [Counter(number[pod.key] for pod in pods) for pods in found.by_node()]


def one_by_one(groups: list[PodEquivalenceGroup]) -> list[PodEquivalenceGroup]:
    """The groups, as if their pods hinged on each other, so that each is really placed."""
    return [replace(group, is_interdependent=True) for group in groups]


@examples(40, many=150)
@given(seed=SEEDS)
def test_new_nodes_are_packed_as_pods_placed_one_by_one_would_be(seed: int) -> None:
    rng = random.Random(seed)
    snapshot, template = random_cluster(rng), random_template(rng)
    groups = group_pods(snapshot, waiting_pods(rng, snapshot))
    most = rng.choice([1, 3, 100])
    prospect = prepare_estimate(snapshot, template, groups, most)
    hinging = prepare_estimate(snapshot, template, one_by_one(groups), most)
    for order in orders(prospect):
        at_once = estimate_in_order(prospect, order)
        each = estimate_in_order(hinging, order)
        assert at_once.helped == each.helped
        assert at_once.nodes == each.nodes <= most
        assert by_node(at_once, groups) == by_node(each, groups)


@examples(40, many=150)
@given(seed=SEEDS)
def test_every_pod_said_to_be_helped_fits_when_its_node_appears(seed: int) -> None:
    rng = random.Random(seed)
    snapshot, template = random_cluster(rng), random_template(rng)
    pods = waiting_pods(rng, snapshot)
    found = estimate(snapshot, template, group_pods(snapshot, pods), most=100)
    assert all(found.by_node())
    nodes = placed = 0
    with snapshot.fork():
        for number, pod in found.placements():
            if number == nodes:
                add_node(snapshot, template, f"new-{number}")
                nodes += 1
            assert snapshot.refusal(pod, f"new-{number}") is None
            place_on(snapshot, pod, f"new-{number}")
            placed += 1
    assert (nodes, placed) == (found.nodes, found.pods)


@examples(40, many=150)
@given(seed=SEEDS)
def test_nodes_that_are_there_are_filled_as_one_by_one(seed: int) -> None:
    rng = random.Random(seed)
    snapshot = random_cluster(rng)
    groups = group_pods(snapshot, waiting_pods(rng, snapshot))
    among = rng.choice([None, ["n0", "n1", "n3", "gone"]])
    count = rng.choice([None, 3])
    for group in groups:
        with snapshot.fork():
            at_once = fill(snapshot, group, count, among)
        with snapshot.fork():
            (hinging,) = one_by_one([group])
            each = fill(snapshot, hinging, count, among)
        assert at_once.placed == each.placed
        assert at_once.left.pods == each.left.pods
        assert among is None or {node for _, node in at_once.placed} <= set(among)
        fill(snapshot, group, count, among)


@examples(40, many=100)
@given(seed=SEEDS)
def test_all_pods_of_a_group_are_answered_alike(seed: int) -> None:
    rng = random.Random(seed)
    snapshot = random_cluster(rng)
    pods = waiting_pods(rng, snapshot)
    groups = group_pods(snapshot, pods)
    assert sorted(pod.key for group in groups for pod in group.pods) == sorted(
        pod.key for pod in pods
    )
    for group in groups:
        answers = [snapshot.decide(pod) for pod in group.pods]
        said = {(one.node, one.refused_before, one.plugins) for one in answers}
        assert group.is_interdependent or len(said) == 1


@examples(40, many=100)
@given(seed=SEEDS)
def test_an_estimate_leaves_nothing_behind(seed: int) -> None:
    rng = random.Random(seed)
    snapshot, template = random_cluster(rng), random_template(rng)
    groups = group_pods(snapshot, waiting_pods(rng, snapshot))
    before = [snapshot.decide(group.pods[0]) for group in groups]
    nodes = set(snapshot.cluster.slots.by_name)
    estimate(snapshot, template, groups, most=10)
    assert set(snapshot.cluster.slots.by_name) == nodes
    assert [snapshot.decide(group.pods[0]) for group in groups] == before
