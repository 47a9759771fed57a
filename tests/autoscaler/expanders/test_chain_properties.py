"""Whatever the cluster and expander: what is bought helps, and no better group is passed over."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.estimate.options import ExpanderChoice, ExpanderRequest
from bayplan.autoscaler.estimate.upcoming import holds
from bayplan.autoscaler.expanders import Chain, ExpanderContext, parse_expanders
from bayplan.autoscaler.scaleup.orchestrator import decide
from bayplan.fit.batches import fill_all
from bayplan.fit.batches.estimate import blended, in_order, look, orders
from tests.autoscaler.worlds import after, memory, random_world

pytestmark = pytest.mark.whole


SEEDS = st.integers(0, 2**32)
EXPANDERS = ("least-waste", "least-nodes", "most-pods", "price,random", "cheapest-mix")


def chain(expanders: str) -> Chain:
    return Chain(parse_expanders(expanders), ExpanderContext(random.Random(1)))


def priced(rng: random.Random, world: ClusterView) -> ClusterView:
    groups = {
        name: replace(view, price=rng.choice([1.0, 2.0, 5.0, None]))
        for name, view in world.groups.items()
    }
    return replace(world, groups=groups)


@pytest.mark.parametrize("expanders", EXPANDERS)
@settings(max_examples=8, deadline=None)
@given(seed=SEEDS)
def test_every_pod_said_to_be_helped_fits_and_a_second_loop_buys_nothing_more(
    expanders: str, seed: int
) -> None:
    rng = random.Random(seed)
    world = priced(rng, random_world(rng))
    found = decide(world, chain(expanders))
    assert holds(world.snapshot, found.purchases)
    bought: dict[str, int] = {}
    for one in found.purchases:
        bought[one.view.id] = bought.get(one.view.id, 0) + one.nodes
    assert all(count <= world.groups[name].room for name, count in bought.items())
    there, most = len(world.snapshot.cluster.slots), world.options.max_nodes_total
    assert not most or not bought or there + sum(bought.values()) <= most
    assert not decide(after(world, found), chain(expanders), memory(found)).purchases


class Asked(Chain):
    """Remembers what was asked at first."""

    def choose(self, question: ExpanderRequest) -> ExpanderChoice:
        _check_least_nodes(question, found := super().choose(question))
        return found


def _check_least_nodes(question: ExpanderRequest, choice: ExpanderChoice) -> None:
    """No group alone helps as many pods with fewer nodes, in any way that can be thought of."""
    (chosen,) = choice.purchases
    pods = chosen.helped + len(chosen.placed)
    snapshot = question.snapshot
    with snapshot.fork():
        placed, left = fill_all(snapshot, question.groups)
        for one in question.candidates:
            prospect = look(snapshot, one.template, left, one.most)
            tried = orders(prospect)
            ways = [blended(prospect, tried[-1]), *(in_order(prospect, way) for way in tried)]
            for found in ways:
                as_good = found.pods and len(placed) + found.pods >= pods
                assert not as_good or found.nodes >= chosen.nodes


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_least_nodes_passes_no_group_over_that_helps_as_many_with_fewer(seed: int) -> None:
    world = random_world(random.Random(seed))
    decide(world, Asked(parse_expanders("least-nodes"), ExpanderContext(random.Random(1))))
