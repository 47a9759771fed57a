"""Profiles: which plugins are asked, what they weigh, and what they are told."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.fit import PluginSet, Profile, Snapshot
from bayplan.fit.evaluation.verdicts import Verdicts
from bayplan.fit.plugin_set import (
    MOST_WEIGHT,
    AddedAffinity,
    DefaultConstraint,
    ScoringStrategy,
    Strategy,
)
from bayplan.fit.plugins.node_resources_fit.allocation import utilization_scores
from bayplan.fit.plugins.registry import FILTERS, SCORES
from bayplan.kube.meta import KubeObject, Quantity
from bayplan.kube.nodes import NodeSelector, PreferredSchedulingTerm
from bayplan.kube.pods import NodeAffinity, Pod
from tests.builders import PodBuilder, make_node, make_pod, make_service, node_term, selector

GPU = "example.com/gpu"
EPHEMERAL = "ephemeral-storage"
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
RESOURCES = ("cpu", "memory", EPHEMERAL, GPU)


def only(*scores: str, **told: object) -> PluginSet:
    """All filters, and these scores alone."""
    return replace(PluginSet(scores=tuple((name, 1) for name in scores)), **told)  # type: ignore[arg-type]


def scored(snapshot: Snapshot, pod: Pod, plugins: PluginSet) -> dict[str, int]:
    """The total of each node that fits."""
    said = snapshot.verdicts(pod, plugins=plugins)
    assert isinstance(said, Verdicts)
    return {name: points["total"] for name, points in said.scores.items()}


def two_nodes() -> Snapshot:
    """A busy node and an idle one, of the same size."""
    sizes: dict[str, Quantity] = {"cpu": "10", "memory": "10Gi", "pods": 10, GPU: 4}
    idle = make_node("idle").capacity(sizes).label(HOST, "idle").zone("a").obj()
    busy = make_node("busy").capacity(sizes).label(HOST, "busy").zone("b").obj()
    taken = make_pod("taken").cpu("5").memory("5Gi").request(GPU, 2).node("busy").obj()
    return Snapshot([idle, busy, taken])


def wanting() -> PodBuilder:
    """A pod that wants a tenth of a node."""
    return make_pod("p").cpu("1").memory("1Gi")


def test_the_strategy_decides_whether_pods_are_spread_or_packed() -> None:
    snapshot, pod = two_nodes(), wanting().obj()
    packing = ScoringStrategy(Strategy.MOST_ALLOCATED)
    assert snapshot.decide(pod).node == "idle"
    assert snapshot.decide(pod, plugins=PluginSet(scoring=packing)).node == "busy"
    least = scored(snapshot, pod, only("NodeResourcesFit"))
    most = scored(snapshot, pod, only("NodeResourcesFit", scoring=packing))
    assert least == {"idle": 90, "busy": 40}
    assert most == {"idle": 10, "busy": 60}


def test_pods_may_name_the_scheduler_whose_profile_they_want() -> None:
    packing = PluginSet(scoring=ScoringStrategy(Strategy.MOST_ALLOCATED))
    profile = Profile(schedulers={"packer": packing})
    snapshot = Snapshot(two_nodes().objects(), profile=profile)
    assert snapshot.decide(wanting().obj()).node == "idle"
    assert snapshot.decide(wanting().scheduler("packer").obj()).node == "busy"


def test_a_ratio_follows_its_points_and_rounds_half_up() -> None:
    shape = ((0, 0), (50, 10), (100, 0))
    strategy = ScoringStrategy(
        Strategy.REQUESTED_TO_CAPACITY_RATIO, (("cpu", 1), ("memory", 3)), shape
    )
    plugins = only("NodeResourcesFit", scoring=strategy)
    pod = make_pod("p").cpu("2").memory("1Gi").obj()
    # idle: cpu 20% gives 40, memory 10% gives 20; busy: cpu 70% gives 60, memory 60% gives 80
    assert scored(two_nodes(), pod, plugins) == {"idle": 25, "busy": 75}


def test_lines_that_fall_are_rounded_towards_zero() -> None:
    strategy = ScoringStrategy(Strategy.REQUESTED_TO_CAPACITY_RATIO, shape=((0, 10), (30, 9)))
    points = utilization_scores(strategy).tolist()
    assert points[:8] == [100, 100, 100, 99, 99, 99, 98, 98]
    assert points[30:] == [90] * 71


def test_an_extended_resource_is_scored_only_for_pods_that_request_it() -> None:
    strategy = ScoringStrategy(Strategy.MOST_ALLOCATED, (("cpu", 1), (GPU, 9)))
    plugins = only("NodeResourcesFit", scoring=strategy)
    assert scored(two_nodes(), wanting().obj(), plugins) == {"idle": 10, "busy": 60}
    greedy = wanting().request(GPU, 1).obj()
    assert scored(two_nodes(), greedy, plugins) == {"idle": 23, "busy": 73}


def test_filters_that_are_off_refuse_nobody() -> None:
    snapshot = two_nodes()
    snapshot.put(make_node("idle").capacity(cpu="10", memory="10Gi", pods=10).unschedulable().obj())
    plugins = PluginSet(filters=FILTERS - {"NodeUnschedulable"})
    assert snapshot.decide(wanting().obj()).node == "busy"
    assert snapshot.decide(wanting().obj(), plugins=plugins).node == "idle"
    lost = make_pod("lost").claim("nowhere").obj()
    volumes = {"VolumeRestrictions", "VolumeBinding", "VolumeZone"}
    assert snapshot.decide(lost).refused_before is not None
    assert snapshot.decide(lost, plugins=PluginSet(filters=FILTERS - volumes)).node is not None


def test_weights_count_in_ranks_as_in_verdicts() -> None:
    snapshot, pod = two_nodes(), wanting().obj()
    plain = scored(snapshot, pod, only("NodeResourcesFit"))
    heavy = PluginSet(scores=(("NodeResourcesFit", 7),))
    assert scored(snapshot, pod, heavy) == {name: 7 * points for name, points in plain.items()}
    for weight in (7, MOST_WEIGHT, 1 << 40):
        plugins = PluginSet(scores=tuple((name, weight) for name, _ in SCORES))
        totals = scored(snapshot, pod, plugins)
        assert snapshot.decide(pod, plugins=plugins).node == max(totals, key=lambda n: totals[n])


def test_ignored_resources_are_not_filtered_by() -> None:
    snapshot, pod = two_nodes(), wanting().request(GPU, 9).obj()
    assert snapshot.decide(pod).node is None
    by_name = PluginSet(ignored_resources=frozenset({GPU}))
    by_group = PluginSet(ignored_resource_groups=frozenset({"example.com"}))
    others = PluginSet(ignored_resources=frozenset({"cpu"}), ignored_resource_groups=frozenset("x"))
    assert snapshot.decide(pod, plugins=by_name).node == "idle"
    assert snapshot.decide(pod, plugins=by_group).node == "idle"
    assert snapshot.decide(pod, plugins=others).node is None
    huge = make_pod("huge").cpu("99").obj()
    assert snapshot.decide(huge, plugins=others).node is None


def test_added_affinity_binds_every_pod() -> None:
    snapshot, pod = two_nodes(), wanting().obj()
    required = NodeAffinity(required=NodeSelector(node_selector_terms=[node_term(ZONE, "In", "b")]))
    plugins = PluginSet(added_affinity=AddedAffinity.of(required))
    assert snapshot.decide(pod, plugins=plugins).node == "busy"
    said = snapshot.verdicts(pod, plugins=plugins)
    assert isinstance(said, Verdicts)
    reasons = said.refusals["idle"].reasons
    assert reasons == ("node(s) didn't match scheduler-enforced node affinity",)
    liked = PreferredSchedulingTerm(weight=5, preference=node_term(ZONE, "In", "b"))
    wish = AddedAffinity.of(NodeAffinity(preferred=[liked]))
    assert scored(snapshot, pod, only("NodeAffinity", added_affinity=wish)) == {
        "idle": 0,
        "busy": 100,
    }


def test_a_running_pods_need_weighs_what_the_profile_says() -> None:
    snapshot = two_nodes()
    near = make_pod("near").node("idle").affinity(HOST, selector(app="web"))
    likes = make_pod("likes").node("busy").prefers_affinity(5, HOST, selector(app="web"))
    snapshot.put(near.obj())
    snapshot.put(likes.obj())
    pod = wanting().labels(app="web").obj()
    assert scored(snapshot, pod, only("InterPodAffinity")) == {"idle": 0, "busy": 100}
    hard = only("InterPodAffinity", hard_pod_affinity_weight=50)
    assert scored(snapshot, pod, hard) == {"idle": 100, "busy": 0}
    deaf = only("InterPodAffinity", ignore_preferred_terms_of_existing_pods=True)
    assert scored(snapshot, pod, deaf) == {"idle": 0, "busy": 0}


def test_default_constraints_may_have_to_hold() -> None:
    snapshot = two_nodes()
    snapshot.put(make_service("s", app="web").obj())
    snapshot.put(make_pod("one").labels(app="web").node("idle").obj())
    pod = wanting().labels(app="web").obj()
    must = PluginSet(default_constraints=(DefaultConstraint(1, HOST, must_hold=True),))
    assert snapshot.decide(pod, plugins=must).node == "busy"
    refusal = snapshot.verdicts(pod, plugins=must)
    assert isinstance(refusal, Verdicts)
    assert refusal.refusals["idle"].plugin == "PodTopologySpread"
    none = only("PodTopologySpread", default_constraints=())
    assert scored(snapshot, pod, none) == {"idle": 0, "busy": 0}
    own = make_pod("own").labels(app="web").spread(ZONE, 5, "ScheduleAnyway").obj()
    assert snapshot.decide(own, plugins=must).node is not None


def naive_share(strategy: ScoringStrategy, requested: int, capacity: int) -> int:
    """The points of one resource, written down plainly."""
    if strategy.type is Strategy.LEAST_ALLOCATED:
        return 0 if requested > capacity else (capacity - requested) * 100 // capacity
    share = min(requested, capacity) * 100 // capacity
    if strategy.type is Strategy.MOST_ALLOCATED:
        return share
    return int(utilization_scores(strategy)[share])


def naive_fit(
    strategy: ScoringStrategy, used: dict[str, int], has: dict[str, int], asked: dict[str, int]
) -> int:
    """The score of NodeResourcesFit for one node."""
    total = weights = 0
    for name, weight in strategy.resources:
        if not has[name] or (name == GPU and not asked[name]):
            continue
        points = naive_share(strategy, used[name] + asked[name], has[name])
        if strategy.type is not Strategy.REQUESTED_TO_CAPACITY_RATIO or points > 0:
            total += points * weight
            weights += weight
    if not weights:
        return 0
    ratio = strategy.type is Strategy.REQUESTED_TO_CAPACITY_RATIO
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
def strategies(draw: st.DrawFn) -> ScoringStrategy:
    """Any strategy."""
    names = draw(st.lists(st.sampled_from(RESOURCES), min_size=1, unique=True))
    resources = tuple((name, draw(st.integers(1, 100))) for name in names)
    at = sorted(draw(st.sets(st.integers(0, 100), min_size=1, max_size=4)))
    shape = tuple((point, draw(st.integers(0, 10))) for point in at)
    return ScoringStrategy(draw(st.sampled_from(Strategy)), resources, shape)


@settings(max_examples=80)
@given(
    strategy=strategies(),
    balanced=st.lists(st.sampled_from(RESOURCES), min_size=1, unique=True).map(tuple),
    seed=st.integers(0, 2**32),
)
def test_any_strategy_scores_as_one_written_down_plainly(
    strategy: ScoringStrategy, balanced: tuple[str, ...], seed: int
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
        scoring=strategy,
        balanced_resources=balanced,
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


@pytest.mark.parametrize("name", [name for name, _ in SCORES])
def test_a_score_without_weight_does_not_count(name: str) -> None:
    plugins = PluginSet(scores=tuple((one, weight * (one != name)) for one, weight in SCORES))
    said = two_nodes().verdicts(wanting().image("x").obj(), plugins=plugins)
    assert isinstance(said, Verdicts)
    assert all(name not in points for points in said.scores.values())
