"""NodeResourcesFit: strategies that score, resources that are ignored."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.fit import PluginSet, Snapshot
from bayplan.fit.evaluation.verdicts import Verdicts
from bayplan.fit.plugins.node_resources_balanced_allocation import BalancedResources
from bayplan.fit.plugins.node_resources_fit.arguments import (
    AllocationStrategy,
    ResourceFitSettings,
    StrategyType,
)
from bayplan.fit.plugins.node_resources_fit.score import utilization_scores
from bayplan.kube.meta import KubeObject
from tests.builders import PodBuilder, make_node, make_pod
from tests.fit.kubernetes import asked, kubernetes, node
from tests.fit.plugins.scores import GPU, only, scored, two_nodes, wanting

EPHEMERAL = "ephemeral-storage"


RESOURCES = ("cpu", "memory", EPHEMERAL, GPU)


def test_the_strategy_decides_whether_pods_are_spread_or_packed() -> None:
    snapshot, pod = two_nodes(), wanting().obj()
    packing = AllocationStrategy(StrategyType.MOST_ALLOCATED)
    assert snapshot.decide(pod).node == "idle"
    assert (
        snapshot.decide(pod, plugins=PluginSet(args=(ResourceFitSettings(packing),))).node == "busy"
    )
    least = scored(snapshot, pod, only("NodeResourcesFit"))
    most = scored(snapshot, pod, only("NodeResourcesFit", ResourceFitSettings(packing)))
    assert least == {"idle": 90, "busy": 40}
    assert most == {"idle": 10, "busy": 60}


def test_a_ratio_follows_its_points_and_rounds_half_up() -> None:
    shape = ((0, 0), (50, 10), (100, 0))
    strategy = AllocationStrategy(
        StrategyType.REQUESTED_TO_CAPACITY_RATIO, (("cpu", 1), ("memory", 3)), shape
    )
    plugins = only("NodeResourcesFit", ResourceFitSettings(strategy))
    pod = make_pod("p").cpu("2").memory("1Gi").obj()
    # idle: cpu 20% gives 40, memory 10% gives 20; busy: cpu 70% gives 60, memory 60% gives 80
    assert scored(two_nodes(), pod, plugins) == {"idle": 25, "busy": 75}


def test_lines_that_fall_are_rounded_towards_zero() -> None:
    strategy = AllocationStrategy(
        StrategyType.REQUESTED_TO_CAPACITY_RATIO, shape=((0, 10), (30, 9))
    )
    points = utilization_scores(strategy).tolist()
    assert points[:8] == [100, 100, 100, 99, 99, 99, 98, 98]
    assert points[30:] == [90] * 71


def test_an_extended_resource_is_scored_only_for_pods_that_request_it() -> None:
    strategy = AllocationStrategy(StrategyType.MOST_ALLOCATED, (("cpu", 1), (GPU, 9)))
    plugins = only("NodeResourcesFit", ResourceFitSettings(strategy))
    assert scored(two_nodes(), wanting().obj(), plugins) == {"idle": 10, "busy": 60}
    greedy = wanting().request(GPU, 1).obj()
    assert scored(two_nodes(), greedy, plugins) == {"idle": 23, "busy": 73}


def test_ignored_resources_are_not_filtered_by() -> None:
    snapshot, pod = two_nodes(), wanting().request(GPU, 9).obj()
    assert snapshot.decide(pod).node is None
    by_name = PluginSet(args=(ResourceFitSettings(ignored_resources=frozenset({GPU})),))
    by_group = PluginSet(
        args=(ResourceFitSettings(ignored_resource_groups=frozenset({"example.com"})),)
    )
    others = PluginSet(
        args=(
            ResourceFitSettings(
                ignored_resources=frozenset({"cpu"}), ignored_resource_groups=frozenset("x")
            ),
        )
    )
    assert snapshot.decide(pod, plugins=by_name).node == "idle"
    assert snapshot.decide(pod, plugins=by_group).node == "idle"
    assert snapshot.decide(pod, plugins=others).node is None
    huge = make_pod("huge").cpu("99").obj()
    assert snapshot.decide(huge, plugins=others).node is None


def naive_share(strategy: AllocationStrategy, requested: int, capacity: int) -> int:
    """The points of one resource, written down plainly."""
    if strategy.type is StrategyType.LEAST_ALLOCATED:
        return 0 if requested > capacity else (capacity - requested) * 100 // capacity
    share = min(requested, capacity) * 100 // capacity
    if strategy.type is StrategyType.MOST_ALLOCATED:
        return share
    return int(utilization_scores(strategy)[share])


def naive_fit(
    strategy: AllocationStrategy, used: dict[str, int], has: dict[str, int], asked: dict[str, int]
) -> int:
    """The score of NodeResourcesFit for one node."""
    total = weights = 0
    for name, weight in strategy.resources:
        if not has[name] or (name == GPU and not asked[name]):
            continue
        points = naive_share(strategy, used[name] + asked[name], has[name])
        if strategy.type is not StrategyType.REQUESTED_TO_CAPACITY_RATIO or points > 0:
            total += points * weight
            weights += weight
    if not weights:
        return 0
    ratio = strategy.type is StrategyType.REQUESTED_TO_CAPACITY_RATIO
    return int(total / weights + 0.5) if ratio else total // weights


def naive_evenness(
    names: tuple[str, ...], used: dict[str, int], has: dict[str, int], asked: dict[str, int]
) -> int:
    """How even the use of one node is."""
    shares = [
        min(used[name] / has[name], 1.0)
        for name in names
        if has[name] and not (name == GPU and not asked[name])
    ]
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        mean = sum(shares) / len(shares)
        deviation = (sum((share - mean) * (share - mean) for share in shares) / len(shares)) ** 0.5
    return int((1 - deviation) * 100)


@st.composite
def strategies(draw: st.DrawFn) -> AllocationStrategy:
    """Any strategy."""
    names = draw(st.lists(st.sampled_from(RESOURCES), min_size=1, unique=True))
    resources = tuple((name, draw(st.integers(1, 100))) for name in names)
    at = sorted(draw(st.sets(st.integers(0, 100), min_size=1, max_size=4)))
    shape = tuple((point, draw(st.integers(0, 10))) for point in at)
    return AllocationStrategy(draw(st.sampled_from(StrategyType)), resources, shape)


@settings(max_examples=80)
@given(
    strategy=strategies(),
    balanced=st.lists(st.sampled_from(RESOURCES), min_size=1, unique=True).map(tuple),
    seed=st.integers(0, 2**32),
)
def test_any_strategy_scores_as_one_written_down_plainly(
    strategy: AllocationStrategy, balanced: tuple[str, ...], seed: int
) -> None:
    rng = random.Random(seed)
    has, used, objects = {}, {}, list[KubeObject]()
    for index in range(5):
        name = f"n{index}"
        has[name] = {one: rng.choice([0, 1000, 4000, 7777]) for one in RESOURCES}
        used[name] = {one: rng.randrange(0, 900) for one in RESOURCES}
        sizes = {one: f"{amount}m" if one == "cpu" else amount for one, amount in has[name].items()}
        objects.append(make_node(name).capacity({**sizes, "pods": 10}).obj())
        objects.append(amounts_pod(f"on-{name}", used[name]).node(name).obj())
    asked = {one: rng.choice([0, 1, 333]) for one in RESOURCES}
    asked["cpu"], asked["memory"] = max(asked["cpu"], 1), max(asked["memory"], 1)
    plugins = PluginSet(
        filters=frozenset(),
        scores=(("NodeResourcesFit", 1), ("NodeResourcesBalancedAllocation", 1)),
        args=(ResourceFitSettings(strategy), BalancedResources(balanced)),
    )
    said = Snapshot(objects).verdicts(amounts_pod("p", asked).obj(), plugins=plugins)
    assert isinstance(said, Verdicts)
    for name, points in said.scores.items():
        assert points["NodeResourcesFit"] == naive_fit(strategy, used[name], has[name], asked)
        both = {one: used[name][one] + asked[one] for one in RESOURCES}
        change = naive_evenness(balanced, both, has[name], asked) - naive_evenness(
            balanced, used[name], has[name], asked
        )
        wanted = 50 + (50 + change) // 2 if any(asked[one] for one in balanced) else None
        assert points.get("NodeResourcesBalancedAllocation") == wanted


def amounts_pod(name: str, amounts: dict[str, int]) -> PodBuilder:
    """A pod that requests these amounts, cpu in thousandths."""
    pod = make_pod(name)
    for resource, amount in amounts.items():
        pod.request(resource, f"{amount}m" if resource == "cpu" else amount)
    return pod


def test_the_score_of_what_is_left_ignores_pod_level_requests_of_a_waiting_pod() -> None:
    plain = make_pod("plain").cpu("1").memory("1Gi").obj()
    large = make_pod("large").cpu("1").memory("1Gi").pod_level(cpu="3", memory="6Gi").obj()
    snapshot = kubernetes(node())
    scores = [asked(snapshot, pod).scores["n1"] for pod in (plain, large)]
    assert scores[0]["NodeResourcesFit"] == scores[1]["NodeResourcesFit"]
