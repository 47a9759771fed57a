"""The cheapest mix really is cheap, and its bound is never above what is possible."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.autoscaler.estimate.options import ExpanderChoice, ExpanderRequest
from bayplan.autoscaler.estimate.upcoming_nodes import is_feasible
from bayplan.autoscaler.expanders.mix.expander import cheapest_mix
from bayplan.autoscaler.expanders.mix.fillings import (
    PackingProblem,
    TemplateFillings,
    packing_problem,
)
from bayplan.autoscaler.expanders.mix.solver import best_packing, bound_of, cost_of
from bayplan.autoscaler.plan import MixResult
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit import Snapshot
from bayplan.fit.batches import NodeTemplate
from bayplan.fit.batches.attempt import EstimateInput
from bayplan.fit.batches.estimate import prepare_estimate
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from tests.autoscaler.cluster_views import group, random_view
from tests.autoscaler.expanders.requests import choose, machine, names, pods, request
from tests.builders import (
    make_csinode,
    make_node,
    make_pod,
    make_pvc,
    make_storage_class,
    selector,
)

pytestmark = pytest.mark.whole


DISK = "disk.csi.example.com"
SEEDS = st.integers(0, 2**32)


def mixed(choice: ExpanderChoice) -> MixResult:
    assert choice.mixed is not None
    return choice.mixed


def test_pods_of_different_needs_go_to_different_groups() -> None:
    views = [
        machine("cpu", "16", "16Gi", price=0.5),
        machine("memory", "4", "64Gi", price=0.5),
        machine("both", "16", "64Gi", price=1.5),
    ]
    waiting = [*pods(32, "4", "1Gi", "c"), *pods(32, "100m", "15Gi", "m")]
    found = choose("cheapest-mix", request(views, [pod.obj() for pod in waiting]))
    assert sorted(names(found)) == ["cpu", "memory"]
    assert mixed(found).cost == pytest.approx(8.0)
    assert mixed(found).priced
    assert mixed(found).bound <= mixed(found).cost


def test_volumes_decide_which_nodes_are_cheap() -> None:
    claims: list[KubeObject] = [make_storage_class("d", DISK).waits().obj()]
    waiting = []
    for at in range(20):
        waiting.append(make_pod(f"p{at}").cpu("100m").claim(f"c{at}").obj())
        claims.append(make_pvc(f"c{at}").storage_class("d").size("1Gi").obj())

    def attaching(name: str, cpu: str, limit: int, price: float) -> NodeGroupView:
        node = make_node(name).capacity(cpu=cpu, memory="64Gi", pods=110).ready().obj()
        template = NodeTemplate(node, make_csinode(name).driver(DISK, limit).obj())
        return replace(group(name, template), price=price)

    views = [attaching("large", "16", 4, 1.0), attaching("small", "4", 8, 0.5)]
    found = choose("cheapest-mix", request(views, waiting, Snapshot(claims)))
    assert [(one.view.id, one.nodes) for one in found.new_nodes] == [("small", 3)]
    assert (mixed(found).cost, mixed(found).bound) == pytest.approx((1.5, 1.5), abs=1e-3)


def test_without_prices_the_fewest_nodes_are_the_cheapest() -> None:
    views = [machine("small"), machine("large", "16", "64Gi")]
    found = choose("cheapest-mix", request(views, [pod.obj() for pod in pods(40, "1")]))
    assert (mixed(found).cost, mixed(found).bound, mixed(found).priced) == (3, 3, False)


def test_groups_without_a_price_among_others_are_left_out_and_told_of() -> None:
    views = [machine("priced", price=9.0), machine("unpriced")]
    found = choose("cheapest-mix", request(views, [pod.obj() for pod in pods(4, "1")]))
    assert names(found) == ["priced"]
    assert [note.reason for note in found.notes] == ["NodePriceUnknown"]


def test_groups_that_are_whole_or_nothing_are_bought_whole_if_nothing_else_helps() -> None:
    view = machine("tpu", price=2.0, most=4)
    whole = replace(view, options=replace(view.options, zero_or_max_node_scaling=True))
    asked = request([whole], [pod.obj() for pod in pods(4, "1")])
    bought = replace(asked.options[0], nodes=4)
    found = choose("cheapest-mix", replace(asked, options=(bought,)))
    assert [one.nodes for one in found.new_nodes] == [4]


def test_pods_that_keep_apart_have_their_nodes_filled_by_others() -> None:
    apart = [
        pod.labels(app="db").anti_affinity("kubernetes.io/hostname", selector(app="db"))
        for pod in pods(4, "1", "1Gi", "db")
    ]
    waiting = [pod.obj() for pod in [*apart, *pods(12, "1", "1Gi", "web")]]
    views = [machine("four", price=1.0), machine("eight", "8", "32Gi", price=1.9)]
    found = choose("cheapest-mix", request(views, waiting))
    assert [(one.view.id, one.nodes) for one in found.new_nodes] == [("four", 4)]


def test_no_more_nodes_than_there_may_be_in_all() -> None:
    views = [machine("a", price=1.0), machine("b", price=1.0)]
    found = choose("cheapest-mix", request(views, [p.obj() for p in pods(40, "1")], room=3))
    assert sum(one.nodes for one in found.new_nodes) == 3


def random_question(rng: random.Random) -> ExpanderRequest:
    """A few pods of few sizes, and machines of whole prices."""
    views = [
        machine(
            f"m{at}",
            str(rng.choice([2, 3, 5, 8])),
            f"{rng.choice([4, 6, 8, 16])}Gi",
            price=float(rng.randrange(1, 9)),
            most=rng.choice([1, 2, 9]),
        )
        for at in range(rng.randrange(1, 4))
    ]
    waiting: list[Pod] = []
    for number in range(rng.randrange(1, 4)):
        cpu, memory = str(rng.choice([1, 2, 3])), f"{rng.choice([1, 2, 3, 5])}Gi"
        waiting += [pod.obj() for pod in pods(rng.randrange(1, 4), cpu, memory, f"s{number}")]
    return request(views, waiting)


def least_cost(asked: ExpanderRequest, helped: tuple[int, ...]) -> float:
    """What helping so many of each group costs at the least, tried in every way."""
    seen = prospects(asked)
    needs = [[one.loads[n].need for n in range(len(asked.groups))] for one in seen]
    prices = [one.view.price or 0.0 for one in asked.options]

    @cache
    def fillings(at: int, left: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Everything that one node of a template can take of these pods."""
        found: list[tuple[int, ...]] = [()]
        for count in left:
            found = [(*one, more) for one in found for more in range(count + 1)]
        fresh = seen[at].loads.fresh
        return [
            one
            for one in found
            if any(one) and (sum(n * c for n, c in zip(needs[at], one, strict=True)) <= fresh).all()
        ]

    @cache
    def search(left: tuple[int, ...], most: tuple[int, ...]) -> float:
        if not any(left):
            return 0.0
        best = float("inf")
        for at, price in enumerate(prices):
            if most[at]:
                fewer = (*most[:at], most[at] - 1, *most[at + 1 :])
                for one in fillings(at, left):
                    rest = tuple(a - b for a, b in zip(left, one, strict=True))
                    best = min(best, price + search(rest, fewer))
        return best

    return search(helped, tuple(one.most for one in asked.options))


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_no_bound_is_above_the_least_cost_found_by_trying_everything(seed: int) -> None:
    asked = random_question(random.Random(seed))
    if not asked.options:
        return
    choice = cheapest_mix(asked.options, asked)
    assert is_feasible(asked.snapshot, choice.new_nodes)
    helped = {pod.key for one in choice.new_nodes for on_node in one.pods for pod in on_node}
    counts = tuple(sum(pod.key in helped for pod in one.pods) for one in asked.groups)
    least = least_cost(asked, counts)
    assert mixed(choice).bound <= least + 1e-9
    assert mixed(choice).cost >= least - 1e-9
    for exact in (False, True):
        assert bound_of(problem(asked).with_pods(counts), exact=exact) <= least + 1e-9


