"""Expanders keep the best by their measure, one after another."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from bayplan.autoscaler.estimate.options import ExpanderRequest
from bayplan.autoscaler.expanders import ExpanderContext, ExpanderError, PodPrices, parse_expanders
from tests.autoscaler.expanders.requests import choose, machine, names, pods, request

SMALL, LARGE, LEAN = machine("small"), machine("large", "16", "64Gi"), machine("lean", "8", "8Gi")


def asked(*, most: int = 50) -> ExpanderRequest:
    """Nine pods of two cpus and two GiB."""
    views = [replace(one, group=replace(one.group, max_size=most)) for one in (SMALL, LARGE, LEAN)]
    return request(views, [pod.obj() for pod in pods(9, "2", "2Gi")])


def test_least_nodes_takes_the_group_of_which_the_fewest_are_needed() -> None:
    (bought,) = choose("least-nodes", asked()).new_nodes
    assert (bought.view.id, bought.nodes, bought.helped) == ("large", 2, 9)


def test_least_waste_takes_the_group_of_which_most_is_used() -> None:
    assert names(choose("least-waste", asked())) == ["lean"]


def test_most_pods_takes_the_group_that_helps_most() -> None:
    assert names(choose("most-pods", asked(most=1))) == ["large"]


def test_ties_are_broken_by_chance_and_chance_alone() -> None:
    twins = request([machine("a"), machine("b")], [pod.obj() for pod in pods(3, "1")])
    chosen = {
        names(choose("least-waste", twins, ExpanderContext(random.Random(n))))[0] for n in range(20)
    }
    assert chosen == {"a", "b"}
    again = [names(choose("random", asked(), ExpanderContext(random.Random(7)))) for _ in range(3)]
    assert len({tuple(one) for one in again}) == 1


def test_the_next_expander_chooses_among_those_that_are_tied() -> None:
    views = [machine("a"), machine("b", "4", "64Gi"), machine("c", "2", "16Gi")]
    found = request(views, [pod.obj() for pod in pods(4, "2", "2Gi")])
    for seed in range(8):
        context = ExpanderContext(random.Random(seed))
        assert names(choose("least-nodes,least-waste", found, context)) == ["a"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("least-wast", "did you mean 'least-waste'"),
        ("", "unknown expander ''"),
        ("price,price", "price is listed twice"),
        ("random,least-waste", "expander random must be the last; least-waste follows it"),
        ("cheapest-mix,price", "expander cheapest-mix must be the last"),
    ],
)
def test_expanders_that_make_no_sense_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ExpanderError, match=problem):
        parse_expanders(text)


def test_the_price_expander_weighs_cost_against_what_pods_are_worth() -> None:
    views = [
        machine("fair", "4", "16Gi", price=0.2),
        machine("dear", "4", "16Gi", price=0.5),
        machine("unknown", "4", "16Gi"),
    ]
    found = request(views, [pod.obj() for pod in pods(4, "1")])
    worth = PodPrices({one.signature: 0.04 for one in found.groups}, stabilization=0.01)
    assert names(choose("price", found, ExpanderContext(random.Random(1), worth))) == ["fair"]


def test_the_price_expander_likes_nodes_that_suit_the_size_of_the_cluster() -> None:
    views = [machine("large", "64", "256Gi", price=0.9), machine("small", "2", "8Gi", price=0.05)]
    found = request(views, [pod.obj() for pod in pods(1, "1")])
    worth = PodPrices({one.signature: 0.04 for one in found.groups}, stabilization=0.01)
    assert names(choose("price", found, ExpanderContext(random.Random(1), worth))) == ["small"]


def test_without_prices_the_price_expander_leaves_the_choice_to_others() -> None:
    assert names(choose("price,least-nodes", asked())) == ["large"]
