"""Pods are put where they suit each other."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.fit import Snapshot
from bayplan.fit.batches import Estimate, NodeTemplate, add_node, estimate, group_pods
from bayplan.fit.batches.estimate import estimate_blended, orders, prepare_estimate
from bayplan.fit.batches.fill import place_on
from tests.builders import PodBuilder, make_node, make_pod
from tests.fit.batches.pending_pods import random_cluster, random_template, waiting_pods


def pods(count: int, name: str, cpu: str, memory: str) -> list[PodBuilder]:
    return [make_pod(f"{name}-{at}").cpu(cpu).memory(memory) for at in range(count)]


def asked(waiting: list[PodBuilder], most: int = 1000) -> Estimate:
    snapshot = Snapshot()
    template = NodeTemplate(make_node("t").capacity(cpu="8", memory="32Gi", pods=110).obj())
    return estimate(snapshot, template, group_pods(snapshot, [p.obj() for p in waiting]), most)


def test_what_asks_for_cpu_shares_nodes_with_what_asks_for_memory() -> None:
    waiting = pods(600, "cpu", "3", "2Gi") + pods(1200, "memory", "500m", "13Gi")
    found = asked(waiting)
    assert (found.nodes, found.pods) == (600, 1800)


def test_small_pods_fill_what_large_ones_leave() -> None:
    waiting = pods(1000, "large", "5", "20Gi") + pods(3000, "small", "1", "4Gi")
    assert asked(waiting).nodes == 1000


def test_no_more_nodes_than_there_may_be() -> None:
    found = asked(pods(5000, "p", "1", "1Gi"), most=7)
    assert (found.nodes, found.pods) == (7, 56)


def test_daemons_that_take_more_than_there_is_only_keep_out_who_wants_the_same() -> None:
    snapshot = Snapshot()
    daemon = make_pod("d").memory("40Gi").owner("DaemonSet", "d").obj()
    node = make_node("t").capacity(cpu="8", memory="32Gi", pods=110).obj()
    waiting = [*pods(2, "cpu", "4", "0"), *pods(2, "memory", "1", "1Gi")]
    groups = group_pods(snapshot, [p.obj() for p in waiting])
    found = estimate(snapshot, NodeTemplate(node, daemons=(daemon,)), groups, 9)
    assert (found.nodes, found.helped) == (1, (2, 0))


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32))
def test_every_pod_fits_where_it_is_put(seed: int) -> None:
    rng = random.Random(seed)
    snapshot, template = random_cluster(rng), random_template(rng)
    groups = group_pods(snapshot, waiting_pods(rng, snapshot))
    most = rng.choice([1, 3, 100])
    prospect = prepare_estimate(snapshot, template, groups, most)
    found = estimate_blended(prospect, orders(prospect)[-1])
    assert found.nodes <= most
    seen: set[int] = set()
    with snapshot.fork():
        for number, pod in found.placements():
            if number not in seen:
                assert number == len(seen)
                seen.add(number)
                add_node(snapshot, template, f"new-{number}")
            assert snapshot.refusal(pod, f"new-{number}") is None
            place_on(snapshot, pod, f"new-{number}")
    assert (len(seen), sum(map(len, found.by_node()))) == (found.nodes, found.pods)