def prospects(asked: ExpanderRequest) -> list[EstimateInput]:
    with asked.snapshot.fork():
        return [
            prepare_estimate(asked.snapshot, c.template, asked.groups, c.most)
            for c in asked.options
        ]


def problem(asked: ExpanderRequest) -> PackingProblem:
    return packing_problem(prospects(asked), [one.view.price or 0.0 for one in asked.options], 1000)


@pytest.mark.parametrize("exact", [False, True])
def test_with_or_without_a_solver_everybody_is_helped_near_the_bound(exact: bool) -> None:
    views = [
        machine("small", "4", "16Gi", price=0.25),
        machine("cpu", "16", "16Gi", price=0.7),
        machine("large", "16", "64Gi", price=0.9),
    ]
    waiting = [*pods(200, "1", "500Mi", "c"), *pods(90, "250m", "6Gi", "m"), *pods(60, "3", "9Gi")]
    asked = request(views, [pod.obj() for pod in waiting])
    numbers = problem(asked)
    shop = TemplateFillings.of(prospects(asked), numbers, range(len(asked.groups)))
    cart = best_packing(shop, exact=exact)
    bound = bound_of(numbers, exact=exact)
    assert not cart.supply.any()
    assert bound <= cost_of(cart, numbers) <= bound * 1.1


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_in_any_cluster_every_pod_fits_and_no_single_group_is_better(seed: int) -> None:
    rng = random.Random(seed)
    view = random_view(rng)
    views = [replace(view, price=float(rng.randrange(1, 9))) for view in view.groups.values()]
    asked = request(views, view.unschedulable_pods, view.snapshot, rng.choice([None, 2, 30]))
    if not asked.options:
        return
    choice = cheapest_mix(asked.options, asked)
    assert is_feasible(asked.snapshot, choice.new_nodes)
    assert (
        asked.max_new_nodes is None
        or sum(one.nodes for one in choice.new_nodes) <= asked.max_new_nodes
    )
    for one in asked.options:
        assert sum(p.nodes for p in choice.new_nodes if p.view is one.view) <= one.most
    pods = sum(one.helped + len(one.placed) for one in choice.new_nodes)
    best = max((c.option.helped, -(c.price or 0.0)) for c in asked.options)
    assert (pods, -mixed(choice).cost) >= (best[0], best[1] - 1e-9)
    assert mixed(choice).bound <= mixed(choice).cost
