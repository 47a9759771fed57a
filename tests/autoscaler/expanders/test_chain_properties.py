"""Whatever the cluster and expander: what is bought helps, and no better group is passed over."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.estimate.options import ExpanderChoice, ExpanderRequest
from bayplan.autoscaler.estimate.upcoming_nodes import is_feasible
from bayplan.autoscaler.expanders import Chain, ExpanderContext, parse_expanders
from bayplan.autoscaler.scaleup.orchestrator import decide
from bayplan.fit.batches import fill_all
from bayplan.fit.batches.estimate import (
    estimate_blended,
    estimate_in_order,
    orders,
    prepare_estimate,
)
from tests.autoscaler.cluster_views import after, memory, random_view

pytestmark = pytest.mark.whole


SEEDS = st.integers(0, 2**32)
EXPANDERS = ("least-waste", "least-nodes", "most-pods", "price,random", "cheapest-mix")


def chain(expanders: str) -> Chain:
    return Chain(parse_expanders(expanders), ExpanderContext(random.Random(1)))


def priced(rng: random.Random, view: ClusterView) -> ClusterView:
    groups = {
        name: replace(view, price=rng.choice([1.0, 2.0, 5.0, None]))
        for name, view in view.groups.items()
    }
    return replace(view, groups=groups)


@pytest.mark.parametrize("expanders", EXPANDERS)
@settings(max_examples=8, deadline=None)
@given(seed=SEEDS)
@example(seed=187887)  # a pod fits an existing node only after new nodes of another group
def test_every_pod_said_to_be_helped_fits_and_a_second_loop_buys_nothing_more(
    expanders: str, seed: int
) -> None:
    rng = random.Random(seed)
    view = priced(rng, random_view(rng))
    found = decide(view, chain(expanders))
    assert is_feasible(view.snapshot, found.new_nodes)
    bought: dict[str, int] = {}
    for one in found.new_nodes:
        bought[one.view.id] = bought.get(one.view.id, 0) + one.nodes
    assert all(count <= view.groups[name].max_increase for name, count in bought.items())
    there, most = len(view.snapshot.cluster.slots), view.options.max_nodes_total
    assert not most or not bought or there + sum(bought.values()) <= most
    assert not decide(after(view, found), chain(expanders), memory(found)).new_nodes


class RecordingChain(Chain):
    """Remembers what was asked at first."""

    def choose(self, request: ExpanderRequest) -> ExpanderChoice:
        _check_least_nodes(request, found := super().choose(request))
        return found


def _check_least_nodes(request: ExpanderRequest, choice: ExpanderChoice) -> None:
    """No group alone helps as many pods with fewer nodes, in any way that can be thought of."""
    (chosen,) = choice.new_nodes
    pods = chosen.helped + len(chosen.placed)
    snapshot = request.snapshot
    with snapshot.fork():
        placed, left = fill_all(snapshot, request.groups)
        for one in request.options:
            prospect = prepare_estimate(snapshot, one.template, left, one.most)
            tried = orders(prospect)
            ways = [
                estimate_blended(prospect, tried[-1]),
                *(estimate_in_order(prospect, way) for way in tried),
            ]
            for found in ways:
                as_good = found.pods and len(placed) + found.pods >= pods
                assert not as_good or found.nodes >= chosen.nodes


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_least_nodes_passes_no_group_over_that_helps_as_many_with_fewer(seed: int) -> None:
    view = random_view(random.Random(seed))
    decide(view, RecordingChain(parse_expanders("least-nodes"), ExpanderContext(random.Random(1))))
